"""The audit: who was shown what, by which decision. It is added to and never changed, and `verify` finds out if it was.

    audit = Audit(index.paths, lambda: index.catalog, settings)
    audit.record(decision, "ask")      # before anything of it is released; what raises here releases nothing
    audit.verify().ok

An entry holds refs and what was decided about each: no text, no title, no question. It is committed in the catalog
first, then the head is moved forward; `record` returns when both are safe on disk. A process that is killed in between
leaves an entry behind the head, which is sound if its hash is.

Where the audit finds something else than it left (a restored backup, a cut tail, a lost key), it goes on with a
restart: numbers go on after the highest that is known, and what was found stays a finding of `verify` until the owner
accepts it. To stop instead would lock everybody out of an index that was brought back from a backup.

Whether the audit of an index is whole: its key, its head, and every entry between.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from research.errors import CHECK, CtxError, NothingFoundError
from research.governance.access import MemoryAccessDecision, Principal
from research.governance.audit_chain import (
    REASONS,
    AuditFiles,
    AuditKey,
    AuditProblem,
    Head,
    MemoryAccessAudit,
    Verification,
    Walk,
    entry_of,
    genesis,
    last_hash,
    new_row,
    signed,
    told_of,
    walk,
)
from research.reports import Check
from research.settings import Settings
from research.store import ACCEPTED, ACCESS, CHECKPOINT, RESTART, AuditRow, IndexPaths, index_id
from research.store import governance as rows

if TYPE_CHECKING:
    import sqlite3

    from research.store import Catalog, Reader


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
        return self.record_all([decision], purpose, trace_id=trace_id)[0]

    def record_all(
        self, decisions: Sequence[MemoryAccessDecision], purpose: str, *, trace_id: str = ""
    ) -> list[MemoryAccessAudit]:
        """Several at once, in one short write."""
        told = [told_of(decision, purpose, trace_id) for decision in decisions]
        return [entry_of(row) for row in self._append([(ACCESS, each) for each in told])]

    def entries(
        self,
        *,
        principal: str | None = None,
        tenant: str | None = None,
        since: str = "",
        denied: bool = False,
        limit: int = 100,
    ) -> list[MemoryAccessAudit]:
        """The newest first; of a principal, of a tenant, since a time in ISO 8601 (UTC), with something denied."""
        if not self._paths.exists:
            return []
        with self._catalog().snapshot() as reader:
            found = rows.list_rows(reader, tenant=tenant, principal=principal, since=since, denied=denied, limit=limit)
        return [entry_of(row) for row in found]

    def entry(self, which: str) -> MemoryAccessAudit:
        """By its number or by the id of its decision. Raises NothingFoundError."""
        found = None
        if self._paths.exists:
            with self._catalog().snapshot() as reader:
                found = rows.row_of_decision(reader, which)
                if found is None and which.isdecimal() and len(which) < 18:
                    found = rows.row_at(reader.connection, int(which))
        if found is None:
            raise NothingFoundError(f"no entry of the audit is {which!r}", hint="see them with: ctx audit list")
        return entry_of(found)

    def verify(self, *, newest: int | None = None) -> Verification:
        """Whether all entries, or the newest, are those that were written, and none is missing."""
        return verify(self._files(), self._catalog, newest=newest) if self._paths.exists else Verification(ok=True)

    def accept(self, by: Principal) -> Verification:
        """Note, as an entry, that the owner knows of what `verify` finds now. What is changed later is found again."""
        if self._paths.exists and not self.verify().ok:
            self._append([], mend=True)
            problems = [[each.first, each.last, each.digest] for each in self.verify().problems if each.digest]
            self._append([(ACCEPTED, {"principal": by.name, "tenant": by.tenant, "problems": problems})])
        return self.verify()

    def _files(self) -> AuditFiles:
        index = index_id(self._paths.root)
        if not index:
            raise CtxError(f"{self._paths.root} carries no marker of an index, and so has no audit", hint=CHECK)
        return AuditFiles(index)

    def _append(self, entries: Sequence[tuple[str, dict[str, Any]]], *, mend: bool = False) -> list[AuditRow]:
        files = self._files()
        with self._turn:
            key = files.key()
            head = None if key is None else files.head(key)
            if key is not None and head is not None and not mend:
                written = self._write(files, key, head, entries)
                if written is not None:
                    if written:
                        files.advance(key, _head_of(written[-1]))
                    return written
            with files.locked():
                return self._append_after_all(files, entries)

    def _append_after_all(self, files: AuditFiles, entries: Sequence[tuple[str, dict[str, Any]]]) -> list[AuditRow]:
        """The first entry, or one after something that does not fit. Nobody else moves the head meanwhile."""
        key = files.key()
        reason = "" if key is not None else "key"
        key = key or files.make_key()
        head = files.head(key)
        if head is None:
            with self._catalog().snapshot() as reader:
                empty = rows.last_row(reader.connection) is None
            if empty and not files.has_head():
                head, reason = Head(0, genesis(key, files.index)), ""
                files.write_head(key, head)  # before there is an entry, so that one without a head is a finding
            else:
                reason = reason or ("head" if files.has_head() else "no head")
        written = self._write(files, key, head, entries, reason=reason, restart=True) or []
        if written:
            files.write_head(key, _head_of(written[-1]))
        return written

    def _write(
        self,
        files: AuditFiles,
        key: AuditKey,
        head: Head | None,
        entries: Sequence[tuple[str, dict[str, Any]]],
        *,
        reason: str = "",
        restart: bool = False,
    ) -> list[AuditRow] | None:
        """Commit entries behind the last one. None if what is there does not fit the head; with `restart` that is
        written down first."""
        now = self._now().astimezone(UTC).isoformat(timespec="milliseconds")
        with self._catalog().short_write() as connection:
            last = rows.last_row(connection)
            reason = reason or ("" if head is None else _why_broken(connection, head, last))
            if reason and not restart:
                return None
            seq, before = (0, genesis(key, files.index)) if last is None else (last.seq, last_hash(last))
            made: list[AuditRow] = []
            if reason:
                told = {"reason": reason, "last_seq": seq, "head_seq": head.seq if head else 0, "key": key.id}
                entries = [(RESTART, told), *entries]
                seq = max(seq, head.seq if head else 0)
            for kind, data in entries:
                seq += 1
                made.append(signed(key, new_row(seq, now, kind, data), before))
                before = made[-1].hash
            rows.add_rows(connection, made)
            self._remove_old(connection, key, files.index)
        return made[1:] if reason and len(made) > 1 else made

    def _remove_old(self, connection: sqlite3.Connection, key: AuditKey, index: str) -> None:
        """Put a signed checkpoint in the place of entries that are older than `audit_days`."""
        oldest = (self._now().astimezone(UTC) - timedelta(days=self._settings.audit_days)).isoformat()
        first = rows.first_row(connection)
        if first is None or first.at >= oldest:
            return
        through = rows.last_before(connection, oldest)
        if not through or (first.kind == CHECKPOINT and first.seq == through):
            return
        walked, denied = Walk(key, genesis(key, index)), 0
        for row in rows.rows_between(connection, last=through):
            walked.step(row)
            denied += row.denied
        last = rows.row_at(connection, through)
        assert last is not None
        seen = walked.end()
        told = {
            "through": through,
            "last_hash": last_hash(last),
            "entries": seen.removed + seen.entries - (first.kind == CHECKPOINT),
            "counts": {"deny": denied},
            "problems": len(seen.problems) + seen.more_problems,
        }
        checkpoint = new_row(through, last.at, CHECKPOINT, told)
        rows.remove_through(connection, through)
        rows.add_rows(connection, [signed(key, checkpoint, "")])


def _why_broken(connection: sqlite3.Connection, head: Head, last: AuditRow | None) -> str:
    """What does not fit the head, as a reason of a restart. Looks at two rows only: `verify` looks at all."""
    if (0 if last is None else last.seq) < head.seq:
        return "cut"
    known = rows.row_at(connection, head.seq) if head.seq else None
    if known is not None:
        return "" if last_hash(known) == head.hash else "rewritten"
    first = rows.first_row(connection)
    if head.seq == 0:
        return ""
    return "" if first is not None and first.kind == CHECKPOINT and head.seq < first.seq else "rewritten"


def _head_of(row: AuditRow) -> Head:
    return Head(row.seq, row.hash)


_NEWEST = 10_000  # entries that the doctor looks at


def verify(files: AuditFiles, catalog: Callable[[], Catalog], *, newest: int | None = None) -> Verification:
    """All entries, or the newest. The head is read first: entries that come meanwhile are behind it, and fit."""
    try:
        key = files.key()
    except CtxError as error:
        return _unverifiable(f"the audit cannot be verified: {error.message}")
    head = None if key is None else files.head(key)
    there = files.has_head()
    try:
        with catalog().snapshot() as reader:
            if rows.last_row(reader.connection) is None and not there:
                return Verification(ok=True)
            if key is None:
                return _unverifiable(f"the audit cannot be verified: its key {files.key_file} is missing")
            found = _walked(reader, files, key, head, newest).end()
    except sqlite3.Error:
        return _unverifiable("the audit cannot be verified: the catalog cannot be read where it stands")
    if head is not None:
        return found
    what = REASONS["head" if there else "no head"]
    return _with(found, AuditProblem(0, 0, f"its newest entries cannot be verified: {what}"))


def check_audit(audit: Callable[[], Audit]) -> list[Check]:
    """For the doctor: the newest entries and the head. Nothing where nothing was recorded."""
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


def _walked(reader: Reader, files: AuditFiles, key: AuditKey, head: Head | None, newest: int | None) -> Walk:
    begun = Walk(key, genesis(key, files.index), head=head)
    last = rows.last_row(reader.connection)
    before = None if newest is None or last is None else rows.row_at(reader.connection, last.seq - newest)
    if before is not None and before.kind != CHECKPOINT:
        begun.before, begun.seq = before.hash, before.seq
    return walk(rows.rows_between(reader.connection, begun.seq + 1), begun)


def _with(found: Verification, problem: AuditProblem) -> Verification:
    return replace(found, ok=False, problems=(problem, *found.problems))


def _unverifiable(what: str) -> Verification:
    return Verification(ok=False, problems=(AuditProblem(0, 0, what),))
