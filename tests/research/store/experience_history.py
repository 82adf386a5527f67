"""Experiences and values that come and go: a history for any catalog, SQLite's or PostgreSQL's."""

from __future__ import annotations

from typing import Any

from research.store.catalog import items
from research.store.catalog.item_writes import ParentItems, drop_experiences, put_parents, values_of_nobody
from research.store.catalog.items import NewItem

TIME = "2026-01-01T00:00:00+00:00"


def experience(catalog: Any) -> object:
    """What is left after some were told, closed, clustered and removed."""
    told = [
        ParentItems(name, "1", [NewItem(f"{name}#full", "", f"lesson of {name}", TIME, {"axis": "full"})], before="")
        for name in "abcde"
    ]
    written = [put_parents(catalog, "experience", told), put_parents(catalog, "experience", told)]
    values = [
        NewItem(key, "", f"lesson of {quoted}", TIME, {"experience": quoted, "members": members, "cluster_size": 4})
        for key, quoted, members in (("v1", "a", list("abcd")), ("v2", "b", list("abcd")))
    ]
    parents = [
        ParentItems("full", "1", values, needs={"experience": list("abcd")}),
        ParentItems("surprise", "1", [], needs={"experience": ["nobody"]}),
    ]
    written.append(put_parents(catalog, "value", parents))
    with catalog.transaction() as connection:
        gone = drop_experiences(connection, ["a", "nobody"])
    catalog.connection.execute("DELETE FROM item_parents WHERE kind = 'experience' AND parent = 'b'")
    strangers = values_of_nobody(catalog.connection)
    left = [each for kind in ("experience", "value") for each in items.list_items(catalog, kind)]
    return written, gone, strangers, left, [each.parent for each in items.item_parents(catalog, "experience")]
