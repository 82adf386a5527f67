"""Where a page's image and thumbnail lie inside the index."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from research.store.catalog import Catalog
from research.store.paths import IndexPaths
from research.store.revision import revise
from research.store.stages import STAGE_IMAGES


def image_name(page: int) -> str:
    return f"{page:05d}.jpg"


def thumbnail_name(page: int) -> str:
    return f"{page:05d}.webp"


def folder_of(paths: IndexPaths, doc_id: str) -> Path:
    return paths.images / doc_id


def image_path(paths: IndexPaths, doc_id: str, page: int) -> str:
    return str(folder_of(paths, doc_id) / image_name(page))


def thumbnail_path(paths: IndexPaths, doc_id: str, page: int) -> str:
    return str(folder_of(paths, doc_id) / thumbnail_name(page))


def adopt(paths: IndexPaths, doc_id: str, drawn: Path) -> None:
    """Put a freshly drawn folder in the document's place."""
    target = folder_of(paths, doc_id)
    shutil.rmtree(target, ignore_errors=True)
    if drawn.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        drawn.rename(target)


def remove(paths: IndexPaths, doc_id: str) -> None:
    shutil.rmtree(folder_of(paths, doc_id), ignore_errors=True)


def sweep(paths: IndexPaths, known: set[str]) -> None:
    """Remove folders of documents that are gone, and what a stopped run left half drawn."""
    if paths.images.is_dir():
        for folder in paths.images.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)


def strangers(paths: IndexPaths, known: set[str]) -> list[Path]:
    """Folders of no known document."""
    return [f for f in paths.images.iterdir() if f.name not in known] if paths.images.is_dir() else []


def missing(catalog: Catalog) -> list[tuple[str, int]]:
    """(doc_id, page) of pages that are noted as drawn and lack a file."""
    gone, doc, present = [], "", frozenset[str]()
    for doc_id, page in catalog.connection.execute("SELECT doc_id, page FROM pages WHERE image ORDER BY doc_id"):
        if doc_id != doc:
            folder = folder_of(catalog.paths, doc_id)
            doc, present = doc_id, frozenset(p.name for p in folder.iterdir()) if folder.is_dir() else frozenset()
        if not {image_name(page), thumbnail_name(page)} <= present:
            gone.append((str(doc_id), int(page)))
    return gone


def forget(catalog: Catalog, pages: Iterable[tuple[str, int]]) -> None:
    """These pages are to be drawn again."""
    with catalog.transaction() as connection:
        forget_images(connection, pages)


def forget_images(connection: sqlite3.Connection, pages: Iterable[tuple[str, int]]) -> None:
    """The same as part of the caller's transaction."""
    gone = list(pages)
    connection.executemany("UPDATE pages SET image = 0 WHERE doc_id = ? AND page = ?", gone)
    due = sorted({(doc_id, STAGE_IMAGES) for doc_id, _ in gone})
    connection.executemany("INSERT OR IGNORE INTO ledger VALUES (?, ?)", due)
    if gone:
        revise(connection)
