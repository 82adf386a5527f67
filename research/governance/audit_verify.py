"""Whether the audit of an index is whole: its key, its head, and every entry between."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from research.errors import CHECK, CtxError
from research.governance.audit_chain import REASONS, AuditProblem, Verification, Walk, genesis, walk
from research.governance.audit_head import AuditFiles, AuditKey, Head
from research.reports import Check
from research.store.catalog import governance as rows
from research.store.catalog.governance import CHECKPOINT

if TYPE_CHECKING:
    from research.governance.audit import Audit
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.reader import Reader

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
    from research.store.upkeep.doctor import guarded

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
