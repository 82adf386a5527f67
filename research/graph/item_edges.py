"""Items in the graph: pieces of code and their files, commits, experiences and values.

Part of the caller's transaction, which has read them a moment ago.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from research.graph.code import file_names, piece_mentions, piece_names
from research.store.catalog import edge_writes as writes
from research.store.catalog import graph_progress as progress
from research.store.catalog.catalog import Catalog
from research.store.catalog.edge_writes import NewNode
from research.store.catalog.edges import CHANGES, CONTAINS, SUPPORTS
from research.store.catalog.graph_progress import GraphedItem
from research.store.catalog.reader import NO_MASKS

_MOST_FILES = 500  # of a commit: one that moves a whole tree says nothing of each


class Here:
    """A reader in the middle of a transaction."""

    masks = NO_MASKS

    def __init__(self, connection: sqlite3.Connection, catalog: Catalog) -> None:
        self.connection = connection
        self.paths = catalog.paths

    def meta(self, key: str, default: str = "") -> str:
        return default

    def count_cache(self) -> dict[object, Any]:
        return {}


def write_items(here: Here, items: Sequence[GraphedItem]) -> None:
    """Those that are still there: their rows may have gone since they were read."""
    by_kind: dict[str, list[GraphedItem]] = {}
    for item in items:
        by_kind.setdefault(item.kind, []).append(item)
    there = {item.item_no for item in progress.items_after(here, items[0].seq - 1, len(items))}
    for kind, write in _KINDS.items():
        some = [item for item in by_kind.get(kind, ()) if item.item_no in there]
        if some:
            write(here, some)


def _write_code(here: Here, items: Sequence[GraphedItem]) -> None:
    parents = progress.parents_metadata(here, "code", [item.parent for item in items])
    roots = {parent: str(told.get("root") or "") for parent, told in parents.items()}
    numbers = writes.put_nodes(
        here.connection,
        [
            *(NewNode(f"file:{item.parent}") for item in items),
            *(NewNode(f"code:{item.key}", item_no=item.item_no) for item in items),
        ],
    )
    writes.put_edges(
        here.connection,
        [(numbers[f"file:{item.parent}"], CONTAINS, numbers[f"code:{item.key}"]) for item in items],
    )
    names = {numbers[f"code:{each.key}"]: piece_names(roots.get(each.parent, ""), each.metadata) for each in items}
    for item in items:
        file_path = str(item.metadata.get("file_path") or "")
        names[numbers[f"file:{item.parent}"]] = file_names(roots.get(item.parent, ""), file_path)
    writes.put_names(here.connection, names)
    mentions = {
        numbers[f"code:{each.key}"]: piece_mentions(roots.get(each.parent, ""), each.metadata) for each in items
    }
    writes.put_mentions(here.connection, mentions)


def _write_commits(here: Here, items: Sequence[GraphedItem]) -> None:
    edges: list[tuple[str, str]] = []
    for item in items:
        files = [str(each) for each in item.metadata.get("files_changed") or ()]
        root = tree_of(item.parent)
        if len(files) <= _MOST_FILES:
            edges += [(f"commit:{item.key}", f"file:{root}/{file}") for file in files]
    numbers = writes.put_nodes(
        here.connection,
        [
            *(NewNode(f"commit:{item.key}", item_no=item.item_no) for item in items),
            *(NewNode(file) for _, file in edges),
        ],
    )
    writes.drop_edges_from(here.connection, [numbers[f"commit:{item.key}"] for item in items], CHANGES)
    writes.put_edges(here.connection, [(numbers[commit], CHANGES, numbers[file]) for commit, file in edges])


def tree_of(repository: str) -> str:
    """The folder that the paths of a repository's commits begin in."""
    path = PurePosixPath(repository)
    return str(path.parent) if path.name == ".git" else str(path)


def _write_experiences(here: Here, items: Sequence[GraphedItem]) -> None:
    first = progress.first_items(here, "experience", [item.parent for item in items])
    writes.put_nodes(here.connection, [NewNode(f"experience:{id}", item_no=number) for id, number in first.items()])


def _write_values(here: Here, items: Sequence[GraphedItem]) -> None:
    members = {item.key: [str(each) for each in item.metadata.get("members") or ()] for item in items}
    first = progress.first_items(here, "experience", [id for ids in members.values() for id in ids])
    numbers = writes.put_nodes(
        here.connection,
        [
            *(NewNode(f"value:{item.key}", item_no=item.item_no) for item in items),
            *(NewNode(f"experience:{id}", item_no=number) for id, number in first.items()),
        ],
    )
    for key, ids in members.items():
        value = numbers[f"value:{key}"]
        writes.drop_edges_to(here.connection, value, SUPPORTS)
        writes.put_edges(here.connection, [(numbers[f"experience:{id}"], SUPPORTS, value) for id in ids if id in first])


_KINDS: dict[str, Callable[[Here, Sequence[GraphedItem]], None]] = {
    "code": _write_code,
    "commit": _write_commits,
    "experience": _write_experiences,
    "value": _write_values,
}
