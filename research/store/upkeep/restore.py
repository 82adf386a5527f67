"""SQLite's own: an index out of a backup. All is checked aside first; one commit replaces the old."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from research.encoders import is_embedded
from research.errors import CtxError, IndexUnusableError, NewerIndexError, UsageError, unusable, unusable_catalog
from research.reports import Restored
from research.store.catalog import page_vectors, vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import count_pages
from research.store.files import images
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths, make_folder, refuse_link, remove_tree, sync
from research.store.upkeep.archive import open_archive
from research.store.upkeep.staging import Staged, stage
from research.store.vectors import generations


def restore(paths: IndexPaths, file: Path, *, force: bool = False, wait: float = 0.0) -> Restored:
    """Bring back an index. Raises before anything is changed if the file is no sound backup or the place is taken."""
    with open_archive(file) as opened, _folder(paths), write_lock(paths, wait=wait):
        damaged = _check_place(paths, force=force)
        try:
            staged = stage(opened, paths)
            kept_aside = _put_in_place(staged, paths, damaged=damaged)
            _replace_images(staged, paths)
        except OSError as error:
            raise unusable(f"cannot restore into {paths.root}", error) from error
        finally:
            remove_tree(paths.restoring)
        return _clean_up(paths, opened.manifest.images, kept_aside)


def _clean_up(paths: IndexPaths, image_files: int, kept_aside: str) -> Restored:
    """Take away what only the old index had."""
    with Catalog(paths, writable=True) as catalog:
        known = {str(row[0]) for row in catalog.connection.execute("SELECT doc_id FROM documents")}
        images.sweep(paths, known)
        return Restored(
            documents=len(known),
            pages=count_pages(catalog),
            chunks=vectors.count_chunks(catalog),
            images=image_files,
            kept_aside=kept_aside,
            text_encoder=vectors.encoder_of(catalog),
            visual_encoder=page_vectors.encoder_of(catalog),
            foreign_encoders=_foreign_encoders(catalog),
        )


def _foreign_encoders(catalog: Catalog) -> tuple[str, ...]:
    text, side = vectors.encoder_of(catalog), page_vectors.visual_side(catalog)
    foreign = [text] if text and not is_embedded(text) else []
    return (*foreign, side.name) if side.kind == "model" else tuple(foreign)


@contextmanager
def _folder(paths: IndexPaths) -> Iterator[None]:
    """Make the index folder; take it away again if it stays empty."""
    existed = paths.root.exists()
    paths.create()
    try:
        yield
    finally:
        if not existed and not paths.exists:
            remove_tree(paths.root)


def _check_place(paths: IndexPaths, *, force: bool) -> bool:
    """Raise if something is there that may not be replaced. True if a damaged catalog is to be set aside."""
    if not paths.exists:
        return False
    try:
        with Catalog(paths) as catalog:
            documents, memories, experiences, items = catalog.connection.execute(
                "SELECT (SELECT COUNT(*) FROM documents), (SELECT COUNT(*) FROM memories),"
                " (SELECT COUNT(*) FROM item_parents WHERE kind = 'experience'), (SELECT COUNT(*) FROM items)"
            ).fetchone()
    except NewerIndexError:
        raise
    except (IndexUnusableError, sqlite3.Error) as error:
        if not force:
            raise UsageError(
                f"there is a damaged index at {paths.root}", hint="replace it with --force; its catalog is kept aside"
            ) from error
        return True
    counts = {
        "documents": documents,
        "memories": memories,
        "experiences": experiences,
        "items of code and history": items,
    }
    if any(counts.values()) and not force:
        held = next(f"{count} {what}" for what, count in counts.items() if count)
        raise UsageError(
            f"the index {paths.root} holds {held}",
            hint="replace them with --force, or restore elsewhere with --index DIR",
        )
    return False


def _put_in_place(staged: Staged, paths: IndexPaths, *, damaged: bool) -> str:
    """Images and collections first, which the old catalog does not look at; then the catalog, in one step.

    Stopped before that step, what was added is taken away again; killed before it, it stays and does no harm.
    """
    with ExitStack() as undo:
        _adopt_images(staged, paths, undo)
        adopted = generations.adopt(paths.chroma, staged.generation)
        undo.callback(remove_tree, adopted.path)
        kept_aside = _set_aside(paths, undo) if damaged else ""
        try:
            _replace_catalog(staged.paths.catalog, paths)
        finally:
            # Asked, not assumed: Ctrl-C can come after the step and before anybody here has noted it.
            if _is_in_place(staged, paths):
                undo.pop_all()
    generations.drop_older(paths.chroma, adopted.number)
    return kept_aside


def _adopt_images(staged: Staged, paths: IndexPaths, undo: ExitStack) -> None:
    """Put image files beside those there are. A document's id is its content, so the same name is the same page."""
    make_folder(paths.images)
    for source, target in _image_files(staged, paths):
        refuse_link(target.parent)
        if not target.parent.exists():
            target.parent.mkdir(mode=0o700)
            undo.callback(_remove_folder, target.parent)
        if not target.exists():
            undo.callback(target.unlink, missing_ok=True)
            source.rename(target)


def _replace_images(staged: Staged, paths: IndexPaths) -> None:
    """Those that were there already: the old file may be damaged, and that may be why the user is here."""
    for source, target in _image_files(staged, paths):
        source.replace(target)


def _image_files(staged: Staged, paths: IndexPaths) -> list[tuple[Path, Path]]:
    """The files that wait, each with its place."""
    waiting = staged.paths.staged_images
    return [(file, paths.images / file.relative_to(waiting)) for file in sorted(waiting.glob("*/*"))]


def _remove_folder(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _is_in_place(staged: Staged, paths: IndexPaths) -> bool:
    try:
        with Catalog(paths) as catalog:
            return catalog.meta("catalog_id") == staged.catalog_id
    except (CtxError, sqlite3.Error):
        return False


def _set_aside(paths: IndexPaths, undo: ExitStack) -> str:
    aside = paths.catalog.with_suffix(".damaged")
    paths.catalog.replace(aside)
    undo.callback(aside.replace, paths.catalog)
    _drop_log(paths)
    return str(aside)


def _replace_catalog(staged: Path, paths: IndexPaths) -> None:
    """One commit: readers see the old index before it and the restored one after it."""
    if not paths.exists:
        _drop_log(paths)
        staged.replace(paths.catalog)
        sync(paths.root)
        return
    try:
        with closing(sqlite3.connect(staged)) as source, closing(sqlite3.connect(paths.catalog, timeout=30)) as target:
            target.execute("PRAGMA journal_mode = WAL")
            target.execute("PRAGMA synchronous = FULL")
            source.backup(target)
    except sqlite3.Error as error:
        raise unusable_catalog(f"cannot restore into {paths.root}", error) from error


def _drop_log(paths: IndexPaths) -> None:
    """The log of another catalog would be played into the new one."""
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            paths.catalog.with_name(paths.catalog.name + ending).unlink()
