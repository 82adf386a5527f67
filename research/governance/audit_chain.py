"""The chain of the audit: what the hash of an entry covers, and what verification finds where it does not hold.

    hash = HMAC-SHA256(key, the entry and all its columns, the hash before it)

Without the key nobody can make an entry that fits, and none can be changed, taken out or moved without the one after it
showing it. The newest are held by the head, which is kept apart from the index (`audit_head`).

Three kinds of rows are marks of the chain itself. A checkpoint stands in the place of entries that were removed because
they were old, and is signed by itself: the next entry follows the last that was removed. A restart is where the chain
had to go on though what it found was not what it had left (a restored backup, a lost key, a cut tail): it says so, and
stays a finding. `accepted` is the owner's word that findings are known; it holds for the rows as they are, not for what
they may become.

An entry of the audit: what is kept of a decision, bounded, and how it stands in a row of the catalog.

What the audit keeps apart from the index, in the user's config folder: the key that signs its entries, and for each
index the head, which knows the last of them.

    audit/key                one for all indexes of a user, made with the first entry
    audit/<index id>.json    the number and hash of the last entry, signed; it only ever goes forward

Whoever may write the index but not these can change nothing without being found out. Whoever may write both, as the
user's own programs may, can put an older state of both in their place: against that no file of the same user helps.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, astuple, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from research.errors import CtxError
from research.files import create_private, locked, read_private, replace_private, user_config
from research.governance.access import MemoryAccessDecision
from research.store import ACCEPTED, ACCESS, CHECKPOINT, RESTART, AuditRow

_SCHEMA = "ctx.audit-head/1"
_KEY = re.compile(r"[0-9a-f]{64}")
_INDEX = re.compile(r"[0-9a-f]{32}")


def audit_folder() -> Path:
    return user_config().parent / "audit"


class AuditKey:
    """Signs, and tells nobody what with."""

    __slots__ = ("_sign", "id")

    def __init__(self, key: bytes) -> None:
        def sign(name: str, text: str) -> str:
            return hmac.new(key, f"{name}\n{text}".encode(), sha256).hexdigest()

        self._sign = sign  # no attribute holds the key, so nothing that lists attributes finds it
        self.id = sign("ctx.audit/key", "")[:16]

    def sign(self, name: str, text: str) -> str:
        """For one purpose each, by `name`: what is signed as one thing is not taken for another."""
        return self._sign(name, text)


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry that was acknowledged to anybody."""

    seq: int
    hash: str


class AuditFiles:
    """The key, and the head of one index."""

    def __init__(self, index: str, folder: Path | None = None) -> None:
        """`index` is its lasting id."""
        if not _INDEX.fullmatch(index):
            raise ValueError("no id of an index")
        self.index = index
        self.folder = folder or audit_folder()
        self.key_file = self.folder / "key"
        self.head_file = self.folder / f"{index}.json"

    def key(self) -> AuditKey | None:
        """None if there is none. Raises CtxError for a file that others may have seen, or that holds no key."""
        try:
            text = read_private(self.key_file).decode("latin-1").strip()
        except FileNotFoundError:
            return None
        if not _KEY.fullmatch(text):
            raise CtxError(
                f"{self.key_file} holds no key of the audit",
                hint="bring it back from a copy; or move it away, and the audit goes on with a new one, which"
                " ctx audit verify will tell",
            )
        return AuditKey(bytes.fromhex(text))

    def make_key(self) -> AuditKey:
        with suppress(FileExistsError):  # another process was first
            create_private(self.key_file, f"{secrets.token_hex(32)}\n".encode())
        made = self.key()
        assert made is not None
        return made

    def has_head(self) -> bool:
        return self.head_file.exists() or self.head_file.is_symlink()

    def head(self, key: AuditKey) -> Head | None:
        """None if it is missing, or none that this key has signed."""
        try:
            found = json.loads(read_private(self.head_file))
            head, signature = Head(int(found["seq"]), str(found["hash"])), str(found["signature"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError, CtxError):
            return None
        return head if hmac.compare_digest(signature.encode(), self._signature(key, head).encode()) else None

    def write_head(self, key: AuditKey, head: Head) -> None:
        """In the place of whatever is there; the caller holds the lock."""
        document = {"schema": _SCHEMA, "seq": head.seq, "hash": head.hash, "signature": self._signature(key, head)}
        replace_private(self.head_file, json.dumps(document).encode() + b"\n")

    def advance(self, key: AuditKey, head: Head) -> None:
        """Let the head know of this entry, unless it knows of a later one. It survives a power cut once this returns.
        A head that is not ours is left for the next entry to find."""
        with self.locked():
            known = self.head(key)
            if known is not None and known.seq < head.seq:
                self.write_head(key, head)

    def locked(self) -> AbstractContextManager[None]:
        """One process at a time. Raises BusyError."""
        return locked(self.head_file)

    def _signature(self, key: AuditKey, head: Head) -> str:
        return key.sign("ctx.audit/head", f"{self.index} {head.seq} {head.hash}")


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


MOST_REFS = 1000
_LONGEST_REF = 1000
_MOST_CHARACTERS = 200_000  # of all refs together
_LONGEST_NAME = 200
_MOST_POLICIES = 100
_LONGEST_PROBLEM = 500


@dataclass(frozen=True, slots=True)
class MemoryAccessAudit:
    """One entry: who, what for, by which decision, and what it said of each ref. `kind` is "access"; others are marks
    of the chain itself, with `note`."""

    seq: int
    at: str
    principal: str = ""
    tenant: str = ""
    owner: bool = False
    purpose: str = ""
    decision: str = ""
    action: str = ""
    policy: str = ""
    policies: tuple[str, ...] = ()
    allowed: int = 0
    redacted: int = 0
    denied: int = 0
    refs: tuple[tuple[str, str], ...] = ()
    more_refs: int = 0  # that were decided about, too, and are not listed
    trace_id: str = ""
    problem: str = ""
    kind: str = ACCESS
    note: str = ""
    hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As `ctx audit --json` and the HTTP route tell it."""
        return {**asdict(self), "refs": [{"ref": ref, "effect": effect} for ref, effect in self.refs]}


def entry_of(row: AuditRow) -> MemoryAccessAudit:
    """What a row says; of one that was damaged, what is left of it."""
    try:
        data = json.loads(row.entry)
    except (ValueError, RecursionError):
        data = None
    data = data if isinstance(data, dict) else {}
    found = data.get("counts")
    counts = found if isinstance(found, dict) else {}
    return MemoryAccessAudit(
        seq=row.seq,
        at=row.at,
        principal=row.principal,
        tenant=row.tenant,
        owner=data.get("owner") is True,
        purpose=str(data.get("purpose", "")),
        decision=row.decision,
        action=str(data.get("action", "")),
        policy=str(data.get("policy", "")),
        policies=tuple(map(str, data.get("policies") or ())),
        allowed=_number(counts.get("allow")),
        redacted=_number(counts.get("redact")),
        denied=row.denied,
        refs=tuple((str(each[0]), str(each[1])) for each in data.get("refs") or () if len(each) == 2),
        more_refs=_number(data.get("more_refs")),
        trace_id=str(data.get("trace_id", "")),
        problem=str(data.get("problem", "")),
        kind=row.kind,
        note="" if row.kind == ACCESS else row.entry,
        hash=row.hash,
    )


def told_of(decision: MemoryAccessDecision, purpose: str, trace_id: str) -> dict[str, Any]:
    """What is kept of a decision. Long refs are kept as their digest, so that the entry stays bounded."""
    refs: list[tuple[str, str]] = []
    room = _MOST_CHARACTERS
    for ruling in decision.rulings[:MOST_REFS]:
        ref = ruling.ref
        if len(ref) > _LONGEST_REF:
            ref = f"sha256:{sha256(canonical(ref).encode()).hexdigest()}"
        room -= len(ref)
        if room < 0:
            break
        refs.append((ref, ruling.effect))
    return {
        "principal": decision.principal.name,
        "tenant": decision.principal.tenant,
        "owner": decision.principal.owner,
        "purpose": _line(purpose),
        "decision": decision.id,
        "action": decision.action,
        "policy": _line(decision.policy),
        "policies": [_line(name) for name in decision.policies[:_MOST_POLICIES]],
        "counts": decision.counts(),
        "refs": refs,
        "more_refs": len(decision.rulings) - len(refs),
        "trace_id": _line(trace_id),
        "problem": decision.problem[:_LONGEST_PROBLEM],
    }


def new_row(seq: int, at: str, kind: str, data: dict[str, Any]) -> AuditRow:
    """What has a column of its own stands there alone; the hash covers it."""
    data = dict(data)
    tenant, principal, decision = (_line(str(data.pop(name, ""))) for name in ("tenant", "principal", "decision"))
    denied = int(data.get("counts", {}).get("deny", 0))
    return AuditRow(seq, at, kind, tenant, principal, decision, denied, "", canonical(data))


def _line(text: str) -> str:
    """A name on one line, as the column takes it."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_LONGEST_NAME].strip()


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
