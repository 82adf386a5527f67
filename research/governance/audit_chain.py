"""The chain of the audit: what the hash of an entry covers, and what verification finds where it does not hold.

    hash = HMAC-SHA256(key, the entry and all its columns, the hash before it)

Without the key nobody can make an entry that fits, and none can be changed, taken out or moved without the one after it
showing it. The newest are held by the head, which is kept apart from the index (`audit_head`).

Three kinds of rows are marks of the chain itself. A checkpoint stands in the place of entries that were removed because
they were old, and is signed by itself: the next entry follows the last that was removed. A restart is where the chain
had to go on though what it found was not what it had left (a restored backup, a lost key, a cut tail): it says so, and
stays a finding. `accepted` is the owner's word that findings are known; it holds for the rows as they are, not for what
they may become.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from hashlib import sha256
from typing import Any

from research.governance.audit_head import AuditKey, Head
from research.store.catalog.governance import ACCEPTED, CHECKPOINT, RESTART, AuditRow

MOST_PROBLEMS = 100  # that are named; the rest is counted

REASONS = {
    "cut": "the newest entries were missing: the end was cut off, or an older backup was brought back",
    "rewritten": "the entry that the head knew was another one",
    "head": "the head was damaged, replaced or signed with another key",
    "no head": "no head was kept for entries that were there: it was removed, or the index was copied or restored here",
    "key": "the key was missing, and a new one was made",
}


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """What does not hold, from one entry to another; 0 where it is about no entry."""

    first: int
    last: int
    what: str
    digest: str = ""  # of the rows as they are

    def __str__(self) -> str:
        if not self.first:
            return self.what
        return (
            f"entry {self.first}: {self.what}"
            if self.first == self.last
            else (f"entries {self.first} to {self.last}: {self.what}")
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether every entry is the one that was written, and none is missing."""

    ok: bool
    entries: int = 0  # looked at
    first: int = 0
    last: int = 0
    head: int = 0  # the last entry that the head knows
    removed: int = 0  # old ones, for which a checkpoint stands
    problems: tuple[AuditProblem, ...] = ()
    more_problems: int = 0
    accepted: tuple[AuditProblem, ...] = ()  # that the owner knows of


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def signed(key: AuditKey, row: AuditRow, before: str) -> AuditRow:
    """The row with its hash. `before` is the hash of the row before it; a checkpoint has none."""
    return replace(row, hash=_hash(key, row, before))


def genesis(key: AuditKey, index: str) -> str:
    """What the first entry follows: entries of another index do not fit."""
    return key.sign("ctx.audit/begin", index)


def last_hash(row: AuditRow) -> str:
    """What the next entry follows."""
    return str(_data(row).get("last_hash", "")) if row.kind == CHECKPOINT else row.hash


def _hash(key: AuditKey, row: AuditRow, before: str) -> str:
    covered = [row.seq, row.at, row.kind, row.tenant, row.principal, row.decision, row.denied, row.entry]
    name = "ctx.audit/checkpoint" if row.kind == CHECKPOINT else "ctx.audit/entry"
    return key.sign(name, canonical([covered, "" if row.kind == CHECKPOINT else before]))


def _data(row: AuditRow) -> dict[str, Any]:
    try:
        found = json.loads(row.entry)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class Walk:
    """Goes along the chain, a row at a time, and notes what does not hold."""

    key: AuditKey
    before: str  # the hash that the next row follows
    seq: int = 0  # of the row before
    entries: int = 0
    first: int = 0
    removed: int = 0
    head: Head | None = None
    head_fits: bool = True
    found: list[AuditProblem] = field(default_factory=list)
    accepted: set[tuple[int, int, str]] = field(default_factory=set)

    def step(self, row: AuditRow) -> None:
        fits = hmac.compare_digest(_hash(self.key, row, self.before), row.hash)
        if row.kind == CHECKPOINT:
            self._checkpoint(row, fits)
        elif row.kind == RESTART and fits:
            self._note(row, _told(row, self.seq))
        else:
            if row.seq != self.seq + 1:
                self._note(row, f"what stood before it is missing, from {self.seq + 1} on")
            elif not fits:
                self._note(row, "it was changed, or does not follow the one before it")
            if row.kind == ACCEPTED and fits:
                self._accept(row)
        if self.head is not None and row.seq == self.head.seq:
            self.head_fits = hmac.compare_digest(last_hash(row), self.head.hash)
        self.first = self.first or row.seq
        self.entries += 1
        self.seq, self.before = row.seq, last_hash(row)

    def _checkpoint(self, row: AuditRow, fits: bool) -> None:
        data = _data(row)
        if self.seq or not fits or data.get("through") != row.seq:
            self._note(row, "it is no checkpoint of this chain")
            return
        self.removed = _count(data.get("entries"))
        if _count(data.get("problems")):
            self._note(row, f"{data['problems']} problems were known in what was removed before it")

    def _accept(self, row: AuditRow) -> None:
        for known in _data(row).get("problems", ()):
            if isinstance(known, list) and len(known) == 3:
                self.accepted.add((known[0], known[1], known[2]))

    def _note(self, row: AuditRow, what: str) -> None:
        """Neighbours with the same fault are one finding."""
        digest = _digest(row, what, self.before)
        last = self.found[-1] if self.found else None
        if last is not None and last.what == what and last.last == self.seq and row.kind not in (RESTART, CHECKPOINT):
            self.found[-1] = replace(last, last=row.seq, digest=sha256(f"{last.digest}{digest}".encode()).hexdigest())
        else:
            self.found.append(AuditProblem(row.seq, row.seq, what, digest))

    def end(self) -> Verification:
        """What is to be said of all that was seen, with the head."""
        tail = [] if self.head is None else list(self._of_head(self.head))
        known = [each for each in self.found if (each.first, each.last, each.digest) in self.accepted]
        problems = [each for each in self.found if each not in known] + tail
        return Verification(
            ok=not problems,
            entries=self.entries,
            first=self.first,
            last=self.seq,
            head=0 if self.head is None else self.head.seq,
            removed=self.removed,
            problems=tuple(problems[:MOST_PROBLEMS]),
            more_problems=max(0, len(problems) - MOST_PROBLEMS),
            accepted=tuple(known[:MOST_PROBLEMS]),
        )

    def _of_head(self, head: Head) -> Iterator[AuditProblem]:
        if self.seq < head.seq:
            yield AuditProblem(
                self.seq + 1,
                head.seq,
                "missing: the end of the audit was cut off, or an older backup of the index was brought back",
            )
        elif not self.head_fits:
            yield AuditProblem(head.seq, head.seq, "it is not the one that the head knows: the chain was rewritten")


def walk(rows: Iterable[AuditRow], begun: Walk) -> Walk:
    for row in rows:
        begun.step(row)
    return begun


def _told(row: AuditRow, before: int) -> str:
    data = _data(row)
    reason = REASONS.get(str(data.get("reason")), "the chain was begun anew")
    missing = f"; entries {before + 1} to {row.seq - 1} are not there" if row.seq > before + 1 else ""
    return f"here the chain was begun anew, because {reason}{missing}"


def _digest(row: AuditRow, what: str, before: str) -> str:
    """Of a finding: another one at the same entry is not the one that was accepted."""
    return sha256(canonical([astuple(row), what, before]).encode()).hexdigest()


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
