"""Items that come, change and go: a history for any catalog, SQLite's or PostgreSQL's."""

from __future__ import annotations

from typing import Any

import numpy as np
from index_making import DIM

from research.store import integrity
from research.store.fulltext import rows_disagree
from research.store.items import NewItem

TIME = "2026-01-01T00:00:00+00:00"


def code(catalog: Any) -> object:
    """What is told of files that were read, read again, and removed."""
    first = [_item("/a.py#one", "one"), _item("/a.py#two", "two"), _item("/a.py#three", "three")]
    told: list[object] = [catalog.items.put("code", "/a.py", "1", first)]
    told.append(catalog.items.put("code", "/b.py", "1", [_item("/b.py#one", "one"), _item("/a.py#one", "taken")]))
    numbers = catalog.items.without_vectors("code", "made-up")
    vectors = np.eye(DIM, dtype=np.float32)[: len(numbers)]
    catalog.items.write_vectors("made-up", numbers, vectors)
    again = [_item("/a.py#one", "one", line=3), _item("/a.py#two", "other words"), _item("/a.py#four", "four")]
    told += [catalog.items.put("code", "/a.py", "2", again), *_seen(catalog)]
    told += [catalog.items.put("commit", "/repo", "1", [_item("abc", "fix"), _item("def", "break")], replace=False)]
    told += [catalog.items.remove("commit", ["abc", "nobody"]), catalog.items.keys_of("commit", "/repo")]
    told += [catalog.items.remove_parents("code", ["/b.py"]), *_seen(catalog)]
    catalog.execute("UPDATE item_vectors SET vector = ? WHERE item_no = 1", (b"short",))
    problems = list(integrity.check_vectors(catalog))
    for problem in problems:
        assert problem.fix is not None
        problem.fix(catalog)
    return [*told, [problem.message for problem in problems], *_seen(catalog)]


def _item(key: str, text: str, **metadata: object) -> NewItem:
    return NewItem(key, key, text, TIME, metadata, words="more", embedded="", prior=-0.5)


def _seen(catalog: Any) -> list[object]:
    """Everything that reading tells, without when it was written."""
    waiting = catalog.items.without_vectors("code", "made-up")
    parents = [(each.parent, each.stamp, each.metadata) for each in catalog.items.parents("code", below="/")]
    found = catalog.items.parent("code", "/a.py")
    state = catalog.items.state("code")
    return [
        list(catalog.items.all("code")),
        list(catalog.items.all("code", parent="/a.py")),
        catalog.items.find("code", "/a.py#one"),
        catalog.items.find_ending("code", "#one", 2),
        catalog.items.known_keys("code", ["/a.py#one", "nobody"]),
        (state.last_seq, state.count),
        catalog.items.measures("code"),
        catalog.items.changed_after("code", 3),
        catalog.items.mean_length(),
        list(catalog.items.metadata("code")),
        catalog.items.times("code"),
        parents,
        found and (found.stamp, found.metadata),
        (catalog.items.count(), catalog.items.count_parents("code"), catalog.items.count_without_vectors()),
        catalog.items.count_parents("code", below="/b.py"),
        catalog.items.count_by_parent("code"),
        catalog.items.pending(waiting),
        [each.tolist() if isinstance(each, np.ndarray) else each for each in catalog.items.vectors("code", "made-up")],
        catalog.items.vectors("code", "made-up", [1, 2])[0],
        sorted(map(tuple, catalog.items.texts([1, 2]))),
        rows_disagree(catalog),
    ]
