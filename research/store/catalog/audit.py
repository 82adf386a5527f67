"""The rows of the audit: who saw what, in the order in which it was decided. What their hashes mean is not known here.

Rows are added and, once they are old, replaced by a checkpoint; none is ever changed. Writing is part of the caller's
transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from research.store.catalog.reader import Connection, Reader

ACCESS, CHECKPOINT, RESTART, ACCEPTED = KINDS = ("access", "checkpoint", "restart", "accepted")
LONGEST_ENTRY = 1 << 20  # characters of JSON

_COLUMNS = "seq, at, kind, tenant, principal, decision, denied, hash, entry"
_BATCH = 1000
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class AuditRow:
    seq: int
    at: str
    kind: str
    tenant: str
    principal: str
    decision: str
    denied: int
    hash: str
    entry: str  # JSON


def add_rows(connection: sqlite3.Connection, rows: Sequence[AuditRow]) -> None:
    connection.executemany(
        f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [astuple(row) for row in rows]
    )


def remove_through(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("DELETE FROM audit WHERE seq <= ?", (seq,))


def first_row(connection: Connection) -> AuditRow | None:
    return _one(connection, f"SELECT {_COLUMNS} FROM audit ORDER BY seq LIMIT 1")


def last_row(connection: Connection) -> AuditRow | None:
    return _one(connection, f"SELECT {_COLUMNS} FROM audit ORDER BY seq DESC LIMIT 1")


def row_at(connection: Connection, seq: int) -> AuditRow | None:
    return _one(connection, f"SELECT {_COLUMNS} FROM audit WHERE seq = ?", (seq,))


def last_before(connection: Connection, at: str) -> int:
    """The last of the rows at the beginning that are all older than this; 0 if there is none."""
    row = connection.execute(
        "SELECT MAX(seq) FROM audit WHERE seq < COALESCE((SELECT MIN(seq) FROM audit WHERE at >= ?), ?)", (at, _ALL)
    ).fetchone()
    return int(row[0] or 0)


def rows_between(connection: Connection, first: int = 0, last: int = _ALL) -> Iterator[AuditRow]:
    """In order, some at a time: there may be more of them than one wants to hold."""
    while True:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM audit WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?", (first, last, _BATCH)
        ).fetchall()
        for row in rows:
            yield _row(row)
        if len(rows) < _BATCH:
            return
        first = int(rows[-1][0]) + 1


def list_rows(
    reader: Reader,
    *,
    tenant: str | None = None,
    principal: str | None = None,
    since: str = "",
    denied: bool = False,
    limit: int = 100,
) -> list[AuditRow]:
    """Those that fit, the newest first."""
    rows = reader.connection.execute(
        f"SELECT {_COLUMNS} FROM audit WHERE at >= ? AND denied >= ? AND (tenant = ? OR ? = 1)"
        " AND (principal = ? OR ? = 1) ORDER BY seq DESC LIMIT ?",
        (since, int(denied), tenant or "", int(tenant is None), principal or "", int(principal is None), limit),
    )
    return [_row(row) for row in rows]


def row_of_decision(reader: Reader, decision: str) -> AuditRow | None:
    """The newest, should there be several: things may be looked at again under one decision."""
    return _one(
        reader.connection, f"SELECT {_COLUMNS} FROM audit WHERE decision = ? ORDER BY seq DESC LIMIT 1", (decision,)
    )


def _one(connection: Connection, sql: str, parameters: Sequence[object] = ()) -> AuditRow | None:
    row = connection.execute(sql, parameters).fetchone()
    return None if row is None else _row(row)


def _row(row: Sequence[object]) -> AuditRow:
    """As it stands there: what is no number of ours fits no hash either."""
    seq, at, kind, tenant, principal, decision, denied, digest, entry = row
    return AuditRow(
        seq=seq if isinstance(seq, int) else -1,
        at=str(at),
        kind=str(kind),
        tenant=str(tenant),
        principal=str(principal),
        decision=str(decision),
        denied=denied if isinstance(denied, int) else -1,
        hash=str(digest),
        entry=str(entry),
    )
