"""Items that come, change and go: a history for any catalog, SQLite's or PostgreSQL's."""

from __future__ import annotations

from typing import Any

import numpy as np
from index_making import DIM

from research.store.catalog import items
from research.store.catalog.item_writes import (
    add_items,
    put_items,
    remove_items,
    remove_parents,
    write_item_vectors,
)
from research.store.catalog.items import NewItem
from research.store.fulltext.rebuild import rows_disagree
from research.store.upkeep import integrity

TIME = "2026-01-01T00:00:00+00:00"


def code(catalog: Any) -> object:
    """What is told of files that were read, read again, and removed."""
    first = [_item("/a.py#one", "one"), _item("/a.py#two", "two"), _item("/a.py#three", "three")]
    told: list[object] = [put_items(catalog, "code", "/a.py", "1", first)]
    told.append(put_items(catalog, "code", "/b.py", "1", [_item("/b.py#one", "one"), _item("/a.py#one", "taken")]))
    numbers = items.numbers_without_vectors(catalog, "code", "made-up")
    vectors = np.eye(DIM, dtype=np.float32)[: len(numbers)]
    write_item_vectors(catalog, "made-up", numbers, vectors)
    again = [_item("/a.py#one", "one", line=3), _item("/a.py#two", "other words"), _item("/a.py#four", "four")]
    told += [put_items(catalog, "code", "/a.py", "2", again), *_seen(catalog)]
    told += [add_items(catalog, "commit", "/repo", "1", [_item("abc", "fix"), _item("def", "break")])]
    told += [remove_items(catalog, "commit", ["abc", "nobody"]), items.keys_of_parent(catalog, "commit", "/repo")]
    told += [remove_parents(catalog, "code", ["/b.py"]), *_seen(catalog)]
    catalog.connection.execute("UPDATE item_vectors SET vector = ? WHERE item_no = 1", (b"short",))
    problems = list(integrity.check_vectors(catalog))
    for problem in problems:
        assert problem.fix is not None
        problem.fix(catalog)
    return [*told, [problem.message for problem in problems], *_seen(catalog)]


def _item(key: str, text: str, **metadata: object) -> NewItem:
    return NewItem(key, key, text, TIME, metadata, words="more", embedded="", prior=-0.5)


def _seen(catalog: Any) -> list[object]:
    """Everything that reading tells, without when it was written."""
    waiting = items.numbers_without_vectors(catalog, "code", "made-up")
    parents = [(each.parent, each.stamp, each.metadata) for each in items.item_parents(catalog, "code", below="/")]
    found = items.get_parent(catalog, "code", "/a.py")
    state = items.kind_state(catalog, "code")
    return [
        list(items.list_items(catalog, "code")),
        list(items.list_items(catalog, "code", parent="/a.py")),
        items.find_item(catalog, "code", "/a.py#one"),
        items.find_items_ending(catalog, "code", "#one", 2),
        items.known_keys(catalog, "code", ["/a.py#one", "nobody"]),
        (state.last_seq, state.count),
        items.item_measures(catalog, "code"),
        items.changed_after(catalog, "code", 3),
        items.mean_length(catalog),
        list(items.item_metadata(catalog, "code")),
        items.item_times(catalog, "code"),
        parents,
        found and (found.stamp, found.metadata),
        (items.count_items(catalog), items.count_parents(catalog, "code"), items.count_without_vectors(catalog)),
        items.count_parents(catalog, "code", below="/b.py"),
        items.count_of_parents(catalog, "code"),
        items.pending_items(catalog, waiting),
        [
            each.tolist() if isinstance(each, np.ndarray) else each
            for each in items.item_vectors(catalog, "code", "made-up")
        ],
        items.item_vectors(catalog, "code", "made-up", [1, 2])[0],
        sorted(map(tuple, items.item_texts(catalog.connection, [1, 2]))),
        rows_disagree(catalog),
    ]
