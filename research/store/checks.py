"""SQLite's own: what the schema cannot say of a row: that a text is packed whole and no bomb, a vector of unit length,
a name on one line, a time one. Restore looks at every row that comes in, backup and the doctor at every row there is.

What can be made again from the other tables (full-text search, the graph) is not looked at: nobody should read it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NoReturn

from research.store.reader import unpack_vectors

REBUILT = {
    "nodes", "edges", "node_names", "mentions", "graphed_documents", "graphed_items", "graphed_tenants",
    "page_words", "page_vocabulary", "name_words", "memory_words", "item_words", "item_vocabulary",
}  # fmt: skip

_LARGEST_TEXT = 4 << 20  # a page has at most 100,000 characters; this is room for ten times as many bytes and more
_LARGEST_ROW = 64 << 20
# Texts are packed three to ten times. All together may claim more, but not without end.
_LARGEST_RATIO = 64
_FREE = 256 << 20
_LARGEST_DIM = 8192
_LONGEST_SQUARE = 1.05  # of a unit vector in half precision, with room for rounding
_LONGEST_LINE = 200
_LONGEST_PATH = 1 << 15
_LONGEST_TEXT = 1 << 16
_EDGES = (-1.0, 2.0)  # fractions of a page; what stands a little outside it is no fault
_SHOWN = 60

# Columns of JSON, and how long each may be: a request may pin a thousand refs, and a package say why each is not in it.
_JSON = {
    "warnings": 1 << 23,
    "quotes": 1 << 23,
    "tags": 1 << 23,
    "box": 1000,
    "regions": 1 << 20,
    "metadata": _LONGEST_TEXT,
    "entry": 1 << 20,
    "request": 1 << 24,
    "record": 1 << 24,
    "projection": _LONGEST_TEXT,
}
_PATHS = {"path", "source_path"}
# Line breaks and worse are in names of real files and stay.
_NAMES = {"filename", "extension", "parent", "key", "ref", "owner", "target"}
_MAYBE_TIMES = {"timestamp", "used_at", "expires_at"}
_ANY_TEXT = {
    "title", "label", "section_path", "parent_heading", "error", "ocr_engine", "reason", "context", "text", "stamp",
    "words", "embedded", "fact", "source_id", "value", "question", "searched", "answer", "model", "policy",
}  # fmt: skip
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_COUNTER = "[0-9]{1,18}"
_META = {
    "catalog_id": "[0-9a-f]{32}",
    "text_encoder": ".+",
    "text_dim": "[1-9][0-9]{0,3}",
    "text_sketch": "(-?[0-9]{1,3}( -?[0-9]{1,3}){0,63})?",
    "visual_encoder": "(off|(regions|colpali):.+)?",
    "visual_dim": "0|[1-9][0-9]{0,3}",
    "visual_problem": "(?s:.*)",
    "analyzer": "(?s:.*)",
    **dict.fromkeys(("revision", "content", "labels_seq", "vectors_seq", "page_vectors_seq", "items_seq"), _COUNTER),
}

# Queries that find no row in a sound catalog, and what a row means.
_TOGETHER = (
    (
        "SELECT d.doc_id, num_pages FROM documents d LEFT JOIN pages USING (doc_id) GROUP BY d.doc_id"
        " HAVING MAX(page) > num_pages OR (reader_version > 0 AND COUNT(page) <> num_pages) LIMIT 1",
        "the pages of the document {0} are not those from 1 to {1}",
    ),
    *(
        (
            f"SELECT MAX(seq) FROM {table} HAVING MAX(seq) >"
            f" COALESCE((SELECT CAST(value AS BIGINT) FROM meta WHERE key = '{table}_seq'), 0)",
            f"{table} holds number {{0}}, which was never given out",
        )
        for table in ("vectors", "page_vectors", "items")
    ),
    (
        "SELECT m.seq FROM memories m JOIN memory_tenants t ON t.tenant = m.tenant AND m.seq > t.last_seq LIMIT 1",
        "memories holds a change {0}, which was never made",
    ),
    (
        "SELECT doc_id FROM turn_sources s WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.doc_id = s.doc_id)"
        " LIMIT 1",
        "a turn cites the document {0}, which is not there",
    ),
)


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Tables that are kept in a backup, parents before their children."""
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE %' ORDER BY rowid")
    names = [str(row[0]) for row in rows]
    own = re.compile("sqlite_|(page|item)_words_")  # SQLite's and those that full-text search keeps for itself
    return [name for name in names if name not in REBUILT and not own.match(name)]


def damage_of(connection: sqlite3.Connection, *, quickly: bool = False) -> str:
    """What SQLite finds wrong with the file, its values among it; `quickly` does not compare indexes with tables."""
    found = connection.execute("PRAGMA quick_check(3)" if quickly else "PRAGMA integrity_check(3)")
    answer = [str(row[0]) for row in found]
    return "" if answer == ["ok"] else "; ".join(answer)


def rebuild_indexes(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.DatabaseError):  # the second look finds it as it was and says so
        connection.execute("REINDEX")


def orphans_of(connection: sqlite3.Connection) -> list[object]:
    """Rows whose parent is gone, in whatever tables the catalog has."""
    return connection.execute("PRAGMA foreign_key_check").fetchall()


def delete_orphans(connection: sqlite3.Connection) -> None:
    """Delete those rows, and then the ones that lose their parent by it; part of the caller's transaction."""
    while sum(connection.execute(statement).rowcount for statement in _deletions(connection)):
        pass


def _deletions(connection: sqlite3.Connection) -> Iterator[str]:
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        keys: dict[int, list[str]] = {}
        parents: dict[int, str] = {}
        for number, _, parent, column, *_ in connection.execute(f'PRAGMA foreign_key_list("{table}")').fetchall():
            keys.setdefault(number, []).append(column)
            parents[number] = parent
        for number, columns in keys.items():
            parent = parents[number]
            rows = connection.execute(f'SELECT name FROM pragma_table_info("{parent}") WHERE pk > 0 ORDER BY pk')
            same = (f'p."{row[0]}" = "{table}"."{column}"' for row, column in zip(rows, columns, strict=True))
            yield f'DELETE FROM "{table}" WHERE NOT EXISTS (SELECT 1 FROM "{parent}" p WHERE {" AND ".join(same)})'


def value_problem(connection: sqlite3.Connection) -> str:
    """The first value that is not as ctx writes it, in words; empty if there is none. Raises `sqlite3.Error` where
    SQLite cannot read one."""
    before = connection.row_factory
    review = Review(connection)
    try:
        for table in tables_of(connection):
            for _ in review.rows(connection, table):
                pass
        return together_problem(connection)
    except ValueError as error:
        return str(error)
    finally:
        connection.row_factory = before
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, review.limit)


def together_problem(connection: sqlite3.Connection) -> str:
    """What rows say of each other that cannot be."""
    for query, words in _TOGETHER:
        row = connection.execute(query).fetchone()
        if row is not None:
            return words.format(*map(_shown, row))
    return ""


class Review:
    """Looks at rows, table by table as `tables_of` has them, and remembers what later ones are held against."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        size = connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
        self.limit = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_ROW)
        connection.row_factory = sqlite3.Row
        self._room = _FREE + _LARGEST_RATIO * int(size[0])  # bytes that texts may still unpack to
        self._settings: dict[str, str] = {}
        # What the next run reads again may be torn.
        self._to_be_read: set[str] = set()
        self._torn_pages: set[int] = set()
        self._lines: dict[int, int] = {}  # page_id → lines that OCR read

    def rows(self, connection: sqlite3.Connection, table: str) -> Iterator[sqlite3.Row]:
        """Every row, each looked at. Raises ValueError at one that is not as ctx writes it."""
        rule = getattr(self, f"_{table}", None)
        found = connection.execute(f"SELECT * FROM {table}")
        forms = [(str(each[0]), *_form_of(table, str(each[0]))) for each in found.description]
        for row in found:
            for value, (column, what, holds) in zip(row, forms, strict=True):
                if isinstance(value, str) and not holds(value):
                    raise ValueError(f"{table}.{column} is {_shown(value)}, not {what}")
            try:
                problem = rule(row) if rule else ""
            except TypeError as error:
                raise ValueError(f"{table} holds a value of another kind") from error
            if problem:
                raise ValueError(f"{table}: {problem}")
            yield row

    def _meta(self, row: sqlite3.Row) -> str:
        key, value = row
        self._settings[key] = value
        if key not in _META:
            return f"{_shown(key)} is not a setting of ctx"
        sound = re.fullmatch(_META[key], value, re.ASCII) and (not key.endswith("_encoder") or _is_encoder(value))
        if sound and key.endswith("_dim"):
            sound = int(value) <= _LARGEST_DIM
        return "" if sound else f"{key} is {_shown(value)}"

    def _documents(self, row: sqlite3.Row) -> str:
        if row["reader_version"] == 0:
            self._to_be_read.add(row["doc_id"])
        return ""

    def _pages(self, row: sqlite3.Row) -> str:
        if row["doc_id"] in self._to_be_read:
            self._torn_pages.add(row["page_id"])
        return self._unpacked(row["markdown"], row["page_id"])[1]

    def _chunks(self, row: sqlite3.Row) -> str:
        return self._unpacked(row["text"], row["page_id"])[1]

    def _page_lines(self, row: sqlite3.Row) -> str:
        data, problem = self._unpacked(row["lines"], row["page_id"])
        if not data:
            return problem
        try:
            lines = strict_json(data.decode())
        except ValueError:
            lines = None
        if not isinstance(lines, list) or not all(
            isinstance(line, list) and len(line) == 5 and type(line[0]) is str and _are_edges(line[1:])
            for line in lines
        ):
            return "what OCR read of a page is no list of lines"
        self._lines[row["page_id"]] = len(lines)
        return ""

    def _vectors(self, row: sqlite3.Row) -> str:
        return unit_problem(row["vector"], int(self._settings.get("text_dim", 0)))

    def _page_vectors(self, row: sqlite3.Row) -> str:
        from research.encoders import FULL, SKETCH, shape_of

        first, boxes, sketch, vectors = (row[name] for name in ("first", "boxes", "sketch", "vectors"))
        if not (first or boxes or sketch or vectors):  # nothing could be seen on the page
            return ""
        dim = int(self._settings.get("visual_dim", 0))
        try:
            bits, found, count = shape_of(vectors)
            if (bits, found) != (FULL, dim):
                return f"a page's vectors have {found} dimensions, not {dim}"
            if self._settings.get("visual_encoder", "").startswith("regions:"):
                fits = not (first or boxes or sketch) and count == self._lines.get(row["page_id"])
                return "" if fits else "a page has other vectors than lines"
            if shape_of(sketch) != (SKETCH, dim, count) or len(boxes) != 8 * count:
                return "a page's vectors, sketch and boxes differ in number"
        except ValueError as error:
            return str(error)
        return unit_problem(first, dim)

    def _memory_vectors(self, row: sqlite3.Row) -> str:
        return unit_problem(row["vector"])

    _item_vectors = _memory_vectors

    def _unpacked(self, blob: bytes, page_id: int) -> tuple[bytes, str]:
        """A packed text, and what is wrong with it."""
        most = min(_LARGEST_TEXT, self._room)
        opened = zlib.decompressobj()
        try:
            data = opened.decompress(blob, most + 1)
            if len(data) > most:
                return b"", "a text unpacks to more than any page has"
            data.decode()
            sound = opened.eof and not opened.unused_data  # neither cut off nor followed by something else
        except (zlib.error, UnicodeDecodeError):
            sound = False
        if not sound:
            return b"", "" if page_id in self._torn_pages else "a text is damaged"
        self._room -= len(data)
        return data, ""


def unit_problem(blob: bytes, dim: int | None = None) -> str:
    """What is wrong with a vector as it is stored; empty if nothing is. Without `dim`, of any that encoders have."""
    import numpy as np

    wanted = min(_LARGEST_DIM, len(blob) // 2) if dim is None else dim
    if not wanted or len(blob) != 2 * wanted:
        return f"a vector has {len(blob)} bytes, not {2 * wanted}"
    [vector] = unpack_vectors([blob]).astype(np.float32)
    # A zero vector is a text without meaning. The comparison is false for NaN and infinite numbers, too.
    return "" if float(np.einsum("i,i->", vector, vector)) <= _LONGEST_SQUARE else "a vector is not of unit length"


def _form_of(table: str, column: str) -> tuple[str, Callable[[str], bool]]:
    """What a text in this column should be, in words and as a test. One that is not named here is on one line."""
    forms: tuple[tuple[bool, str, Callable[[str], bool]], ...] = (
        (column in _JSON, "JSON of ctx", lambda value: len(value) <= _JSON[column] and _is_json(column, value)),
        (column in _PATHS, "an absolute path", _is_path),
        (column in _NAMES and table != "memories", "a name", lambda v: len(v) <= _LONGEST_PATH and "\0" not in v),
        (column in _MAYBE_TIMES, "a time in ISO 8601, or nothing", lambda value: not value or _is_time(value)),
        (column == "at" or column.endswith("_at"), "a time in ISO 8601", _is_time),
        (column == "tag" or table == "labels", "a tag", lambda v: v == v.strip() and v.isprintable()),
        (column in _ANY_TEXT, "a text of reasonable length", lambda value: len(value) <= _LONGEST_TEXT),
        (column == "encoder", "an encoder's name", _is_encoder),
        (True, "a name on one line", _is_line),
    )
    return next((what, holds) for applies, what, holds in forms if applies)


def _is_line(value: str) -> bool:
    return len(value) <= _LONGEST_LINE and value == value.strip() and not _BREAKS.search(value)


def _is_path(value: str) -> bool:
    absolute = PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute()
    return absolute and len(value) <= _LONGEST_PATH and "\0" not in value


def _is_time(value: str) -> bool:
    try:
        return len(value) <= 40 and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _is_encoder(value: str) -> bool:
    """Whether a name can be shown and typed: nothing in it moves the cursor, ends the line or turns the reading."""
    if len(value) > 1024 or value != value.strip():
        return False
    return not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in _TURNING for char in value)


def _is_json(column: str, value: str) -> bool:
    try:
        found = strict_json(value)
    except ValueError:
        return False
    if column == "box":
        return len(found) == 4 and _are_edges(found)
    if column == "regions":
        return all(
            isinstance(entry, list)
            and len(entry) == 5
            and type(entry[0]) is int
            and 0 <= entry[0] < 1 << 63
            and _are_edges(entry[1:])
            for entry in found
        )
    return not isinstance(found, list) or all(type(entry) is str for entry in found)


def _are_edges(values: Iterable[Any]) -> bool:
    # Compared, not converted: NaN fails, and an integer of a thousand digits costs nothing.
    return all(type(value) in (int, float) and _EDGES[0] <= value <= _EDGES[1] for value in values)


def _shown(value: object) -> str:
    """A value of any size and kind, short and on one line."""
    text = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
    return text if len(text) <= _SHOWN + 2 else f"{text[:_SHOWN]}…"


def strict_json(text: str) -> Any:
    """What JSON from outside says, or ValueError and nothing else: nesting beyond reason, NaN, Infinity and a key given
    twice are refused like any other fault. The caller bounds the text's length: what is read takes some ten times the
    room."""
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found
