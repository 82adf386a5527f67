"""The graph, brought up to what is in the index: documents, items and memories that it has not seen yet.

Each document, and each few items, is a short transaction of its own, so whoever remembers something finds their turn;
stopped anywhere, the next update goes on there. What was removed took its edges along. Items are pieces of code and
their files, commits, experiences and values; they are written in the transaction that has read them a moment ago.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from research.errors import BusyError, IndexUnusableError
from research.graph.extraction import (
    DocumentGraph,
    Titles,
    digest,
    document_graph,
    file_names,
    newer_pairs,
    piece_mentions,
    piece_names,
    title_words,
)
from research.records import DocumentInfo
from research.store import Catalog, Reader, Writer, graph

RULES = 2
"""To be raised whenever the same text would give other edges: all documents and items are then read again."""

_PAGES, _ITEMS, _MEMORIES = 300, 200, 500  # of a transaction
_MOST_MENTIONING = 200  # pages that are looked through for a document's title


_MOST_FILES = 500  # of a commit: one that moves a whole tree says nothing of each


@dataclass(slots=True)
class GraphUpdate:
    """What was brought into the graph, and whether something is left to do: no time, or somebody else was writing."""

    documents: int = 0
    items: int = 0
    memories: int = 0
    complete: bool = True


def is_behind(reader: Reader) -> bool:
    return reader.graph.is_behind(RULES)


def update_graph(catalog: Catalog, *, seconds: float | None = None) -> GraphUpdate:
    """Bring the graph up to date, for about so long. Beside other writers; one that keeps the catalog for longer than a
    second ends it, with `complete` not set."""
    ends = None if seconds is None else time.monotonic() + seconds
    done = GraphUpdate()
    try:
        done.complete = (
            _documents(catalog, ends, done) and _items(catalog, ends, done) and _memories(catalog, ends, done)
        )
    except (BusyError, IndexUnusableError):  # the latter: it may only be read
        done.complete = False
    return done


@dataclass(frozen=True, slots=True)
class _Read:
    """A document that is ready to be written."""

    info: DocumentInfo
    made: DocumentGraph
    num_pages: int
    mentioning: list[str]  # pages of others that hold its title
    state: tuple[Any, ...]  # that it was read in


def _documents(catalog: Catalog, ends: float | None, done: GraphUpdate) -> bool:
    with catalog.snapshot() as reader:
        waiting = reader.graph.outdated_documents(RULES, 1_000_000)
        titles = Titles(reader.graph.document_titles() if waiting else [])
    at = 0
    while at < len(waiting) and not _is_over(ends):
        some: list[_Read] = []
        while at < len(waiting) and sum(each.num_pages for each in some) < _PAGES:
            with catalog.snapshot() as reader:
                some += _read_document(reader, waiting[at], titles)
            at += 1
        with catalog.short_write() as connection:
            for each in some:
                # One that changed since it was read waits for the next update.
                if connection.graph.document_state(each.info.doc_id) == each.state:
                    _write_document(connection, each)
        done.documents += len(some)
    return at == len(waiting)


def _read_document(reader: Reader, doc_id: str, titles: Titles) -> list[_Read]:
    info = reader.documents.get(doc_id)
    if info is None:  # removed meanwhile
        return []
    pages = list(reader.pages.texts(doc_id))
    made = document_graph(info, pages, titles)
    state = reader.graph.document_state(doc_id)
    return [_Read(info, made, len(pages), _pages_with_title(reader, info), state)]


def _pages_with_title(reader: Reader, info: DocumentInfo) -> list[str]:
    """Refs of pages of other documents that hold this one's title."""
    words = title_words(info.title)
    if not words:
        return []
    titles = Titles([(info.doc_id, info.title)])
    found = reader.lookups.pages_with_phrase(info.title, _MOST_MENTIONING)
    return [f"page:{doc}#{page}" for doc, page, text in found if doc != info.doc_id and any(titles.found_in(text))]


def _write_document(connection: Writer, read: _Read) -> None:
    doc_id, made, num_pages = read.info.doc_id, read.made, read.num_pages
    connection.graph.drop_document(doc_id)
    document = graph.NewNode(f"document:{doc_id}", doc_id=doc_id)
    sections = [graph.NewNode(f"section:{doc_id}#{each.number}", each.heading, doc_id=doc_id) for each in made.sections]
    pages = [graph.NewNode(f"page:{doc_id}#{page}", doc_id=doc_id) for page in range(1, num_pages + 1)]
    numbers = connection.graph.put_nodes([document, *sections, *pages])
    own = numbers[document.ref]
    section = {0: own} | {each.number: numbers[f"section:{doc_id}#{each.number}"] for each in made.sections}
    page = {number: numbers[f"page:{doc_id}#{number}"] for number in range(1, num_pages + 1)}
    connection.graph.put_edges(
        [
            *((section[each.above], graph.CONTAINS, section[each.number]) for each in made.sections),
            *((section[number], graph.CONTAINS, page[at]) for number, at in made.pages_of),
        ],
    )
    refers = [(page[one], graph.REFERS, page[other], name) for one, other, name in made.refers]
    connection.graph.put_named_edges(refers)
    connection.graph.put_names({own: [*made.names, *made.families]})
    cited = {page[at]: [(graph.CITES, name) for name in names] for at, names in made.mentions.items()}
    cited[own] = [
        (graph.CITES, name) for name in dict.fromkeys(name for names in made.mentions.values() for name in names)
    ]
    connection.graph.put_mentions(cited)
    _mention_title(connection, read.info, read.mentioning)
    for family in made.families:
        connection.graph.put_versions(family, newer_pairs(connection.graph.versions(family)))
    connection.graph.mark_document(doc_id, RULES)


def _mention_title(connection: Writer, info: DocumentInfo, refs: Sequence[str]) -> None:
    """Pages that were read before this document was there, and their documents, mention its title."""
    name = digest("title", " ".join(title_words(info.title)))
    documents = [f"document:{ref.removeprefix('page:').partition('#')[0]}" for ref in refs]
    nodes = connection.graph.find([*refs, *documents], "")
    connection.graph.add_mentions({node: [(graph.CITES, name)] for node in nodes.values()})


def _items(catalog: Catalog, ends: float | None, done: GraphUpdate) -> bool:
    while True:
        if _is_over(ends):
            return False
        with catalog.snapshot() as reader:
            items = reader.graph.items_after(reader.graph.items_done(RULES), _ITEMS)
        if not items:
            return True
        with catalog.short_write() as connection:
            _write_items(connection, items)
            connection.graph.mark_items(RULES, items[-1].seq)
            if len(items) < _ITEMS:
                connection.graph.drop_lonely()
        done.items += len(items)


def _memories(catalog: Catalog, ends: float | None, done: GraphUpdate) -> bool:
    with catalog.snapshot() as reader:
        tenants = reader.graph.tenants_behind(1_000_000)
    for tenant, seq in tenants:
        more: int | None = seq
        while more is not None:
            if _is_over(ends):
                return False
            more = _some_memories(catalog, tenant, more, done)
    return True


def _some_memories(catalog: Catalog, tenant: str, seq: int, done: GraphUpdate) -> int | None:
    """The next memories of a tenant; the last change among them, or None where there are no more."""
    with catalog.short_write() as connection:
        told = connection.graph.memories_after(tenant, seq, _MEMORIES)
        last = told[-1].seq if len(told) == _MEMORIES else connection.graph.last_change(tenant)
        _write_memories(connection, tenant, told)
        if last:  # 0: the tenant was forgotten
            connection.graph.mark_tenant(tenant, last)
    done.memories += len(told)
    return last if len(told) == _MEMORIES else None


def _write_memories(connection: Writer, tenant: str, told: Sequence[graph.GraphedMemory]) -> None:
    numbers = connection.graph.put_nodes(
        [
            *(graph.NewNode(f"memory:{each.id}", tenant=tenant, memory_no=each.memory_no) for each in told),
            *(graph.NewNode(f"session:{each.session}", tenant=tenant) for each in told if each.session),
        ],
    )
    connection.graph.put_edges(
        [
            (numbers[f"memory:{each.id}"], graph.TOLD_IN, numbers[f"session:{each.session}"])
            for each in told
            if each.session
        ],
    )


def _is_over(ends: float | None) -> bool:
    return ends is not None and time.monotonic() >= ends


def _write_items(connection: Writer, items: Sequence[graph.GraphedItem]) -> None:
    """Those that are still there: their rows may have gone since they were read."""
    by_kind: dict[str, list[graph.GraphedItem]] = {}
    for item in items:
        by_kind.setdefault(item.kind, []).append(item)
    there = {item.item_no for item in connection.graph.items_after(items[0].seq - 1, len(items))}
    for kind, write in _KINDS.items():
        some = [item for item in by_kind.get(kind, ()) if item.item_no in there]
        if some:
            write(connection, some)


def _write_code(connection: Writer, items: Sequence[graph.GraphedItem]) -> None:
    parents = connection.graph.parents_metadata("code", [item.parent for item in items])
    roots = {parent: str(told.get("root") or "") for parent, told in parents.items()}
    numbers = connection.graph.put_nodes(
        [
            *(graph.NewNode(f"file:{item.parent}") for item in items),
            *(graph.NewNode(f"code:{item.key}", item_no=item.item_no) for item in items),
        ],
    )
    connection.graph.put_edges(
        [(numbers[f"file:{item.parent}"], graph.CONTAINS, numbers[f"code:{item.key}"]) for item in items],
    )
    names = {numbers[f"code:{each.key}"]: piece_names(roots.get(each.parent, ""), each.metadata) for each in items}
    for item in items:
        file_path = str(item.metadata.get("file_path") or "")
        names[numbers[f"file:{item.parent}"]] = file_names(roots.get(item.parent, ""), file_path)
    connection.graph.put_names(names)
    mentions = {
        numbers[f"code:{each.key}"]: piece_mentions(roots.get(each.parent, ""), each.metadata) for each in items
    }
    connection.graph.put_mentions(mentions)


def _write_commits(connection: Writer, items: Sequence[graph.GraphedItem]) -> None:
    edges: list[tuple[str, str]] = []
    for item in items:
        files = [str(each) for each in item.metadata.get("files_changed") or ()]
        root = _tree_of(item.parent)
        if len(files) <= _MOST_FILES:
            edges += [(f"commit:{item.key}", f"file:{root}/{file}") for file in files]
    numbers = connection.graph.put_nodes(
        [
            *(graph.NewNode(f"commit:{item.key}", item_no=item.item_no) for item in items),
            *(graph.NewNode(file) for _, file in edges),
        ],
    )
    connection.graph.drop_edges_from([numbers[f"commit:{item.key}"] for item in items], graph.CHANGES)
    connection.graph.put_edges([(numbers[commit], graph.CHANGES, numbers[file]) for commit, file in edges])


def _tree_of(repository: str) -> str:
    """The folder that the paths of a repository's commits begin in."""
    path = PurePosixPath(repository)
    return str(path.parent) if path.name == ".git" else str(path)


def _write_experiences(connection: Writer, items: Sequence[graph.GraphedItem]) -> None:
    first = connection.graph.first_items("experience", [item.parent for item in items])
    connection.graph.put_nodes([graph.NewNode(f"experience:{id}", item_no=number) for id, number in first.items()])


def _write_values(connection: Writer, items: Sequence[graph.GraphedItem]) -> None:
    members = {item.key: [str(each) for each in item.metadata.get("members") or ()] for item in items}
    first = connection.graph.first_items("experience", [id for ids in members.values() for id in ids])
    numbers = connection.graph.put_nodes(
        [
            *(graph.NewNode(f"value:{item.key}", item_no=item.item_no) for item in items),
            *(graph.NewNode(f"experience:{id}", item_no=number) for id, number in first.items()),
        ],
    )
    for key, ids in members.items():
        value = numbers[f"value:{key}"]
        connection.graph.drop_edges_to(value, graph.SUPPORTS)
        connection.graph.put_edges([(numbers[f"experience:{id}"], graph.SUPPORTS, value) for id in ids if id in first])


_KINDS: dict[str, Callable[[Writer, Sequence[graph.GraphedItem]], None]] = {
    "code": _write_code,
    "commit": _write_commits,
    "experience": _write_experiences,
    "value": _write_values,
}
