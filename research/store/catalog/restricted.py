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
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from research.errors import BusyError
from research.store.catalog.catalog import Catalog, Snapshot, _Connection, _open
from research.store.catalog.content import CONTENT
from research.store.catalog.edges import CONTAINS
from research.store.catalog.labels import SEQUENCE
from research.store.catalog.reader import Masks
from research.store.fulltext.item_words import ItemWords, index_items
from research.store.fulltext.memory_words import words_of
from research.store.fulltext.search import ANALYZER
from research.store.fulltext.write import PageWords, words_of_name

_VFS = "win32" if os.name == "nt" else "unix"  # else the file would be looked for in memory, where `main` is
_TRIES = 5  # at a view of a catalog that somebody else is writing


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

    @property
    def stored_pages(self) -> set[int]:
        """Those whose text is the stored one."""
        return self.pages - {page_id for page_id, page in self.masked_pages.items() if page.text is not None}


class RestrictedCatalog(Catalog):
    """Reads what is seen; short writes go into the catalog itself. Kept as long as an index is open: what is seen is
    looked up again when the catalog or what decides (`revision`) has changed."""

    def __init__(self, base: Catalog, see: Callable[[Snapshot], Seen], revision: Callable[[], str]) -> None:
        self._prepare(base.paths)
        self._see, self._revision = see, revision
        self._building = threading.Lock()
        self._view: _View | None = None

    @property
    def connection(self) -> _Connection:
        raise NotImplementedError("what a principal sees is read from a snapshot")

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """What is seen at this moment, for all threads of one question."""
        view, connection = self._current()
        try:
            yield _ViewSnapshot(self.paths, connection, view.masks)
        finally:
            self._give_back(connection)

    def close(self) -> None:
        super().close()
        with self._building:
            if self._view is not None:
                self._view.close()
                self._view = None

    def _current(self) -> tuple[_View, _Connection]:
        """A connection in a transaction, with the view of what the catalog is in it."""
        for _ in range(_TRIES):
            connection = self._take()
            try:
                assert isinstance(connection, _ViewConnection)
                connection.execute("BEGIN")
                connection.refresh()
                view = connection.view
                if view.state == self._state(connection):
                    return view, connection
            except sqlite3.Error as error:
                connection.close()
                raise self._explain(error) from error
            except BaseException:
                connection.close()
                raise
            connection.close()
            with self._building:
                if self._view is view:
                    view.close()
                    self._view = None
        raise BusyError("the index is changing all the time", hint="run the same command again")

    def _open_file(self, uri: str) -> _Connection:
        mark = "&" if "?" in uri else "?"
        with self._building:
            if self._view is None:
                self._view = self._built(f"{uri}{mark}vfs={_VFS}")
            return self._view.connect()

    def _built(self, uri: str) -> _View:
        view = _View(uri)
        try:
            connection = view.keeper
            connection.execute("BEGIN")
            connection.refresh()
            view.state = self._state(connection)
            seen = self._see(Snapshot(self.paths, connection))
            _fill(connection, seen)
            connection.execute("COMMIT")
        except BaseException:
            view.close()
            raise
        items, memories = frozenset(seen.masked_items), frozenset(seen.masked_memories)
        nothing = not (seen.documents or seen.items or seen.memories)
        view.masks = Masks(view.name, nothing, seen.labels, items, memories)
        view.views = list(_views(connection, seen))
        return view

    def _state(self, connection: _Connection) -> str:
        """Of all that decides what is seen."""
        known = [connection.meta.get(key, "") for key in ("catalog_id", CONTENT, SEQUENCE, ANALYZER)]
        counted = connection.execute(
            "SELECT (SELECT MAX(rowid) FROM catalog.documents), (SELECT MAX(rowid) FROM catalog.files),"
            " (SELECT COUNT(*) FROM catalog.files), (SELECT COUNT(*) FROM catalog.failed_files),"
            " (SELECT MAX(node_no) FROM catalog.nodes),"
            " (SELECT group_concat(tenant || char(0) || version || ' ' || last_seq) FROM catalog.memory_tenants)"
        ).fetchone()
        return json.dumps([self._revision(), *known, *counted])


class _ViewSnapshot(Snapshot):
    """Under an identity of its own: what is kept in memory of the catalog is nobody else's."""

    def meta(self, key: str, default: str = "") -> str:
        return self.masks.view if key == "catalog_id" else super().meta(key, default)


class _ViewConnection(_Connection):
    file = "catalog"
    view: _View


class _View:
    """What is seen at one state of the catalog: a database in memory, which is there as long as `keeper` is."""

    def __init__(self, uri: str) -> None:
        self.state = ""
        self.masks = Masks()
        self.views: Sequence[str] = ()
        self.name = uuid.uuid4().hex
        self._uri = uri
        self._memory = f"file:/ctx-{self.name}?vfs=memdb"
        self.keeper = self._opened()

    def connect(self) -> _Connection:
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


_TABLES = """
    CREATE TABLE seen_documents (doc_id TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE seen_pages (page_id INTEGER PRIMARY KEY);
    CREATE TABLE stored_pages (page_id INTEGER PRIMARY KEY);
    CREATE TABLE seen_items (item_no INTEGER PRIMARY KEY);
    CREATE TABLE stored_items (item_no INTEGER PRIMARY KEY);
    CREATE TABLE seen_parents (kind TEXT, parent TEXT, PRIMARY KEY (kind, parent)) WITHOUT ROWID;
    CREATE TABLE seen_memories (tenant TEXT, memory_no INTEGER, PRIMARY KEY (tenant, memory_no)) WITHOUT ROWID;
    CREATE TABLE stored_memories (tenant TEXT, memory_no INTEGER, PRIMARY KEY (tenant, memory_no)) WITHOUT ROWID;
    CREATE TABLE seen_refs (ref TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE masked_documents (doc_id TEXT PRIMARY KEY, filename TEXT, title TEXT, source_path TEXT) WITHOUT ROWID;
    CREATE TABLE masked_pages (
        page_id INTEGER PRIMARY KEY, image INTEGER, section_path TEXT, parent_heading TEXT, words INTEGER,
        markdown BLOB, units BLOB
    );
    CREATE TABLE masked_items (
        item_no INTEGER PRIMARY KEY, length INTEGER, title_length INTEGER, title TEXT, metadata TEXT, words TEXT,
        embedded TEXT, text TEXT
    );
    CREATE TABLE masked_parents (kind TEXT, parent TEXT, metadata TEXT, PRIMARY KEY (kind, parent)) WITHOUT ROWID;
    CREATE TABLE masked_memories (
        tenant TEXT, memory_no INTEGER, text TEXT, speaker TEXT, category TEXT, metadata TEXT, key TEXT,
        PRIMARY KEY (tenant, memory_no)
    ) WITHOUT ROWID;
    CREATE TABLE name_words (word TEXT, doc_id TEXT, PRIMARY KEY (word, doc_id)) WITHOUT ROWID;
    CREATE INDEX name_words_by_doc ON name_words (doc_id);
    CREATE TABLE memory_words (tenant TEXT, memory_no INTEGER, body TEXT, PRIMARY KEY (tenant, memory_no)) WITHOUT ROWID
"""


def _fill(connection: _Connection, seen: Seen) -> None:
    """The tables of `main`; what is read is the catalog's, which has no views over it yet."""

    def put(table: str, rows: Iterable[Sequence[object]]) -> None:
        listed = list(rows)
        if listed:
            connection.executemany(f"INSERT INTO main.{table} VALUES ({','.join('?' * len(listed[0]))})", listed)

    for statement in _TABLES.split(";\n"):
        connection.execute(statement)
    put("seen_documents", ((doc_id,) for doc_id in seen.documents))
    put("seen_pages", ((page_id,) for page_id in seen.pages))
    put("stored_pages", ((page_id,) for page_id in seen.stored_pages))
    put("seen_items", ((item_no,) for item_no in seen.items))
    put("stored_items", ((item_no,) for item_no in seen.items - seen.masked_items.keys()))
    put("seen_parents", seen.parents)
    put("seen_memories", seen.memories)
    put("stored_memories", seen.memories - seen.masked_memories.keys())
    put("seen_refs", ((ref,) for ref in seen.refs))
    put("masked_documents", ((doc_id, *names) for doc_id, names in seen.masked_documents.items()))
    put("masked_parents", ((*key, json.dumps(facts)) for key, facts in seen.masked_parents.items()))
    _fill_names(connection, put, seen)
    _fill_pages(connection, put, seen)
    _fill_items(connection, put, seen)
    _fill_memories(connection, put, seen)


_Put = Callable[[str, Iterable[Sequence[object]]], None]


def _fill_names(connection: _Connection, put: _Put, seen: Seen) -> None:
    connection.execute(
        "INSERT INTO main.name_words SELECT word, doc_id FROM catalog.name_words"
        " WHERE doc_id IN (SELECT doc_id FROM main.seen_documents)"
        " AND doc_id NOT IN (SELECT doc_id FROM main.masked_documents)"
    )
    put(
        "name_words",
        ((w, doc_id) for doc_id, (name, title, _) in seen.masked_documents.items() for w in words_of_name(name, title)),
    )


def _fill_pages(connection: _Connection, put: _Put, seen: Seen) -> None:
    texts: list[tuple[int, PageWords]] = []  # of pages that are found by other words than the catalog has of them
    for page_id, page in seen.masked_pages.items():
        shown = page.text
        if shown is None:
            [stored] = connection.execute("SELECT markdown FROM catalog.pages WHERE page_id = ?", (page_id,)).fetchone()
            shown = zlib.decompress(stored).decode()
        texts.append((page_id, PageWords.of(shown if page.found else "", page.section_path if page.found else "")))
    words = {page_id: made.count for page_id, made in texts}
    put(
        "masked_pages",
        (
            (
                page_id,
                None if page.picture else 0,
                page.section_path,
                page.parent_heading,
                *(
                    (None, None, None)
                    if page.text is None
                    else (words[page_id], zlib.compress(page.text.encode()), b"")
                ),
            )
            for page_id, page in seen.masked_pages.items()
        ),
    )
    if not seen.masked_pages and _count(connection, "pages") == len(seen.pages):
        return  # the catalog's own words are those
    _copy_words(connection, "page", "body, section", "page_id")
    put(
        "page_words (rowid, body, section)",
        ((page_id, made.body, made.section) for page_id, made in texts),
    )


def _fill_items(connection: _Connection, put: _Put, seen: Seen) -> None:
    made = {
        number: ItemWords.of(item.title, item.text, "") if item.found else ItemWords((), (), ())
        for number, item in seen.masked_items.items()
    }
    put(
        "masked_items",
        (
            (
                number,
                made[number].length,
                made[number].title_length,
                item.title,
                json.dumps(item.metadata),
                "",
                "",
                item.text,
            )
            for number, item in seen.masked_items.items()
        ),
    )
    if not seen.masked_items and _count(connection, "items") == len(seen.items):
        return
    _copy_words(connection, "item", "title, body, words", "item_no")
    for number, item in seen.masked_items.items():
        if item.found:
            index_items(connection, item.kind, [(number, made[number])])


def _fill_memories(connection: _Connection, put: _Put, seen: Seen) -> None:
    put(
        "masked_memories",
        ((*key, each.text, each.speaker, each.category, "{}", "") for key, each in seen.masked_memories.items()),
    )
    connection.execute(
        "INSERT INTO main.memory_words SELECT tenant, memory_no, body FROM catalog.memory_words"
        " WHERE (tenant, memory_no) IN (SELECT tenant, memory_no FROM main.stored_memories)"
    )
    put(
        "memory_words",
        ((*key, words_of(m.text, m.speaker)) for key, m in seen.masked_memories.items() if m.found),
    )


def _copy_words(connection: _Connection, what: str, columns: str, key: str) -> None:
    """Full text of the pages or items that are seen and not masked, made as the catalog's is."""
    for name in (f"{what}_words", f"{what}_vocabulary"):
        made = connection.execute("SELECT sql FROM catalog.sqlite_master WHERE name = ?", (name,)).fetchone()
        connection.execute(made[0])
    connection.execute(
        f"INSERT INTO main.{what}_words (rowid, {columns}) SELECT rowid, {columns} FROM catalog.{what}_words"
        f" WHERE rowid IN (SELECT {key} FROM main.seen_{what}s)"
        f" AND rowid NOT IN (SELECT {key} FROM main.masked_{what}s)"
    )


def _count(connection: _Connection, table: str) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM catalog.{table}").fetchone()[0])


_DOCUMENT = "t.doc_id IN (SELECT doc_id FROM main.seen_documents)"
_PAGE = "t.page_id IN (SELECT page_id FROM main.seen_pages)"
_STORED_PAGE = "t.page_id IN (SELECT page_id FROM main.stored_pages)"
_ITEM = "t.item_no IN (SELECT item_no FROM main.seen_items)"
_STORED_ITEM = "t.item_no IN (SELECT item_no FROM main.stored_items)"
_MEMORY = "(t.tenant, t.memory_no) IN (SELECT tenant, memory_no FROM main.seen_memories)"
_STORED_MEMORY = "(t.tenant, t.memory_no) IN (SELECT tenant, memory_no FROM main.stored_memories)"
_PLACE = (
    "EXISTS (SELECT 1 FROM catalog.pages p WHERE p.doc_id = t.doc_id AND p.page = {page} AND p.page_id IN ({seen}))"
)
_SEEN_PAGES = "SELECT page_id FROM main.seen_pages"
_STORED_PAGES = "SELECT page_id FROM main.stored_pages"
_NUMBER = "CAST(substr({ref}, instr({ref}, '#') + 1) AS INTEGER)"
# Where the heading of a section stands.
_FIRST = (
    f"(SELECT MIN({_NUMBER.format(ref='n.ref')}) FROM catalog.edges e JOIN catalog.nodes n ON n.node_no = e.target"
    f" WHERE e.source = t.node_no AND e.kind = {CONTAINS} AND n.ref LIKE 'page:%')"
)
_NODE = (
    f"CASE WHEN t.item_no IS NOT NULL THEN {_ITEM}"
    f" WHEN t.memory_no IS NOT NULL THEN {_MEMORY}"
    f" WHEN t.ref LIKE 'page:%' THEN {_PLACE.format(page=_NUMBER.format(ref='t.ref'), seen=_SEEN_PAGES)}"
    f" WHEN t.ref LIKE 'section:%' THEN {_PLACE.format(page=_FIRST, seen=_STORED_PAGES)}"
    f" WHEN t.doc_id IS NOT NULL THEN {_DOCUMENT}"
    " WHEN t.tenant IS NOT NULL THEN {tenant}"
    " ELSE t.ref IN (SELECT ref FROM main.seen_refs) END"
)
_JOINED = (
    "CASE WHEN EXISTS (SELECT 1 FROM main.seen_memories m WHERE m.tenant = t.tenant AND m.memory_no = t.{0})"
    " THEN t.{0} END"
)
_QUOTED = _PLACE.format(page="t.page", seen=_STORED_PAGES)
# A turn whose answer may be words of a page that is not seen as it is.
_HIDDEN_TURN = (
    "EXISTS (SELECT 1 FROM catalog.turn_sources s WHERE (s.tenant, s.session, s.turn_no) = (t.tenant, t.session,"
    f" t.turn_no) AND NOT {_QUOTED.replace('t.', 's.')})"
)


def _views(connection: _Connection, seen: Seen) -> Iterator[str]:
    """A statement for each table: which of its rows are seen, and what stands in them."""
    quoted = "1" if seen.tenant is None else "t.tenant = '" + seen.tenant.replace("'", "''") + "'"
    rows: dict[str, tuple[str, Mapping[str, str]]] = {
        "meta": ("1", {}),
        "labels": ("1", {}),  # what is seen is told to the policy with them
        "documents": (_DOCUMENT, _masked("documents", ("doc_id",), seen.masked_documents)),
        "files": (f"{_DOCUMENT} AND t.doc_id NOT IN (SELECT doc_id FROM main.masked_documents)", {}),
        **dict.fromkeys(("former_ids", "tags", "ledger"), (_DOCUMENT, {})),
        "failed_pages": (f"{_DOCUMENT} AND (t.page = 0 OR {_PLACE.format(page='t.page', seen=_SEEN_PAGES)})", {}),
        "failed_files": ("'file:' || t.path IN (SELECT ref FROM main.seen_refs)", {}),
        "pages": (_PAGE, _masked("pages", ("page_id",), seen.masked_pages)),
        "chunks": (_STORED_PAGE, {}),
        "vectors": (
            "EXISTS (SELECT 1 FROM catalog.chunks c WHERE c.chunk_id = t.chunk_id"
            f" AND c.page_id IN ({_STORED_PAGES}))",
            {},
        ),
        **dict.fromkeys(("page_lines", "page_vectors"), (_STORED_PAGE, {})),
        "items": (_ITEM, _masked("items", ("item_no",), seen.masked_items)),
        "item_vectors": (_STORED_ITEM, {}),
        "item_parents": (
            "(t.kind, t.parent) IN (SELECT kind, parent FROM main.seen_parents)",
            _masked("parents", ("kind", "parent"), seen.masked_parents),
        ),
        "memory_tenants": (
            "EXISTS (SELECT 1 FROM main.seen_memories m WHERE m.tenant = t.tenant)",
            {"version": f"t.version + {random.getrandbits(48)}"},  # what is kept of other views is none of this one's
        ),
        "memories": (
            _MEMORY,
            {
                **_masked("memories", ("tenant", "memory_no"), seen.masked_memories),
                **{name: _JOINED.format(name) for name in ("joined_to", "superseded_by")},
            },
        ),
        **dict.fromkeys(("memory_vectors", "memory_facts"), (_STORED_MEMORY, {})),
        **dict.fromkeys(("memory_sources", "memory_feedback"), (_MEMORY, {})),
        "turns": (
            quoted,
            {
                "answer": f"CASE WHEN {_HIDDEN_TURN} THEN '' ELSE t.answer END",
                "searched": f"CASE WHEN {_HIDDEN_TURN} THEN t.question ELSE t.searched END",
            },
        ),
        "turn_sources": (
            f"{quoted} AND {_PLACE.format(page='t.page', seen=_SEEN_PAGES)}",
            {"quotes": f"CASE WHEN {_QUOTED} THEN t.quotes ELSE '[]' END"},
        ),
        "package_sources": (quoted, {}),
        "nodes": (_NODE.replace("{tenant}", quoted), {}),
        "edges": (
            "EXISTS (SELECT 1 FROM temp.nodes n WHERE n.node_no = t.source)"
            " AND EXISTS (SELECT 1 FROM temp.nodes n WHERE n.node_no = t.target)",
            {},
        ),
        **dict.fromkeys(
            ("node_names", "mentions"), ("EXISTS (SELECT 1 FROM temp.nodes n WHERE n.node_no = t.node_no)", {})
        ),
    }  # fmt: skip
    made = {str(row[0]) for row in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")}
    tables = connection.execute(
        "SELECT name FROM catalog.sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    )
    for table in (str(row[0]) for row in tables):
        if table in made or table.startswith(("sqlite_", "page_words", "item_words")):
            continue
        where, masked = rows.get(table, ("0", {}))
        columns = (str(row[1]) for row in connection.execute(f"PRAGMA catalog.table_info({table})"))
        shown = ", ".join(f"{masked.get(column, f't.{column}')} AS {column}" for column in columns)
        yield f"CREATE TEMP VIEW {table} AS SELECT {shown} FROM catalog.{table} t WHERE {where}"


_MASKED_COLUMNS = {
    "documents": ("filename", "title", "source_path"),
    "pages": ("image", "section_path", "parent_heading", "words", "markdown", "units"),
    "items": ("length", "title_length", "title", "metadata", "words", "embedded", "text"),
    "parents": ("metadata",),
    "memories": ("text", "speaker", "category", "metadata", "key"),
}


def _masked(table: str, keys: Sequence[str], rows: Mapping[Any, object]) -> dict[str, str]:
    """Columns with what stands in the masked rows, if there are any. Alone they are looked up, and read only where they
    are asked for."""
    same = " AND ".join(f"m.{key} = t.{key}" for key in keys)
    return {
        column: f"IFNULL((SELECT m.{column} FROM main.masked_{table} m WHERE {same}), t.{column})"
        for column in (_MASKED_COLUMNS[table] if rows else ())
    }
