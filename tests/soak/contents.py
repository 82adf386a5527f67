"""All that an index holds, in a form in which two indexes of the same files are equal.

Tables are compared whole, whichever there are. Numbers that only tell the order of writing are replaced by what they
stand for, and times and identities are left out.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from research.contract import ContextBuilder, SearchEngine
from research.store import ChromaClient, IndexPaths, generations

_VOLATILE_COLUMNS = {"timestamp"}
_VOLATILE_META = {"catalog_id", "revision", "vectors_seq", "page_vectors_seq"}


def contents(root: Path, questions: tuple[str, ...]) -> dict[str, Any]:
    """Tables, image files, Chroma's records and the answers."""
    paths = IndexPaths(root)
    with ChromaClient(root) as client:
        assert not generations.state_of(client.catalog).behind
        engine = SearchEngine(client)
        builder = ContextBuilder(engine, client)
        return {
            **tables(paths),
            "image files": {
                str(file.relative_to(root)): _digest(file.read_bytes()) for file in paths.images.rglob("*.*")
            },
            "text collection": _records(client.text_collection, root),
            "visual collection": _records(client.visual_collection, root),
            "answers": {question: _answer(engine, builder, question) for question in questions},
        }


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Part by part, so that a failure names what differs."""
    assert found.keys() == expected.keys()
    for part, wanted in expected.items():
        assert found[part] == wanted, f"{part} differs"


def assert_whole(root: Path) -> int:
    """Nothing half of a document is in the catalog, at any moment; returns how many documents are."""
    paths = IndexPaths(root)
    if not paths.exists:
        return 0
    with closing(sqlite3.connect(f"file:{paths.catalog}?mode=ro", uri=True)) as catalog:
        if catalog.execute("PRAGMA user_version").fetchone()[0] == 0:
            return 0
        catalog.execute("BEGIN")
        assert catalog.execute("PRAGMA foreign_key_check").fetchall() == []
        torn = catalog.execute(
            "SELECT doc_id FROM documents d WHERE num_pages <> (SELECT COUNT(*) FROM pages p WHERE p.doc_id = d.doc_id)"
        ).fetchall()
        assert torn == []
        unlisted = "SELECT page_id FROM pages EXCEPT SELECT rowid FROM page_words"
        assert catalog.execute(unlisted).fetchall() == []
        return int(catalog.execute("SELECT COUNT(*) FROM documents").fetchone()[0])


def tables(paths: IndexPaths) -> dict[str, Any]:
    with closing(sqlite3.connect(f"file:{paths.catalog}?mode=ro", uri=True)) as catalog:
        catalog.row_factory = sqlite3.Row
        listed = [(row["name"], row["type"]) for row in catalog.execute("PRAGMA table_list") if row["schema"] == "main"]
        return {
            f"table {name}": _rows(catalog, name, virtual=kind == "virtual")
            for name, kind in sorted(listed)
            if kind in {"table", "virtual"} and not name.startswith("sqlite_")
        }


def _rows(catalog: sqlite3.Connection, table: str, *, virtual: bool) -> list[Any]:
    made = catalog.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    if virtual and "fts5vocab" not in made:  # its rowid is a page's
        found = catalog.execute(f"SELECT rowid, * FROM {table}").fetchall()
        return sorted(((_natural(catalog, "pages", row[0]), *row[1:]) for row in found), key=repr)
    given = _given_key(catalog, table)
    parents = _parents(catalog, table)
    rows = []
    for row in catalog.execute(f"SELECT * FROM {table}"):
        if table == "meta" and row["key"] in _VOLATILE_META:
            continue
        rows.append(
            tuple(
                _natural(catalog, parents[name], row[name]) if name in parents else _plain(row[name])
                for name in row.keys()  # noqa: SIM118  a Row iterates over its values
                if name not in _VOLATILE_COLUMNS and (name != given or name in parents)
            )
        )
    return sorted(rows, key=repr)


def _natural(catalog: sqlite3.Connection, table: str, key: object) -> Any:
    """What a number given by order stands for: the row's unique columns, their own references followed."""
    given = _given_key(catalog, table)
    if given is None:
        return key
    unique = next(row["name"] for row in catalog.execute(f"PRAGMA index_list({table})") if row["unique"])
    # An expression has no name, and adds nothing to what the columns beside it tell apart here.
    columns = [row["name"] for row in catalog.execute(f"PRAGMA index_info({unique})") if row["name"] is not None]
    row = catalog.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {given} = ?", (key,)).fetchone()
    if row is None:  # nothing is referred to
        return None
    parents = _parents(catalog, table)
    return tuple(_natural(catalog, parents[c], row[c]) if c in parents else row[c] for c in columns)


def _given_key(catalog: sqlite3.Connection, table: str) -> str | None:
    """The column that SQLite numbers by itself."""
    keys = [row for row in catalog.execute(f"PRAGMA table_info({table})") if row["pk"]]
    return keys[0]["name"] if len(keys) == 1 and keys[0]["type"] == "INTEGER" else None


def _parents(catalog: sqlite3.Connection, table: str) -> dict[str, str]:
    return {row["from"]: row["table"] for row in catalog.execute(f"PRAGMA foreign_key_list({table})")}


def _plain(value: object) -> object:
    return _digest(value) if isinstance(value, bytes) else value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _records(collection: Any, root: Path) -> dict[str, Any]:
    found = collection.get(include=["embeddings", "metadatas"])
    return {
        key: (
            _digest(vector.astype("<f4").tobytes()),
            {n: str(v).replace(str(root), "") for n, v in metadata.items() if n not in _VOLATILE_COLUMNS},
        )
        for key, vector, metadata in zip(found["ids"], found["embeddings"], found["metadatas"], strict=True)
    }


def _answer(engine: SearchEngine, builder: ContextBuilder, question: str) -> Any:
    ranked = [(found.page.filename, found.page.page, round(found.score, 5)) for found in engine.run(question, 10).found]
    return sorted(ranked, key=lambda hit: (-hit[2], hit[0], hit[1])), builder.build(question).total_tokens
