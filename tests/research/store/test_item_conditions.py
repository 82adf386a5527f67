"""Items that are written only if something still is as it was; and removed ones, of which nothing stays on disk."""

from __future__ import annotations

import pytest
from index_making import Making

from research.store.item_writes import ParentItems, Written
from research.store.items import NewItem


def put(making: Making, stamp: str, before: str | None, text: str = "x") -> Written:
    given = ParentItems("a", stamp, [NewItem("a#full", "", text)], {"stamp": stamp}, before=before)
    return making.catalog.items.put_parents("experience", [given])


def test_only_in_place_of_what_was_read(making: Making) -> None:
    assert put(making, "1", "") == Written(added=1)
    assert put(making, "2", "") == Written(outdated=1), "somebody else was quicker"
    assert put(making, "2", "1", "y") == Written(changed=1)
    assert put(making, "3", "1") == Written(outdated=1)
    assert making.catalog.items.parent("experience", "a").metadata == {"stamp": "2"}  # type: ignore[union-attr]
    assert put(making, "4", None) == Written(changed=1)


@pytest.mark.parametrize("gone", [False, True])
def test_only_with_what_it_needs(making: Making, gone: bool) -> None:
    for parent in ("a", "b"):
        making.catalog.items.put("experience", parent, "1", [])
    if gone:
        making.catalog.items.remove_experiences(["b"])
    given = [
        ParentItems("full", "1", [NewItem("v1", "", "both")], needs={"experience": ["a", "b", "a"]}),
        ParentItems("surprise", "1", [NewItem("v2", "", "one")], needs={"experience": ["a"]}),
    ]
    written = making.catalog.items.put_parents("value", given)
    assert written == (Written(added=1, outdated=1) if gone else Written(added=2))
    assert [each.key for each in making.catalog.items.all("value")] == (["v2"] if gone else ["v1", "v2"])


def _value(key: str, experience: str, members: list[str], size: int | None = None) -> NewItem:
    metadata = {"experience": experience, "members": members, "cluster_size": size or len(members)}
    return NewItem(key, "", f"a sentence of {experience}", metadata=metadata)


def test_values_lose_what_is_removed(making: Making) -> None:
    for name in "abcdef":
        making.catalog.items.put("experience", name, "1", [NewItem(f"{name}#full", "", f"secret of {name}")])
    values = [
        _value("quotes", "a", ["a", "b", "c", "d"]),
        _value("shrinks", "b", ["a", "b", "c", "d"], 9),
        _value("too small", "c", ["a", "b", "c"]),
        _value("another", "d", ["d", "e", "f"]),
    ]
    making.catalog.items.put("value", "full", "1", values)
    before = making.catalog.items.state("value")
    assert making.catalog.items.remove_experiences(["a", "nobody"]) == (["a"], ["quotes", "too small"])
    assert making.catalog.items.state("value") != before, "whoever holds them reads again"
    left = making.catalog.items.find("value", "shrinks")
    assert left is not None
    assert left.metadata == {"experience": "b", "members": ["b", "c", "d"], "cluster_size": 8}
    assert [each.key for each in making.catalog.items.all("value")] == ["shrinks", "another"]
    assert making.catalog.items.parent("experience", "a") is None
    assert making.catalog.items.remove_experiences(["a"]) == ([], [])
