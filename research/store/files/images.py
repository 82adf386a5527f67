"""Where a page's image and thumbnail lie inside the index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_IMAGES
from research.store.catalog.revision import revise
from research.store.files.own_files import make_folder, own_entries, remove_file, remove_tree
from research.store.files.paths import IndexPaths

DOC_ID = re.compile(r"[0-9a-f]{16}")


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
    remove(paths, doc_id)
    if drawn.is_dir():
        make_folder(paths.images)
        drawn.rename(folder_of(paths, doc_id))


def remove(paths: IndexPaths, doc_id: str) -> None:
    """Remove a document's images. An id that is none of ours names no folder of ours."""
    if DOC_ID.fullmatch(doc_id) and not paths.images.is_symlink():
        remove_tree(folder_of(paths, doc_id))
        remove_file(folder_of(paths, doc_id))  # a link in its place, which the line before leaves alone


def sweep(paths: IndexPaths, known: set[str]) -> None:
    """Remove folders of documents that are gone, and what a stopped run left half drawn."""
    for folder in strangers(paths, known):
        remove(paths, folder.name)


def strangers(paths: IndexPaths, known: set[str]) -> list[Path]:
    """Folders of documents that are gone. What has no name of ours is not ours to judge."""
    return [folder for folder in own_entries(paths.images, DOC_ID) if folder.name not in known]


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
