"""Where a page's image and thumbnail lie inside the index."""

from __future__ import annotations

import shutil
from pathlib import Path

from research.store.paths import IndexPaths


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
