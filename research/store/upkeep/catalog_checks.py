"""SQLite's own: whether a catalog that came from outside holds only what our own writer puts into one.

`TABLES` names a check for every column, so a new table or column is one entry there; a test fails without it. What
can be made again from these tables (full-text search, words of names) is not looked at: nobody should read it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from research.store.catalog.governance import KINDS as AUDIT_KINDS
from research.store.catalog.labels import CLASSIFICATIONS, ORIGINS
from research.store.catalog.labels import NAMES as LABELS
from research.store.catalog.ledger import STAGES
from research.store.upkeep import column_checks as columns
from research.store.upkeep.column_checks import ColumnCheck, count_lines, shown, unpack

GRAPH = frozenset({"nodes", "edges", "node_names", "mentions", "graphed_documents", "graphed_items", "graphed_tenants"})
REBUILT = GRAPH | {"page_words", "page_vocabulary", "name_words", "memory_words", "item_words", "item_vocabulary"}

# A page has at most 100,000 characters; this is room for ten times as many bytes and more.
LARGEST_TEXT = 4 << 20
_LARGEST_ROW = 64 << 20
# Texts are packed three to ten times. All together may claim more, but not without end.
_LARGEST_RATIO = 64
_FREE = 256 << 20
_LARGEST_DIM = 8192
_LONGEST_SQUARE = 1.05  # of a unit vector in half precision, with room for rounding

_META: dict[str, ColumnCheck] = {
    "catalog_id": columns.IDENTITY,
    "text_encoder": columns.ENCODER,
    "text_dim": columns.matching("a number of dimensions", "[1-9][0-9]{0,3}"),
    "text_sketch": columns.matching("a sketch of a vector", "(-?[0-9]{1,3}( -?[0-9]{1,3}){0,63})?"),
    "visual_encoder": columns.VISUAL_ENCODER,
    "visual_dim": columns.matching("a number of dimensions", "0|[1-9][0-9]{0,3}"),
    "visual_problem": columns.NOTE,
    "revision": columns.matching("a counter", "[0-9]{1,18}"),
    "analyzer": columns.NOTE,
    "vectors_seq": columns.matching("a counter", "[0-9]{1,18}"),
    "page_vectors_seq": columns.matching("a counter", "[0-9]{1,18}"),
    "items_seq": columns.matching("a counter", "[0-9]{1,18}"),
    "content": columns.matching("a counter", "[0-9]{1,18}"),
    "labels_seq": columns.matching("a counter", "[0-9]{1,18}"),
}


@dataclass(slots=True)
class _Review:
    """What is known of the catalog by now, for checks of one row that need another's."""

    dims: dict[str, int] = field(default_factory=dict)
    visual_encoder: str = ""
    to_be_read: set[str] = field(default_factory=set)  # documents that the next run reads again: their text may be torn
    torn_pages: set[int] = field(default_factory=set)  # pages of these
    lines: dict[int, int] = field(default_factory=dict)  # page_id → lines that OCR read
    room: int = 0  # bytes that texts may still unpack to


Rule = Callable[[sqlite3.Row, _Review], str]
"""What is wrong with a row whose values are each fine by themselves; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class Table:
    """A check for every column, and a rule for the row as a whole."""

    columns: dict[str, ColumnCheck]
    rule: Rule | None = None


def validate_catalog(connection: sqlite3.Connection) -> Iterator[str]:
    """Every value that is not one of ours, in words. Reads each row once and holds one at a time.

    The tables must be those of `schema`, at its version. Raises `sqlite3.Error` where SQLite cannot read a value.
    """
    before = connection.row_factory
    connection.row_factory = sqlite3.Row
    limit = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_ROW)
    try:
        size = connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
        review = _Review(room=_FREE + _LARGEST_RATIO * int(size[0]))
        for name, table in TABLES.items():
            yield from _problems(connection, name, table, review)
        for query, words in _TOGETHER:
            row = connection.execute(query).fetchone()
            if row is not None:
                yield words.format(*map(shown, row))
    finally:
        connection.row_factory = before
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)


def _problems(connection: sqlite3.Connection, name: str, table: Table, review: _Review) -> Iterator[str]:
    wanted = tuple(table.columns.items())
    for row in connection.execute(f"SELECT {', '.join(table.columns)} FROM {name}"):
        for (column, check), value in zip(wanted, row, strict=True):
            if not check.holds(value):
                yield f"{name}.{column} is {shown(value)}, not {check.what}"
                break
        else:
            problem = table.rule(row, review) if table.rule else ""
            if problem:
                yield f"{name}: {problem}"


def _meta(row: sqlite3.Row, review: _Review) -> str:
    key, value = row
    if not _META[key].holds(value):
        return f"{key} is {shown(value)}, not {_META[key].what}"
    if key.endswith("_dim"):
        review.dims[key] = int(value)
        return "" if int(value) <= _LARGEST_DIM else f"{key} is {value}, more than any encoder has"
    if key == "visual_encoder":
        review.visual_encoder = value
    return ""


def _document(row: sqlite3.Row, review: _Review) -> str:
    if row["reader_version"] == 0:
        review.to_be_read.add(row["doc_id"])
    same = row["sha256"].startswith(row["doc_id"])
    return "" if same else f"the id {row['doc_id']} is not the beginning of its SHA-256"


def _page(row: sqlite3.Row, review: _Review) -> str:
    if row["doc_id"] in review.to_be_read:
        review.torn_pages.add(row["page_id"])
    return _text(row["markdown"], row["page_id"], review)[1]


def _chunk(row: sqlite3.Row, review: _Review) -> str:
    return _text(row["text"], row["page_id"], review)[1]


def _page_lines(row: sqlite3.Row, review: _Review) -> str:
    data, problem = _text(row["lines"], row["page_id"], review)
    if not data:
        return problem
    count = count_lines(data)
    if count is None:
        return "what OCR read of a page is no list of lines"
    review.lines[row["page_id"]] = count
    return ""


def _text(blob: bytes, page_id: int, review: _Review) -> tuple[bytes, str]:
    """A packed text, and what is wrong with it."""
    try:
        data = unpack(blob, min(LARGEST_TEXT, review.room))
        data.decode()
    except OverflowError:
        return b"", "a text unpacks to more than any page has"
    except (zlib.error, UnicodeDecodeError):
        return b"", "" if page_id in review.torn_pages else "a text is damaged"
    review.room -= len(data)
    return data, ""


def _vector(row: sqlite3.Row, review: _Review) -> str:
    return unit_problem(row["vector"], review.dims.get("text_dim", 0))


def _page_vector(row: sqlite3.Row, review: _Review) -> str:
    from research.encoders import FULL, SKETCH, shape_of

    first, boxes, sketch, vectors = (row[name] for name in ("first", "boxes", "sketch", "vectors"))
    if not (first or boxes or sketch or vectors):  # nothing could be seen on the page
        return ""
    dim = review.dims.get("visual_dim", 0)
    try:
        bits, found, count = shape_of(vectors)
        if (bits, found) != (FULL, dim):
            return f"a page's vectors have {found} dimensions, not {dim}"
        if review.visual_encoder.startswith("regions:"):
            fits = not (first or boxes or sketch) and count == review.lines.get(row["page_id"])
            return "" if fits else "a page has other vectors than lines"
        if shape_of(sketch) != (SKETCH, dim, count) or len(boxes) != 8 * count:
            return "a page's vectors, sketch and boxes differ in number"
    except ValueError as error:
        return str(error)
    return unit_problem(first, dim)


def _memory(row: sqlite3.Row, review: _Review) -> str:
    for column in ("joined_to", "superseded_by"):
        if row[column] == row["memory_no"]:
            return f"a memory is {column.replace('_', ' ')} itself"
    return ""


def _label(row: sqlite3.Row, review: _Review) -> str:
    strange = row["name"] == "classification" and row["value"] not in CLASSIFICATIONS
    return f"{shown(row['value'])} is no classification" if strange else ""


def _own_vector(row: sqlite3.Row, review: _Review) -> str:
    return unit_problem(row["vector"], min(_LARGEST_DIM, len(row["vector"]) // 2))


def _item(row: sqlite3.Row, review: _Review) -> str:
    return "" if row["item_no"] <= row["seq"] else "an item is numbered after its last change"


def unit_problem(blob: bytes, dim: int) -> str:
    """What is wrong with a vector as it is stored; empty if nothing is."""
    import numpy as np

    if not dim or len(blob) != 2 * dim:
        return f"a vector has {len(blob)} bytes, not {2 * dim}"
    vector = np.frombuffer(blob, dtype="<f2").astype(np.float32)
    # A zero vector is a text without meaning. The comparison is false for NaN and infinite numbers, too.
    return "" if float(np.einsum("i,i->", vector, vector)) <= _LONGEST_SQUARE else "a vector is not of unit length"


_STAGE = columns.one_of("a stage of ctx", STAGES)
_CODE = columns.matching("a word for a failure", "[a-z_]{1,40}")

# Parents stand before their children: what is copied in this order refers to nothing that is not there yet.
TABLES: dict[str, Table] = {
    "meta": Table({"key": columns.one_of("a setting of ctx", frozenset(_META)), "value": columns.NOTE}, _meta),
    "documents": Table(
        {
            "doc_id": columns.DOC_ID,
            "sha256": columns.SHA256,
            "filename": columns.NAME,
            "extension": columns.ENDING,
            "title": columns.NOTE,
            "num_pages": columns.PAGE,
            "timestamp": columns.TIME,
            "source_path": columns.PATH,
            "size_bytes": columns.COUNT,
            "reader_version": columns.COUNT,
            "warnings": columns.WARNINGS,
            "file_id": columns.FILE_ID,
        },
        _document,
    ),
    "files": Table(
        {
            "path": columns.PATH,
            "doc_id": columns.DOC_ID,
            "size": columns.COUNT,
            "mtime_ns": columns.ANY_INTEGER,
            "ctime_ns": columns.ANY_INTEGER,
            "inode": columns.ANY_INTEGER,
        }
    ),
    "pages": Table(
        {
            "page_id": columns.KEY,
            "doc_id": columns.DOC_ID,
            "page": columns.PAGE,
            "label": columns.NOTE,
            "section_path": columns.NOTE,
            "parent_heading": columns.NOTE,
            "num_headings": columns.COUNT,
            "num_tables": columns.COUNT,
            "num_pictures": columns.COUNT,
            "error": columns.NOTE,
            "words": columns.COUNT,
            "markdown": columns.BLOB,
            "image": columns.FLAG,
            "needs_ocr": columns.FLAG,
            "ocr_engine": columns.NOTE,
            "units": columns.BLOB,
        },
        _page,
    ),
    "page_lines": Table({"page_id": columns.KEY, "lines": columns.BLOB}, _page_lines),
    "chunks": Table(
        {
            "chunk_id": columns.KEY,
            "page_id": columns.KEY,
            "ordinal": columns.integer("a chunk's place on its page", most=1_000_000),
            "text": columns.BLOB,
            "context": columns.NOTE,
            "tokens": columns.integer("a number of tokens", most=1_000_000),
            "box": columns.BOX,
            "regions": columns.REGIONS,
        },
        _chunk,
    ),
    "vectors": Table({"seq": columns.KEY, "chunk_id": columns.KEY, "vector": columns.BLOB}, _vector),
    "page_vectors": Table(
        {
            "seq": columns.KEY,
            "page_id": columns.KEY,
            "first": columns.BLOB,
            "boxes": columns.BLOB,
            "sketch": columns.BLOB,
            "vectors": columns.BLOB,
        },
        _page_vector,
    ),
    "ledger": Table({"doc_id": columns.DOC_ID, "stage": _STAGE}),
    "failed_pages": Table(
        {
            "doc_id": columns.DOC_ID,
            "page": columns.integer("a page number, or 0 for the whole document", most=999_999_999),
            "stage": _STAGE,
            "code": _CODE,
            "reason": columns.NOTE,
            "tries": columns.COUNT,
        }
    ),
    "failed_files": Table(
        {
            "path": columns.PATH,
            "sha256": columns.SHA256,
            "reader_version": columns.COUNT,
            "code": _CODE,
            "reason": columns.NOTE,
            "tries": columns.COUNT,
        }
    ),
    "tags": Table({"doc_id": columns.DOC_ID, "tag": columns.TAG}),
    "former_ids": Table({"former_id": columns.FORMER_ID, "doc_id": columns.DOC_ID}),
    "memory_tenants": Table({"tenant": columns.WHO, "version": columns.COUNT, "last_seq": columns.COUNT}),
    "memories": Table(
        {
            "tenant": columns.WHO,
            "memory_no": columns.KEY,
            "seq": columns.KEY,
            "id": columns.WHO,
            "key": columns.WHO,
            "digest": columns.matching("a digest (40 hex digits)", "[0-9a-f]{40}"),
            "joined_to": columns.MAYBE_KEY,
            "superseded_by": columns.MAYBE_KEY,
            "type": columns.WHO,
            "category": columns.WHO,
            "importance": columns.SHARE,
            "namespace": columns.WHO,
            "session": columns.WHO,
            "persona": columns.WHO,
            "speaker": columns.WHO,
            "created_at": columns.TIME,
            "told_at": columns.TIME,
            "used_at": columns.MAYBE_TIME,
            "expires_at": columns.MAYBE_TIME,
            "helped": columns.COUNT,
            "not_helped": columns.COUNT,
            "tags": columns.WARNINGS,
            "metadata": columns.METADATA,
            "text": columns.NOTE,
        },
        _memory,
    ),
    "memory_vectors": Table(
        {"tenant": columns.WHO, "memory_no": columns.KEY, "encoder": columns.ENCODER, "vector": columns.BLOB},
        _own_vector,
    ),
    "memory_sources": Table({"tenant": columns.WHO, "source_id": columns.NOTE, "memory_no": columns.KEY}),
    "memory_feedback": Table(
        {
            "tenant": columns.WHO,
            "memory_no": columns.KEY,
            "seq": columns.KEY,
            "helped": columns.FLAG,
            "score": columns.SHARE,
            "given_at": columns.TIME,
        }
    ),
    "turns": Table(
        {
            "tenant": columns.WHO,
            "session": columns.WHO,
            "turn_no": columns.KEY,
            "asked_at": columns.TIME,
            "model": columns.NOTE,
            "question": columns.NOTE,
            "searched": columns.NOTE,
            "answer": columns.NOTE,
        }
    ),
    "turn_sources": Table(
        {
            "tenant": columns.WHO,
            "session": columns.WHO,
            "turn_no": columns.KEY,
            "citation": columns.KEY,
            "doc_id": columns.DOC_ID,
            "page": columns.PAGE,
            "score": columns.SHARE,
            "quotes": columns.WARNINGS,
        }
    ),
    "labels": Table(
        {
            "tenant": columns.WHO,
            "target": columns.LABEL_TARGET,
            "name": columns.one_of("a label of ctx", frozenset(LABELS)),
            "value": columns.TAG,
            "origin": columns.one_of("where a label comes from", frozenset(ORIGINS)),
            "given_at": columns.TIME,
        },
        _label,
    ),
    "item_parents": Table(
        {
            "kind": columns.ITEM_KIND,
            "parent": columns.ITEM_KEY,
            "stamp": columns.NOTE,
            "read_at": columns.TIME,
            "metadata": columns.METADATA,
        }
    ),
    "items": Table(
        {
            "item_no": columns.KEY,
            "kind": columns.ITEM_KIND,
            "parent": columns.ITEM_KEY,
            "key": columns.ITEM_KEY,
            "seq": columns.KEY,
            "created_at": columns.TIME,
            "length": columns.COUNT,
            "title_length": columns.COUNT,
            "prior": columns.ColumnCheck("a number from -1 to 1", lambda n: type(n) in (int, float) and -1 <= n <= 1),
            "title": columns.NOTE,
            "metadata": columns.METADATA,
            "words": columns.NOTE,
            "embedded": columns.NOTE,
            "text": columns.NOTE,
        },
        _item,
    ),
    "item_vectors": Table(
        {"item_no": columns.KEY, "part": columns.COUNT, "encoder": columns.ENCODER, "vector": columns.BLOB},
        _own_vector,
    ),
    "audit": Table(
        {
            "seq": columns.KEY,
            "at": columns.TIME,
            "kind": columns.one_of("a kind of audit entries", frozenset(AUDIT_KINDS)),
            "tenant": columns.WHO,
            "principal": columns.WHO,
            "decision": columns.WHO,
            "denied": columns.COUNT,
            "hash": columns.SHA256,
            "entry": columns.AUDIT_ENTRY,
        }
    ),
    "package_requests": Table(
        {
            "tenant": columns.WHO,
            "principal": columns.WHO,
            "request_id": columns.WHO,
            "asked_at": columns.TIME,
            "request": columns.PACKAGE_JSON,
        }
    ),
    "packages": Table(
        {
            "package_id": columns.IDENTITY,
            "tenant": columns.WHO,
            "principal": columns.WHO,
            "request_id": columns.WHO,
            "built_at": columns.TIME,
            "expires_at": columns.TIME,
            "policy": columns.NOTE,
            "revision": columns.WHO,
            "record": columns.PACKAGE_JSON,
        }
    ),
    "package_sources": Table(
        {
            "package_id": columns.IDENTITY,
            "ref": columns.REF,
            "owner": columns.REF,
            "tenant": columns.WHO,
            "useful": columns.USEFUL,
        }
    ),
    "package_cache": Table(
        {
            "package_id": columns.WHO,
            "tenant": columns.WHO,
            "principal": columns.WHO,
            "policy": columns.WHO,
            "revision": columns.WHO,
            "put_at": columns.TIME,
            "expires_at": columns.TIME,
            "digest": columns.SHA256,
            "package": columns.BLOB,
        }
    ),
    "projections": Table({"projection_id": columns.WHO, "made_at": columns.TIME, "projection": columns.METADATA}),
}

# Queries that find one row in a sound catalog never, and what such a row means.
_TOGETHER: tuple[tuple[str, str], ...] = (
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
        "SELECT MAX(m.seq) FROM memories m JOIN memory_tenants t ON t.tenant = m.tenant AND m.seq > t.last_seq"
        " HAVING MAX(m.seq) > 0",
        "memories holds a change {0}, which was never made",
    ),
    (
        "SELECT doc_id FROM turn_sources s WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.doc_id = s.doc_id)"
        " LIMIT 1",
        "a turn cites the document {0}, which is not there",
    ),
)
