"""Experiences and values that come and go: a history for any catalog, SQLite's or PostgreSQL's."""

from __future__ import annotations

from typing import Any

from research.store.item_writes import ParentItems
from research.store.items import NewItem

TIME = "2026-01-01T00:00:00+00:00"


def experience(catalog: Any) -> object:
    """What is left after some were told, closed, clustered and removed."""
    told = [
        ParentItems(name, "1", [NewItem(f"{name}#full", "", f"lesson of {name}", TIME, {"axis": "full"})], before="")
        for name in "abcde"
    ]
    written = [catalog.items.put_parents("experience", told), catalog.items.put_parents("experience", told)]
    values = [
        NewItem(key, "", f"lesson of {quoted}", TIME, {"experience": quoted, "members": members, "cluster_size": 4})
        for key, quoted, members in (("v1", "a", list("abcd")), ("v2", "b", list("abcd")))
    ]
    parents = [
        ParentItems("full", "1", values, needs={"experience": list("abcd")}),
        ParentItems("surprise", "1", [], needs={"experience": ["nobody"]}),
    ]
    written.append(catalog.items.put_parents("value", parents))
    with catalog.transaction() as connection:
        gone = connection.items.drop_experiences(["a", "nobody"])
    catalog.execute("DELETE FROM item_parents WHERE kind = 'experience' AND parent = 'b'")
    strangers = catalog.items.values_of_nobody()
    left = [each for kind in ("experience", "value") for each in catalog.items.all(kind)]
    return written, gone, strangers, left, [each.parent for each in catalog.items.parents("experience")]
