"""The chain of the audit: what the hash of an entry covers, where key and head are kept, and what verification finds.

    hash = HMAC-SHA256(key, the entry and all its columns, the hash before it)

Without the key nobody can make an entry that fits, and none can be changed, taken out or moved without the one after it
showing it. The newest are held by the head. Key and head lie in the user's config folder, apart from the index:

    audit/key                one for all indexes of a user, made with the first entry
    audit/<index id>.json    the number and hash of the last entry, signed; it only ever goes forward

Whoever may write the index but not these can change nothing without being found out. Whoever may write both, as the
user's own programs may, can put an older state of both in their place: against that no file of the same user helps.

Three kinds of rows are marks of the chain itself. A checkpoint stands in the place of entries that were removed because
they were old, and is signed by itself: the next entry follows the last that was removed. A restart is where the chain
had to go on though what it found was not what it had left (a restored backup, a lost key, a cut tail): numbers go on
after the highest that is known. To stop instead would lock everybody out of an index that was brought back from a
backup. It stays a finding until the owner accepts it.
`accepted` holds for the rows as they are, not for what they may become.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.errors import CtxError
from research.files import create_private, read_private, replace_private, user_config
from research.store import ACCEPTED, CHECKPOINT, RESTART, AuditRow
from research.store import governance as rows

if TYPE_CHECKING:
    from research.store import Reader, Writer

Sign = Callable[[str, str], str]
"""HMAC of a text for one purpose, by name: what is signed as one thing is not taken for another."""

MOST_PROBLEMS = 100  # that are named; the rest is counted
_KEY = re.compile(r"[0-9a-f]{64}")

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
        which = f"entry {self.first}" if self.first == self.last else f"entries {self.first} to {self.last}"
        return f"{which}: {self.what}"


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


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry that was acknowledged to anybody."""

    seq: int
    hash: str


def audit_folder() -> Path:
    return user_config().parent / "audit"


class AuditFiles:
    """The key, and the head of one index, by the index's lasting id."""

    def __init__(self, index: str) -> None:
        self.index = index
        self.key_file = audit_folder() / "key"
        self.head_file = audit_folder() / f"{index}.json"

    def signer(self) -> Sign | None:
        """Return what signs with the key, None without one. Raises CtxError for a file that others may have seen, or
        that holds no key."""
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
        return lambda name, signed: hmac.new(bytes.fromhex(text), f"{name}\n{signed}".encode(), sha256).hexdigest()

    def new_signer(self) -> Sign:
        """Make a key, unless a process with another index was first, and return what signs with it."""
        with suppress(FileExistsError):
            create_private(self.key_file, f"{secrets.token_hex(32)}\n".encode())
        made = self.signer()
        assert made is not None
        return made

    @property
    def has_head(self) -> bool:
        return self.head_file.exists() or self.head_file.is_symlink()

    def head(self, sign: Sign) -> Head | None:
        """Return the head; None if it is missing, or none that this key has signed."""
        try:
            found = json.loads(read_private(self.head_file))
            head, signature = Head(int(found["seq"]), str(found["hash"])), str(found["signature"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError, CtxError):
            return None
        return head if signature == self._signature(sign, head) else None

    def write_head(self, sign: Sign, head: Head) -> None:
        """Put a head in the place of whatever is there; the caller holds the lock. It survives a power cut once this
        returns."""
        content = {"schema": "ctx.audit-head/1", **asdict(head), "signature": self._signature(sign, head)}
        replace_private(self.head_file, json.dumps(content).encode() + b"\n")

    def _signature(self, sign: Sign, head: Head) -> str:
        return sign("ctx.audit/head", f"{self.index} {head.seq} {head.hash}")


def verify_chain(
    reader: Reader, files: AuditFiles, sign: Sign | None, head: Head | None, newest: int | None
) -> Verification:
    """Verify all rows of the catalog, or the newest, against the head."""
    last = rows.last_row(reader.connection)
    if last is None and not files.has_head:
        return Verification(ok=True)
    if sign is None:
        return unverifiable(f"the audit cannot be verified: its key {files.key_file} is missing")
    start = None if newest is None or last is None else rows.row_at(reader.connection, last.seq - newest)
    start = None if start is not None and start.kind == CHECKPOINT else start
    rest = rows.rows_between(reader.connection, start.seq + 1 if start else 1)
    found = check_chain(rest, sign, files.index, head, start)
    if head is not None:
        return found
    why = REASONS["head" if files.has_head else "no head"]
    return unverifiable(f"its newest entries cannot be verified: {why}", found)


def unverifiable(what: str, rest: Verification | None = None) -> Verification:
    rest = rest or Verification(ok=False)
    return replace(rest, ok=False, problems=(AuditProblem(0, 0, what), *rest.problems))


def check_chain(
    chain: Iterable[AuditRow], sign: Sign, index: str, head: Head | None = None, start: AuditRow | None = None
) -> Verification:
    """Go along the rows that follow `start`, or the beginning, and note what does not hold."""
    before, last = (genesis(sign, index), 0) if start is None else (start.hash, start.seq)
    first = entries = removed = 0
    head_fits = True
    found: list[AuditProblem] = []
    accepted: set[tuple[object, ...]] = set()
    for row in chain:
        data, fits = data_of(row), row.hash == hash_of(sign, row, before)
        if what := _fault(row, data, last, fits=fits):
            _note(found, row, what, last, before)
        if row.kind == CHECKPOINT and fits:
            removed = number_of(data.get("entries"))
        elif row.kind == ACCEPTED and fits:
            accepted.update(tuple(known) for known in data["problems"])
        if head is not None and row.seq == head.seq:
            head_fits = hash_after(row) == head.hash
        first = first or row.seq
        entries, last, before = entries + 1, row.seq, hash_after(row)
    known_ones = [each for each in found if (each.first, each.last, each.digest) in accepted]
    problems = [each for each in found if each not in known_ones]
    if head is not None and last < head.seq:
        what = "missing: the end of the audit was cut off, or an older backup of the index was brought back"
        problems.append(AuditProblem(last + 1, head.seq, what))
    elif head is not None and not head_fits:
        what = "it is not the one that the head knows: the chain was rewritten"
        problems.append(AuditProblem(head.seq, head.seq, what))
    return Verification(
        ok=not problems,
        entries=entries,
        first=first,
        last=last,
        head=head.seq if head else 0,
        removed=removed,
        problems=tuple(problems[:MOST_PROBLEMS]),
        more_problems=max(0, len(problems) - MOST_PROBLEMS),
        accepted=tuple(known_ones[:MOST_PROBLEMS]),
    )


def _fault(row: AuditRow, data: Mapping[str, Any], last: int, *, fits: bool) -> str:
    """Return what is wrong with a row that stands behind number `last`; empty if nothing is."""
    if row.kind == CHECKPOINT:
        if last or not fits or data.get("through") != row.seq:
            return "it is no checkpoint of this chain"
        known = number_of(data.get("problems"))
        return f"{known} problems were known in what was removed before it" if known else ""
    if row.kind == RESTART and fits:
        reason = REASONS.get(str(data.get("reason")), "the chain was begun anew")
        gap = f"; entries {last + 1} to {row.seq - 1} are not there" if row.seq > last + 1 else ""
        return f"here the chain was begun anew, because {reason}{gap}"
    if row.seq != last + 1:
        return f"what stood before it is missing, from {last + 1} on"
    return "" if fits else "it was changed, or does not follow the one before it"


def _note(found: list[AuditProblem], row: AuditRow, what: str, seq_before: int, hash_before: str) -> None:
    """Neighbours with the same fault are one problem. Its digest is of the rows as they are: another fault at the same
    entry is not the one that was accepted."""
    digest = sha256(canonical([astuple(row), what, hash_before]).encode()).hexdigest()
    last = found[-1] if found else None
    if last is not None and last.what == what and last.last == seq_before and row.kind not in (RESTART, CHECKPOINT):
        found[-1] = replace(last, last=row.seq, digest=sha256(f"{last.digest}{digest}".encode()).hexdigest())
    else:
        found.append(AuditProblem(row.seq, row.seq, what, digest))


def why_broken(connection: Writer, head: Head, last: AuditRow | None) -> str:
    """Return what does not fit the head, as a reason of a restart. Looks at two rows only: `verify` looks at all."""
    if (last.seq if last else 0) < head.seq:
        return "cut"
    if head.seq == 0:
        return ""
    known = rows.row_at(connection, head.seq)
    if known is not None:
        return "" if hash_after(known) == head.hash else "rewritten"
    first = rows.first_row(connection)
    return "" if first is not None and first.kind == CHECKPOINT and head.seq < first.seq else "rewritten"


def genesis(sign: Sign, index: str) -> str:
    """Return what the first entry follows: entries of another index do not fit."""
    return sign("ctx.audit/begin", index)


def hash_of(sign: Sign, row: AuditRow, before: str) -> str:
    covered = [row.seq, row.at, row.kind, row.tenant, row.principal, row.decision, row.denied, row.entry]
    if row.kind == CHECKPOINT:
        return sign("ctx.audit/checkpoint", canonical([covered, ""]))
    return sign("ctx.audit/entry", canonical([covered, before]))


def hash_after(row: AuditRow) -> str:
    """Return what the next entry follows."""
    return str(data_of(row).get("last_hash", "")) if row.kind == CHECKPOINT else row.hash


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def data_of(row: AuditRow) -> dict[str, Any]:
    """Return what an entry holds; nothing of one that was damaged."""
    try:
        found = json.loads(row.entry)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def number_of(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
