"""The audit: who was shown what, by which decision. It is added to and never changed, and `verify` finds out if it was.

    audit = Audit(index.paths, lambda: index.catalog, settings)
    audit.record(decision, "ask")      # before anything of it is released; what raises here releases nothing
    audit.verify().ok

An entry holds refs and what was decided about each: no text, no title, no question. Entries are a chain: the hash of
each covers all its columns and the hash before it. The head, in the user's config folder and so apart from the index,
remembers the end of the chain, and where it begins:

    audit/<index id>.json    begin, before, last: the number and hash of an entry each

Whoever may write the index but not the head can change, take out, move or add nothing without being found out. Against
who may write both, as the user's own programs may, no file of the same user helps.

The head is written first and the entry committed then, so a process that is killed in between leaves a catalog that
ends with `before`; that entry was acknowledged to nobody. The chain begins behind entries that were removed because
they are old, and behind those that the owner has accepted as they are.

Where the catalog does not end as the head has it (a restored backup, a lost head), the record goes on: to stop instead
would lock everybody out of an index that was brought back from a backup. An entry of the kind "restart" says so, and is
a finding until the owner accepts it. Numbers go on behind the highest that is known.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from research.errors import CHECK, CtxError, NothingFoundError
from research.files import locked, read_private, replace_private, user_config
from research.governance.access import MemoryAccessAudit, MemoryAccessDecision, Principal
from research.reports import Check
from research.settings import Settings
from research.store import DriverError, IndexPaths, governance, index_id

if TYPE_CHECKING:
    from research.store import Catalog, Writer

MOST_REFS = 1000
_LONGEST_REF = 1000
_MOST_CHARACTERS = 200_000  # of all refs together
_LONGEST_NAME = 200
_MOST_POLICIES = 100
_LONGEST_PROBLEM = 500
_MOST_PROBLEMS = 100  # that are named; the rest is counted
_NEWEST = 10_000  # entries that the doctor looks at
_OTHER_END = "the newest entries were not those that were last written here"
_NO_HEAD = "their head is missing or damaged: it was removed, or the index was copied or restored here"


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """What does not hold, from one entry to another; 0 where it is about no entry."""

    first: int
    last: int
    what: str

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
    problems: tuple[AuditProblem, ...] = ()
    more_problems: int = 0


class _End(NamedTuple):
    """Where a chain stands: the number and hash of an entry."""

    seq: int
    hash: str


class _Head(NamedTuple):
    begin: _End
    before: _End
    last: _End


class Audit:
    """The audit of one index. May be used by many threads, and by many processes beside each other."""

    def __init__(
        self,
        paths: IndexPaths,
        catalog: Callable[[], Catalog],
        settings: Settings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._paths, self._catalog, self._settings, self._now = paths, catalog, settings, now
        self._turn = threading.Lock()  # threads wait here, which costs nothing; processes wait at a file

    def record(self, decision: MemoryAccessDecision, purpose: str, *, trace_id: str = "") -> MemoryAccessAudit:
        """Add an entry for a decision. Raises CtxError if it cannot be kept (BusyError, a full disk, a folder that may
        only be read): then nothing of it may be released."""
        return self._append(governance.ACCESS, _kept(decision, purpose, trace_id))

    def entries(
        self,
        *,
        principal: str | None = None,
        tenant: str | None = None,
        since: str = "",
        denied: bool = False,
        limit: int = 100,
    ) -> list[MemoryAccessAudit]:
        """List entries, the newest first; of a principal, of a tenant, since a time in ISO 8601 (UTC), with something
        denied."""
        if not self._paths.exists:
            return []
        with self._catalog().snapshot() as reader:
            found = reader.audit.select(tenant=tenant, principal=principal, since=since, denied=denied, limit=limit)
        return [_entry_of(row) for row in found]

    def entry(self, which: str) -> MemoryAccessAudit:
        """Return an entry by its number or by the id of its decision. Raises NothingFoundError."""
        found = None
        if self._paths.exists:
            with self._catalog().snapshot() as reader:
                found = reader.audit.of_decision(which)
                if found is None and which.isdecimal() and len(which) < 18:
                    found = reader.audit.at(int(which))
        if found is None:
            raise NothingFoundError(f"no entry of the audit is {which!r}", hint="see them with: ctx audit list")
        return _entry_of(found)

    def verify(self, *, newest: int | None = None) -> Verification:
        """Return whether all entries, or the newest, are those that were written, and none is missing."""
        try:
            if not self._paths.exists or self._is_new():
                return Verification(ok=True)
            with ExitStack() as stack:
                with self._alone() as (file, index):
                    head = _read_head(file)
                    reader = stack.enter_context(self._catalog().snapshot())
                    last = reader.audit.last()
                begin = head.begin if head else _End(0, _genesis(index))
                if newest is not None and last is not None and last.seq - newest > begin.seq:
                    start = reader.audit.at(last.seq - newest)
                    begin = _End(start.seq, start.hash) if start else begin
                found = _check_chain(reader.audit.between(begin.seq + 1), begin, head)
            if head is not None:
                return found
            what = f"its newest entries cannot be verified: {_NO_HEAD}"
            return replace(found, ok=False, problems=(AuditProblem(0, 0, what), *found.problems))
        except CtxError as error:
            what = error.message
        except DriverError:
            what = "the catalog cannot be read where it stands"
        return Verification(ok=False, problems=(AuditProblem(0, 0, f"the audit cannot be verified: {what}"),))

    def accept(self, by: Principal) -> Verification:
        """Begin the chain anew behind what is there, with an entry that says who knows of what `verify` finds."""
        if self._paths.exists and not self.verify().ok:
            self._append(governance.ACCEPTED, {"principal": by.name, "tenant": by.tenant})
        return self.verify()

    def _is_new(self) -> bool:
        """Whether nothing was ever recorded; asked without a lock, which would leave a file."""
        if head_file(index_id(self._paths.root)).exists():
            return False
        with self._catalog().snapshot() as reader:
            return reader.audit.last() is None

    @contextmanager
    def _alone(self) -> Iterator[tuple[Path, str]]:
        """Yield the head's file and the index's lasting id while nobody else writes either."""
        index = index_id(self._paths.root)
        if not index:
            raise CtxError(f"{self._paths.root} carries no marker of an index, and so has no audit", hint=CHECK)
        file = head_file(index)
        with self._turn, locked(file):
            yield file, index

    def _append(self, kind: str, data: dict[str, Any]) -> MemoryAccessAudit:
        """Write an entry, after a restart where the catalog does not end as the head has it."""
        with self._alone() as (file, index):
            with self._catalog().short_write() as connection:
                last, head = connection.audit.last(), _read_head(file)
                end = _End(last.seq, last.hash) if last else _End(0, _genesis(index))
                if head is None and last is None and not file.exists():
                    head = _Head(end, end, end)
                begin = head.begin if head else _End(0, _genesis(index))
                fits = head is not None and end in (head.before, head.last)
                if head is not None and not fits:
                    end = _End(max(end.seq, head.last.seq), end.hash)
                at = self._now().astimezone(UTC)
                made = []
                if kind == governance.ACCEPTED:
                    begin = end
                elif not fits:
                    made.append(_next_row(end, at, governance.RESTART, {"reason": _OTHER_END if head else _NO_HEAD}))
                made.append(_next_row(_End(made[0].seq, made[0].hash) if made else end, at, kind, data))
                begin, after = self._remove_old(connection, begin, at), _End(made[-1].seq, made[-1].hash)
                _write_head(file, _Head(begin, end, after))
                connection.audit.add(made)
            _write_head(file, _Head(begin, after, after))
        return _entry_of(made[-1])

    def _remove_old(self, connection: Writer, begin: _End, at: datetime) -> _End:
        """Remove entries that are older than `audit_days`, if nothing is found among them, and return where the chain
        then begins."""
        through = connection.audit.last_before((at - timedelta(days=self._settings.audit_days)).isoformat())
        if through > begin.seq:
            if not _check_chain(connection.audit.between(begin.seq + 1, through), begin).ok:
                return begin
            last = connection.audit.at(through)
            begin = _End(through, last.hash) if last else begin
        if through:
            connection.audit.remove_through(through)
        return begin


def head_file(index: str) -> Path:
    """Return where the head of an index is kept, by the index's lasting id."""
    return user_config().parent / "audit" / f"{index}.json"


def _read_head(file: Path) -> _Head | None:
    try:
        found = json.loads(read_private(file))
        return _Head(*(_End(int(found[name][0]), str(found[name][1])) for name in _Head._fields))
    except (FileNotFoundError, ValueError, LookupError, TypeError, RecursionError, CtxError):
        return None


def _write_head(file: Path, head: _Head) -> None:
    """Put a head in the place of whatever is there; it survives a power cut once this returns."""
    replace_private(file, json.dumps({"schema": "ctx.audit-head/2", **head._asdict()}).encode() + b"\n")


def _check_chain(chain: Iterable[governance.AuditRow], begin: _End, head: _Head | None = None) -> Verification:
    """Go along the rows that follow `begin`, and note what does not hold; without a head, of the rows alone."""
    last, first, entries = begin, 0, 0
    found: list[AuditProblem] = []
    for row in chain:
        if what := _fault(row, last):
            if found and (found[-1].what, found[-1].last) == (what, last.seq):
                found[-1] = replace(found[-1], last=row.seq)
            else:
                found.append(AuditProblem(row.seq, row.seq, what))
        first, entries, last = first or row.seq, entries + 1, _End(row.seq, row.hash)
    if head is not None and last not in (head.before, head.last):
        if last.seq < head.last.seq:
            what = "missing: the end of the audit was cut off, or an older backup of the index was brought back"
            found.append(AuditProblem(last.seq + 1, head.last.seq, what))
        else:
            what = "it is not the one that the head knows: the chain was rewritten or added to"
            found.append(AuditProblem(head.last.seq, last.seq, what))
    return Verification(
        ok=not found,
        entries=entries,
        first=first,
        last=last.seq,
        head=head.last.seq if head else 0,
        problems=tuple(found[:_MOST_PROBLEMS]),
        more_problems=max(0, len(found) - _MOST_PROBLEMS),
    )


def _fault(row: governance.AuditRow, last: _End) -> str:
    """Return what is wrong with a row that stands behind another; empty if nothing is."""
    fits = row.hash == _hash_of(row, last.hash)
    gap = row.seq != last.seq + 1
    if row.kind == governance.RESTART and fits:
        missing = f"; entries {last.seq + 1} to {row.seq - 1} are not there" if gap else ""
        return f"here the record went on, because {_data_of(row).get('reason')}{missing}"
    if gap:
        return f"what stood before it is missing, from {last.seq + 1} on"
    return "" if fits else "it was changed, or does not follow the one before it"


def _genesis(index: str) -> str:
    """Return what the first entry follows: entries of another index do not fit."""
    return sha256(f"ctx.audit {index}".encode()).hexdigest()


def _hash_of(row: governance.AuditRow, before: str) -> str:
    columns = [row.seq, row.at, row.kind, row.tenant, row.principal, row.decision, row.denied, row.entry]
    return sha256(_canonical([columns, before]).encode()).hexdigest()


def _canonical(value: Any) -> str:
    # A row that somebody changed may hold anything, bytes too, and has to come out as changed.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)


def _data_of(row: governance.AuditRow) -> dict[str, Any]:
    """Return what an entry holds; nothing of one that was damaged."""
    try:
        found = json.loads(row.entry)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _number_of(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def check_audit(audit: Callable[[], Audit]) -> list[Check]:
    """Check the newest entries and the head, for the doctor. Nothing is said where nothing was recorded."""
    from research.store import guarded

    def check() -> Iterator[Check]:
        found = audit().verify(newest=_NEWEST)
        if not found.ok:
            count = len(found.problems) + found.more_problems
            more = f" (and {count - 1} more)" if count > 1 else ""
            yield Check("audit", "error", f"{found.problems[0]}{more}", "ctx audit verify")
        elif found.entries:
            yield Check("audit", "ok", f"the newest {found.entries:,} entries are as they were written")

    return guarded("audit", check, CHECK)


def _entry_of(row: governance.AuditRow) -> MemoryAccessAudit:
    """Return what a row says; of one that was damaged, what is left of it."""
    data = _data_of(row)
    counts = data.get("counts")
    counts = counts if isinstance(counts, dict) else {}
    return MemoryAccessAudit(
        seq=row.seq,
        at=row.at,
        principal=row.principal,
        tenant=row.tenant,
        owner=data.get("owner") is True,
        decision=row.decision,
        policies=tuple(map(str, data.get("policies") or ())),
        allowed=_number_of(counts.get("allow")),
        redacted=_number_of(counts.get("redact")),
        denied=row.denied,
        refs=tuple((str(each[0]), str(each[1])) for each in data.get("refs") or () if len(each) == 2),
        more_refs=_number_of(data.get("more_refs")),
        kind=row.kind,
        note="" if row.kind == governance.ACCESS else row.entry,
        hash=row.hash,
        **{name: str(data.get(name, "")) for name in ("purpose", "action", "policy", "trace_id", "problem")},
    )


def _kept(decision: MemoryAccessDecision, purpose: str, trace_id: str) -> dict[str, Any]:
    """Return what is kept of a decision. Long refs are kept as their digest, so that the entry stays bounded."""
    refs: list[tuple[str, str]] = []
    room = _MOST_CHARACTERS
    for ruling in decision.rulings[:MOST_REFS]:
        ref = ruling.ref
        if len(ref) > _LONGEST_REF:
            ref = f"sha256:{sha256(_canonical(ref).encode()).hexdigest()}"
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


def _next_row(before: _End, at: datetime, kind: str, data: dict[str, Any]) -> governance.AuditRow:
    """Return the row that follows another. What has a column of its own stands there alone."""
    data = dict(data)
    tenant, principal, decision = (_line(str(data.pop(name, ""))) for name in ("tenant", "principal", "decision"))
    denied = int(data.get("counts", {}).get("deny", 0))
    written = at.isoformat(timespec="milliseconds")
    row = governance.AuditRow(before.seq + 1, written, kind, tenant, principal, decision, denied, "", _canonical(data))
    return replace(row, hash=_hash_of(row, before.hash))


def _line(text: str) -> str:
    """Return a name on one line, as the column takes it."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_LONGEST_NAME].strip()
