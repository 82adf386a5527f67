"""SQLite's own: the catalog as one principal sees it. What they may not see is in none of its tables.

A connection has three databases. `catalog` is the file, and may only be read. `main` lies in memory, shared by all
connections of one view: the numbers of the rows that are seen, what a redactor left of those that are masked, and the
words of pages and items, so that how rare a word is is counted among what is seen. `temp` has a view by the name of
each table, where SQLite looks first. A table that is not named here is empty.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from research.errors import BusyError
from research.store.catalog import Catalog, Connection, Snapshot, _closed_on_failure, _open
from research.store.governance import CONTENT, SEQUENCE
from research.store.graph import CONTAINS
from research.store.memories import words_of
from research.store.reader import Masks
from research.store.words import ANALYZER, ItemWords, PageWords, words_of_name

_VFS = "win32" if os.name == "nt" else "unix"  # else the file would be looked for in memory, where `main` is
_TRIES = 20  # at a view of a catalog that others write all the time


@dataclass(frozen=True, slots=True)
class MaskedPage:
    """`text`: what is shown instead of the stored one; None: that. `found`: whether it is found by it."""

    text: str | None
    section_path: str
    parent_heading: str
    picture: bool
    found: bool = True


@dataclass(frozen=True, slots=True)
class MaskedItem:
    """`found`: whether it is found by what is left of it."""

    kind: str
    title: str
    text: str
    metadata: Mapping[str, Any]
    found: bool


@dataclass(frozen=True, slots=True)
class MaskedMemory:
    text: str
    speaker: str
    category: str
    found: bool


@dataclass(slots=True)
class Seen:
    """What one principal sees: rows by their numbers, and what stands in those that are masked. `tenant`: whose turns
    and packages; None: everybody's. `refs`: of what stands for itself in the graph."""

    tenant: str | None = None
    documents: set[str] = field(default_factory=set)
    pages: set[int] = field(default_factory=set)
    items: set[int] = field(default_factory=set)
    parents: set[tuple[str, str]] = field(default_factory=set)
    memories: set[tuple[str, int]] = field(default_factory=set)
    refs: set[str] = field(default_factory=set)
    masked_documents: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # file name, title, path
    masked_pages: dict[int, MaskedPage] = field(default_factory=dict)
    masked_items: dict[int, MaskedItem] = field(default_factory=dict)
    masked_parents: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    masked_memories: dict[tuple[str, int], MaskedMemory] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # of masked things, by ref


class RestrictedCatalog(Catalog):
    """Reads what is seen; short writes go into the catalog itself. Kept as long as an index is open: what is seen is
    looked up again when the catalog or what decides (`revision`) has changed."""

    def __init__(
        self,
        base: Catalog,
        see: Callable[[Snapshot, Seen | None], Seen],
        revision: Callable[[], str],
        tenant: str | None = None,
    ) -> None:
        """`see` may be given what was seen before, where nothing but memories has changed since. `tenant`: whose
        memories may be seen at all; None: anybody's."""
        self._prepare(base.paths)
        self._see, self._revision, self._tenant = see, revision, tenant
        self._building = threading.Lock()
        self._view: _View | None = None

    @property
    def connection(self) -> Connection:
        raise NotImplementedError("what a principal sees is read from a snapshot")

    def close(self) -> None:
        super().close()
        with self._building:
            if self._view is not None:
                self._view.close()
                self._view = None

    def _begun(self) -> tuple[Snapshot, Connection]:
        """The same, with the view of what the catalog is in that transaction."""
        tries = 0
        while tries < _TRIES:
            connection = self._take()
            assert isinstance(connection, _ViewConnection)
            view = connection.view
            try:
                with _closed_on_failure(connection):
                    connection.execute("BEGIN")
                    connection.refresh()
                    if view.state == self._state(connection):
                        return Snapshot(self.paths, connection, view.masks), connection
            except sqlite3.Error as error:
                raise self._explain(error) from error
            connection.close()
            tries += view is self._view  # and no older one that a connection was left of
            view.is_old = True
        raise BusyError("the index is changing all the time", hint="run the same command again")

    def _open_file(self, uri: str) -> Connection:
        mark = "&" if "?" in uri else "?"
        with self._building:
            if self._view is None or self._view.is_old:
                before, uri = self._view, f"{uri}{mark}vfs={_VFS}"
                self._view = (before and self._built(uri, before)) or self._built(uri, None)
                if before is not None:
                    before.close()
            assert self._view is not None
            return self._view.connect()

    def _built(self, uri: str, before: _View | None) -> _View | None:
        """`before`: a view that differs by memories alone; None if that is not so. Memories are told all the time, and
        the rest is taken over."""
        view = _View(uri)
        with _closed_on_failure(view.keeper):
            connection = view.keeper
            if before is not None:
                before.keeper.backup(connection)
            connection.execute("BEGIN")
            connection.refresh()
            view.state = self._state(connection)
            if before is not None and view.state[0] != before.state[0]:
                view.close()
                return None
            view.seen = seen = self._see(Snapshot(self.paths, connection), None if before is None else before.seen)
            if before is None:
                _fill(connection, seen)
            _fill_memories(connection, seen)
            connection.execute("COMMIT")
        items, memories = frozenset(seen.masked_items), frozenset(seen.masked_memories)
        nothing = not (seen.documents or seen.items or seen.memories)
        view.masks = Masks(view.name, nothing, seen.labels, items, memories)
        view.views = list(_views(connection, seen))
        return view

    def _state(self, connection: Connection) -> tuple[str, str]:
        """Of all that decides what is seen: of memories, and of the rest."""
        known = [connection.settings.get(key, "") for key in ("catalog_id", CONTENT, SEQUENCE, ANALYZER)]
        counted = connection.execute(
            "SELECT (SELECT MAX(rowid) FROM catalog.documents), (SELECT MAX(rowid) FROM catalog.files),"
            " (SELECT COUNT(*) FROM catalog.files), (SELECT COUNT(*) FROM catalog.failed_files),"
            " (SELECT MAX(node_no) FROM catalog.nodes)"
        ).fetchone()
        told = connection.execute(
            "SELECT tenant, version, last_seq FROM catalog.memory_tenants WHERE ? IS NULL OR tenant = ?",
            (self._tenant, self._tenant),
        ).fetchall()
        return json.dumps([self._revision(), *known, *counted]), json.dumps(list(map(list, told)))


class _ViewConnection(Connection):
    file = "catalog"
    view: _View


class _View:
    """What is seen at one state of the catalog: a database in memory, which is there as long as `keeper` is."""

    def __init__(self, uri: str) -> None:
        self.state = "", ""
        self.is_old = False
        self.seen = Seen()
        self.masks = Masks()
        self.views: Sequence[str] = ()
        self.name = uuid.uuid4().hex
        self._uri = uri
        self._memory = f"file:/ctx-{self.name}?vfs=memdb"
        self.keeper = self._opened()

    def connect(self) -> Connection:
        connection = self._opened()
        for statement in self.views:
            connection.execute(statement)
        return connection

    def close(self) -> None:
        self.keeper.close()

    def _opened(self) -> _ViewConnection:
        connection = _open(self._memory, factory=_ViewConnection)
        assert isinstance(connection, _ViewConnection)
        try:
            connection.execute("ATTACH ? AS catalog", (self._uri,))
        except BaseException:
            connection.close()
            raise
        connection.view = self
        return connection


# What the rows of a table are known by, and the columns of those that are masked. With the types of the catalog's own:
# else SQLite makes a list of all of them for every statement that looks for one.
_KEYS: dict[str, dict[str, str]] = {
    "documents": {"doc_id": "TEXT"},
    "pages": {"page_id": "INTEGER"},
    "items": {"item_no": "INTEGER"},
    "item_parents": {"kind": "TEXT", "parent": "TEXT"},
    "memories": {"tenant": "TEXT", "memory_no": "INTEGER"},
    "refs": {"ref": "TEXT"},
}
_MASKED = {
    "documents": ("filename", "title", "source_path"),
    "pages": ("image", "section_path", "parent_heading", "words", "markdown", "units"),
    "items": ("length", "title_length", "title", "metadata", "words", "embedded", "text"),
    "item_parents": ("metadata",),
    "memories": ("text", "speaker", "category", "metadata", "key"),
}


def _tables() -> Iterator[str]:
    """Those of `main`: numbers of what is seen, of what is seen as it is stored, and masked rows."""
    for name, keys in _KEYS.items():
        typed = ", ".join(" ".join(key) for key in keys.items())
        key = f"{typed}, PRIMARY KEY ({', '.join(keys)})) WITHOUT ROWID"
        yield from (f"CREATE TABLE {which}_{name} ({key}" for which in ("seen", "stored"))
        yield f"CREATE TABLE masked_{name} ({', '.join((*_MASKED.get(name, ()), key))}"
    yield "CREATE TABLE name_words (word TEXT, doc_id TEXT, PRIMARY KEY (word, doc_id)) WITHOUT ROWID"
    yield "CREATE INDEX name_words_by_doc ON name_words (doc_id)"
    memory = "tenant TEXT, memory_no INTEGER, body TEXT, PRIMARY KEY (tenant, memory_no)"
    yield f"CREATE TABLE memory_words ({memory}) WITHOUT ROWID"


def _fill(connection: Connection, seen: Seen) -> None:
    """The tables of `main`; what is read is the catalog's, which has no views over it yet."""
    for statement in _tables():
        connection.execute(statement)
    page_words = {page_id: _words_of_page(connection, page_id, page) for page_id, page in seen.masked_pages.items()}
    item_words = {
        number: ItemWords.of(item.title, item.text, "") if item.found else ItemWords((), (), ())
        for number, item in seen.masked_items.items()
    }
    other = {page_id for page_id, page in seen.masked_pages.items() if page.text is not None}
    tables: dict[str, Iterable[Sequence[object]]] = {
        "seen_documents": ((doc_id,) for doc_id in seen.documents),
        "seen_pages": ((page_id,) for page_id in seen.pages),
        "stored_pages": ((page_id,) for page_id in seen.pages - other),
        "seen_items": ((number,) for number in seen.items),
        "stored_items": ((number,) for number in seen.items - seen.masked_items.keys()),
        "seen_item_parents": seen.parents,
        "seen_refs": ((ref,) for ref in seen.refs),
        "masked_documents": ((*names, doc_id) for doc_id, names in seen.masked_documents.items()),
        "masked_pages": (_page_row(id, page, page_words[id].count) for id, page in seen.masked_pages.items()),
        "masked_items": (
            (words.length, words.title_length, item.title, json.dumps(item.metadata), "", "", item.text, no)
            for (no, item), words in zip(seen.masked_items.items(), item_words.values(), strict=True)
        ),
        "masked_item_parents": ((json.dumps(facts), *key) for key, facts in seen.masked_parents.items()),
        "name_words": (
            (word, doc_id)
            for doc_id, (name, title, _) in seen.masked_documents.items()
            for word in words_of_name(name, title)
        ),
    }
    _put(connection, tables)
    connection.execute(
        "INSERT INTO main.name_words SELECT word, doc_id FROM catalog.name_words"
        " WHERE doc_id IN (SELECT doc_id FROM main.seen_documents)"
        " AND doc_id NOT IN (SELECT doc_id FROM main.masked_documents)"
    )
    if _copied_words(connection, "page", "body, section", "page_id"):
        connection.words.write("page_words", [(page_id, words.columns) for page_id, words in page_words.items()])
    if _copied_words(connection, "item", "title, body, words", "item_no"):
        masked = [(number, item_words[number].signed(item.kind)) for number, item in seen.masked_items.items()]
        connection.words.write("item_words", masked)


def _fill_memories(connection: Connection, seen: Seen) -> None:
    """The same of memories, in place of those that are there."""
    masked = seen.masked_memories
    tables: dict[str, Iterable[Sequence[object]]] = {
        "seen_memories": seen.memories,
        "stored_memories": seen.memories - masked.keys(),
        "masked_memories": ((m.text, m.speaker, m.category, "{}", "", *key) for key, m in masked.items()),
        "memory_words": ((*key, words_of(m.text, m.speaker)) for key, m in masked.items() if m.found),
    }
    for table in tables:
        connection.execute(f"DELETE FROM main.{table}")
    _put(connection, tables)
    connection.execute(
        "INSERT INTO main.memory_words SELECT tenant, memory_no, body FROM catalog.memory_words"
        " WHERE (tenant, memory_no) IN (SELECT tenant, memory_no FROM main.stored_memories)"
    )


def _put(connection: Connection, tables: Mapping[str, Iterable[Sequence[object]]]) -> None:
    for table, rows in tables.items():
        listed = list(rows)
        if listed:
            connection.executemany(f"INSERT INTO main.{table} VALUES ({','.join('?' * len(listed[0]))})", listed)


def _words_of_page(connection: Connection, page_id: int, page: MaskedPage) -> PageWords:
    if not page.found:
        return PageWords("", "", 0)
    text = page.text
    if text is None:
        [stored] = connection.execute("SELECT markdown FROM catalog.pages WHERE page_id = ?", (page_id,)).fetchone()
        text = zlib.decompress(stored).decode()
    return PageWords.of(text, page.section_path)


def _page_row(page_id: int, page: MaskedPage, words: int) -> tuple[object, ...]:
    """What is None is as the catalog has it."""
    text = (None, None, None) if page.text is None else (words, zlib.compress(page.text.encode()), b"")
    return None if page.picture else 0, page.section_path, page.parent_heading, *text, page_id


def _copied_words(connection: Connection, what: str, columns: str, key: str) -> bool:
    """Full text of the pages or items that are seen and not masked, made as the catalog's is. False where all are seen
    as they are: then the catalog's is the one that is read."""
    counted = f"(SELECT COUNT(*) FROM catalog.{what}s) <> (SELECT COUNT(*) FROM main.seen_{what}s)"
    if not connection.execute(f"SELECT {counted} OR EXISTS (SELECT 1 FROM main.masked_{what}s)").fetchone()[0]:
        return False
    for name in (f"{what}_words", f"{what}_vocabulary"):
        made = connection.execute("SELECT sql FROM catalog.sqlite_master WHERE name = ?", (name,)).fetchone()
        connection.execute(made[0])
    connection.execute(
        f"INSERT INTO main.{what}_words (rowid, {columns}) SELECT rowid, {columns} FROM catalog.{what}_words"
        f" WHERE rowid IN (SELECT {key} FROM main.seen_{what}s)"
        f" AND rowid NOT IN (SELECT {key} FROM main.masked_{what}s)"
    )
    return True


# The pluses: a table is looked through as it would be without the condition, which is asked of each row that is met.
_DOCUMENT = "+t.doc_id IN (SELECT doc_id FROM main.seen_documents)"
_SEEN_PAGES, _STORED_PAGES = "SELECT page_id FROM main.seen_pages", "SELECT page_id FROM main.stored_pages"
_ITEM = "+t.item_no IN (SELECT item_no FROM main.seen_items)"
_MEMORY = "(+t.tenant, +t.memory_no) IN (SELECT tenant, memory_no FROM main.seen_memories)"
_STORED_MEMORY = "(+t.tenant, +t.memory_no) IN (SELECT tenant, memory_no FROM main.stored_memories)"


def _place(page: str, pages: str, row: str = "t") -> str:
    """Whether a page of a row's document is one of these."""
    place = f"p.doc_id = {row}.doc_id AND p.page = {page} AND p.page_id IN ({pages})"
    return f"EXISTS (SELECT 1 FROM catalog.pages p WHERE {place})"


def _number(ref: str) -> str:
    return f"CAST(substr({ref}, instr({ref}, '#') + 1) AS INTEGER)"


def _join(name: str) -> str:
    """A memory that another leads to, if it is seen."""
    there = f"EXISTS (SELECT 1 FROM main.seen_memories m WHERE m.tenant = t.tenant AND m.memory_no = t.{name})"
    return f"CASE WHEN {there} THEN t.{name} END"


# Where the heading of a section stands.
_FIRST = (
    f"(SELECT MIN({_number('n.ref')}) FROM catalog.edges e JOIN catalog.nodes n ON n.node_no = e.target"
    f" WHERE e.source = t.node_no AND e.kind = {CONTAINS} AND n.ref LIKE 'page:%')"
)
# A turn whose answer may be words of a page that is not seen as it is.
_HIDDEN = (
    "EXISTS (SELECT 1 FROM catalog.turn_sources s WHERE (s.tenant, s.session, s.turn_no)"
    f" = (t.tenant, t.session, t.turn_no) AND NOT {_place('s.page', _STORED_PAGES, 's')})"
)
_OWN = "({own} OR t.tenant = {tenant})"
_NODE = (
    f"CASE WHEN t.item_no IS NOT NULL THEN {_ITEM} WHEN t.memory_no IS NOT NULL THEN {_MEMORY}"
    f" WHEN t.ref LIKE 'page:%' THEN {_place(_number('t.ref'), _SEEN_PAGES)}"
    f" WHEN t.ref LIKE 'section:%' THEN {_place(_FIRST, _STORED_PAGES)}"
    f" WHEN t.doc_id IS NOT NULL THEN {_DOCUMENT} WHEN t.tenant IS NOT NULL THEN {_OWN}"
    " ELSE t.ref IN (SELECT ref FROM main.seen_refs) END"
)
_KNOWN_NODE = "EXISTS (SELECT 1 FROM temp.nodes n WHERE n.node_no = t.{0})"

# Which rows of a table are seen.
_ROWS = {
    "meta": "1",
    "labels": "1",  # what is seen is told to the policy with them
    "documents": _DOCUMENT,
    "files": f"{_DOCUMENT} AND t.doc_id NOT IN (SELECT doc_id FROM main.masked_documents)",
    "former_ids": _DOCUMENT,
    "tags": _DOCUMENT,
    "ledger": _DOCUMENT,
    "failed_pages": f"{_DOCUMENT} AND (t.page = 0 OR {_place('t.page', _SEEN_PAGES)})",
    "failed_files": "'file:' || t.path IN (SELECT ref FROM main.seen_refs)",
    "pages": f"+t.page_id IN ({_SEEN_PAGES})",
    "chunks": f"+t.page_id IN ({_STORED_PAGES})",
    "vectors": "EXISTS (SELECT 1 FROM catalog.chunks c WHERE c.chunk_id = t.chunk_id"
    f" AND c.page_id IN ({_STORED_PAGES}))",
    "page_lines": f"+t.page_id IN ({_STORED_PAGES})",
    "page_vectors": f"+t.page_id IN ({_STORED_PAGES})",
    "items": _ITEM,
    "item_vectors": "+t.item_no IN (SELECT item_no FROM main.stored_items)",
    "item_parents": "(+t.kind, +t.parent) IN (SELECT kind, parent FROM main.seen_item_parents)",
    "memory_tenants": "EXISTS (SELECT 1 FROM main.seen_memories m WHERE m.tenant = t.tenant)",
    "memories": _MEMORY,
    "memory_vectors": _STORED_MEMORY,
    "memory_sources": _MEMORY,
    "memory_feedback": _MEMORY,
    "turns": _OWN,
    "turn_sources": f"{_OWN} AND {_place('t.page', _SEEN_PAGES)}",
    "package_sources": _OWN,
    "nodes": _NODE,
    "edges": f"{_KNOWN_NODE.format('source')} AND {_KNOWN_NODE.format('target')}",
    "node_names": _KNOWN_NODE.format("node_no"),
    "mentions": _KNOWN_NODE.format("node_no"),
}
# What stands in columns of theirs instead of what is stored.
_COLUMNS = {
    "memory_tenants": {"version": "t.version + {version}"},  # what is kept in memory of other views is none of this one
    "memories": {name: _join(name) for name in ("joined_to", "superseded_by")},
    "turns": {
        "answer": f"CASE WHEN {_HIDDEN} THEN '' ELSE t.answer END",
        "searched": f"CASE WHEN {_HIDDEN} THEN t.question ELSE t.searched END",
    },
    "turn_sources": {"quotes": f"CASE WHEN {_place('t.page', _STORED_PAGES)} THEN t.quotes ELSE '[]' END"},
}


def _views(connection: Connection, seen: Seen) -> Iterator[str]:
    """A statement for each table of the catalog."""
    values = {
        "own": int(seen.tenant is None),
        "tenant": "'" + (seen.tenant or "").replace("'", "''") + "'",
        "version": random.getrandbits(48),
    }
    made = {str(row[0]) for row in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")}
    tables = connection.execute(
        "SELECT name FROM catalog.sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    ).fetchall()
    for table in (str(row[0]) for row in tables):
        if table in made or table.startswith(("sqlite_", "page_words", "item_words")):
            continue
        shown = {str(row[1]): f"t.{row[1]}" for row in connection.execute(f"PRAGMA catalog.table_info({table})")}
        shown |= {name: how.format(**values) for name, how in _COLUMNS.get(table, {}).items()}
        if table in _MASKED:
            shown |= _masked(connection, table)
        columns = ", ".join(f"{how} AS {name}" for name, how in shown.items())
        where = _ROWS.get(table, "0").format(**values)
        yield f"CREATE TEMP VIEW {table} AS SELECT {columns} FROM catalog.{table} t WHERE {where}"


def _masked(connection: Connection, table: str) -> dict[str, str]:
    """The columns that stand in the masked rows, if there are any: looked up where they are asked for."""
    if connection.execute(f"SELECT 1 FROM main.masked_{table} LIMIT 1").fetchone() is None:
        return {}
    same = " AND ".join(f"m.{key} = t.{key}" for key in _KEYS[table])
    return {
        name: f"IFNULL((SELECT m.{name} FROM main.masked_{table} m WHERE {same}), t.{name})" for name in _MASKED[table]
    }
