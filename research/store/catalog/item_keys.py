"""Which items a parent has: all of their keys at once, for parents of very many."""

from __future__ import annotations

from research.store.catalog.reader import Reader


def keys_of_parent(reader: Reader, kind: str, parent: str) -> list[str]:
    rows = reader.connection.execute("SELECT key FROM items WHERE kind = ? AND parent = ?", (kind, parent))
    return [str(row[0]) for row in rows]


def count_of_parents(reader: Reader, kind: str) -> dict[str, int]:
    """Parent → how many items it has; also those that have none."""
    rows = reader.connection.execute(
        "SELECT p.parent, COUNT(i.item_no) FROM item_parents p"
        " LEFT JOIN items i ON i.kind = p.kind AND i.parent = p.parent WHERE p.kind = ?"
        " GROUP BY p.parent ORDER BY p.parent",
        (kind,),
    )
    return {str(row[0]): int(row[1]) for row in rows}
