"""A real backup taken apart, changed in one place and put together again; and an index to try it on."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from index_making import DIM, JPEG, WEBP, Making
from numpy.typing import NDArray

from research.encoders import pack
from research.records import Line
from research.store import publish as writer
from research.store import vectors as page_vectors
from research.store.archive import CATALOG, MANIFEST, backup
from research.store.paths import IndexPaths, image_name, thumbnail_name
from research.store.vectors import PageBlobs

Change = Callable[["Parts"], None]


@dataclass
class Parts:
    """A backup taken apart: its catalog as a file, its manifest and images as bytes."""

    catalog: Path
    manifest: bytes
    images: dict[str, bytes]


@dataclass(frozen=True)
class Whole:
    """An index with everything in it, a backup of it, and its files as they are."""

    paths: IndexPaths
    file: Path
    before: dict[str, bytes]


def bytes_of(root: Path) -> dict[str, bytes]:
    """Every file but locks and SQLite's own helpers, which come and go with a reader."""
    found = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm", ".lock")))
    # Chroma's database changes by being read; nothing here reads it.
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def make_whole(folder: Path) -> Whole:
    """Two documents with vectors, an image, lines that OCR read, and published collections."""
    made = Making(folder / "index")
    info = made.add("walrus.pdf", ["walrus", "seal"])
    made.add("orca.pdf", ["orca"])
    made.embed()
    catalog = made.catalog
    place = made.paths.image_folder(info.doc_id)
    place.mkdir(parents=True)
    (place / image_name(1)).write_bytes(JPEG)
    (place / thumbnail_name(1)).write_bytes(WEBP)
    catalog.documents.mark_drawn(info.doc_id, [1], published=0)
    with catalog.transaction() as connection:
        lines = [Line("a [walrus]", (0.1, 0.1, 0.5, 0.2)), Line("ice", (0, 0, 1, 1))]
        connection.visual.write_lines(1, page_vectors.pack_lines(lines))
    catalog.visual.write([PageBlobs(1, b"", b"", b"", pack(unit_rows(2)))])
    writer.publish(catalog)
    catalog.close()
    backup(made.paths, folder / "backup.zip")
    return Whole(made.paths, folder / "backup.zip", bytes_of(made.paths.root))


def unit_rows(count: int, dim: int = DIM) -> NDArray[Any]:
    rows = np.random.default_rng(3).standard_normal((count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rewritten(whole: Whole, folder: Path, change: Change) -> Path:
    """The backup with one thing changed."""
    with zipfile.ZipFile(whole.file) as opened:
        opened.extract(CATALOG, folder)
        pictures = {name: opened.read(name) for name in opened.namelist() if name.startswith("images/")}
        parts = Parts(folder / CATALOG, opened.read(MANIFEST), pictures)
    change(parts)
    with zipfile.ZipFile(folder / "changed.zip", "w") as opened:
        for name, data in parts.images.items():
            opened.writestr(name, data)
        opened.write(parts.catalog, CATALOG)
        opened.writestr(MANIFEST, parts.manifest)
    return folder / "changed.zip"


def sql(script: str, *values: object) -> Change:
    """The catalog changed by a script, or by one statement with values."""

    def change(parts: Parts) -> None:
        with unchecked(parts.catalog) as connection:
            if values:
                connection.execute(script, values)
            else:
                connection.executescript(script)

    return change


_STORED = "FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
_LAX = "UPDATE sqlite_schema SET sql = replace(replace(replace(sql, ', STRICT', ''), 'STRICT', ''), ' NOT NULL', '')"


@contextmanager
def unchecked(catalog: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes what the schema refuses, as whoever edits the file's bytes would."""
    with closing(sqlite3.connect(catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        stored = connection.execute(f"SELECT sql, name {_STORED}").fetchall()
        connection.execute(f"{_LAX} WHERE name IN (SELECT name {_STORED})")
    with closing(sqlite3.connect(catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        yield connection
    with closing(sqlite3.connect(catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", stored)
