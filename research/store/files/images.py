"""The upkeep of page images: put in place, removed with their documents, noted where they are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_IMAGES, open_stage
from research.store.catalog.reader import Writer, bump_revision
from research.store.files.paths import (
    IndexPaths,
    image_name,
    make_folder,
    own_entries,
    remove_file,
    remove_tree,
    thumbnail_name,
)

DOC_ID = re.compile(r"[0-9a-f]{16}")


def adopt(paths: IndexPaths, doc_id: str, drawn: Path) -> None:
    """Put a freshly drawn folder in the document's place."""
    remove(paths, doc_id)
    if drawn.is_dir():
        make_folder(paths.images)
        drawn.rename(paths.image_folder(doc_id))


def remove(paths: IndexPaths, doc_id: str) -> None:
    """Remove a document's images. An id that is none of ours names no folder of ours."""
    if DOC_ID.fullmatch(doc_id) and not paths.images.is_symlink():
        remove_tree(paths.image_folder(doc_id))
        remove_file(paths.image_folder(doc_id))  # a link in its place, which the line before leaves alone


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
    for doc_id, page in catalog.connection.execute("SELECT doc_id, page FROM pages WHERE image = 1 ORDER BY doc_id"):
        if doc_id != doc:
            folder = catalog.paths.image_folder(doc_id)
            doc, present = doc_id, frozenset(p.name for p in folder.iterdir()) if folder.is_dir() else frozenset()
        if not {image_name(page), thumbnail_name(page)} <= present:
            gone.append((str(doc_id), int(page)))
    return gone


def forget(catalog: Catalog, pages: Iterable[tuple[str, int]]) -> None:
    """These pages are to be drawn again."""
    with catalog.transaction() as connection:
        forget_images(connection, pages)


def forget_images(connection: Writer, pages: Iterable[tuple[str, int]]) -> None:
    """The same as part of the caller's transaction."""
    gone = list(pages)
    connection.executemany("UPDATE pages SET image = 0 WHERE doc_id = ? AND page = ?", gone)
    open_stage(connection, sorted({doc_id for doc_id, _ in gone}), STAGE_IMAGES)
    if gone:
        bump_revision(connection)
