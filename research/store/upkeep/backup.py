"""SQLite's own: one file out of a live index: a snapshot of the catalog and the page images that belong to it."""

from __future__ import annotations

import os
import sqlite3
import stat
import zipfile
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from research.errors import DAMAGED, MEND, CtxError, IndexUnusableError, UsageError, is_full
from research.reports import Backup
from research.store.catalog import schema
from research.store.catalog.catalog import Catalog
from research.store.files.images import forget_images
from research.store.files.paths import IndexPaths, image_name, sync, thumbnail_name
from research.store.upkeep import archive
from research.store.upkeep.archive import HEAD, Manifest, is_image
from research.store.upkeep.catalog_checks import validate_catalog
from research.store.upkeep.work_folder import work_folder

_PAGES_A_STEP = 2000  # of the database, between two chances to be interrupted
_ARCHIVE = "archive"
# A pipe in an image's place is opened without waiting for its other end. Windows has neither flag.
_NO_FOLLOWING = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FILES = frozenset({_ARCHIVE, *(archive.CATALOG + ending for ending in ("", "-journal", "-wal", "-shm"))})


def backup(paths: IndexPaths, target: Path, *, images: bool = True, force: bool = False) -> Backup:
    """Write the index to `target`, whole or not at all. Others may read and write the index meanwhile. Files that
    documents were read from are not in it, uploaded ones no more than others."""
    _check(paths, target, force=force)
    with Catalog(paths) as catalog:  # before anything is written, so that a missing index leaves no trace
        try:
            with work_folder(target.parent, _FILES) as folder:
                written = folder / _ARCHIVE
                manifest = _write(catalog, written, folder / archive.CATALOG, images=images)
                _put_in_place(written, target, force=force)
        except OSError as error:
            raise _failure(target, error) from error
    return Backup(str(target), manifest.documents, manifest.pages, manifest.images, target.stat().st_size)


def _check(paths: IndexPaths, target: Path, *, force: bool) -> None:
    if target.is_dir():
        raise UsageError(f"{target} is a folder", hint="name a file: ctx backup FILE")
    if target.exists() and not force:
        raise _exists(target)
    if target.resolve().is_relative_to(paths.root.resolve()):
        raise UsageError("a backup inside the index would be lost with it", hint="name a file elsewhere")


def _write(catalog: Catalog, written: Path, snapshot: Path, *, images: bool) -> Manifest:
    _copy_catalog(catalog, snapshot)
    descriptor = os.open(written, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w+b") as file, closing(sqlite3.connect(snapshot, isolation_level=None)) as copy:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as opened:
            drawn = copy.execute("SELECT doc_id, page FROM pages WHERE image ORDER BY doc_id, page").fetchall()
            left_out = _add_images(opened, catalog.paths, drawn) if images else drawn
            # A page whose image is not in the backup is drawn again by the first run after a restore.
            copy.execute("BEGIN")
            forget_images(copy, left_out)
            copy.execute("COMMIT")
            manifest = Manifest(
                schema=archive.FORMAT,
                catalog_version=schema.version_of(copy),
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                documents=copy.execute("SELECT COUNT(*) FROM documents").fetchone()[0],
                pages=copy.execute("SELECT COUNT(*) FROM pages").fetchone()[0],
                images=2 * (len(drawn) - len(left_out)),
            )
            with snapshot.open("rb") as source:
                archive.add(opened, archive.CATALOG, source)
            archive.add_manifest(opened, manifest)
        file.flush()
        os.fsync(file.fileno())
    return manifest


def _copy_catalog(catalog: Catalog, snapshot: Path) -> None:
    snapshot.touch(mode=0o600)
    source = catalog.connection
    with closing(sqlite3.connect(snapshot, isolation_level=None)) as copy:
        try:
            # One reading transaction over all steps: a writer goes on beside it and is not seen.
            source.execute("BEGIN")
            source.execute("SELECT COUNT(*) FROM meta").fetchone()
            source.backup(copy, pages=_PAGES_A_STEP)
            copy.execute("PRAGMA journal_mode = DELETE")  # all of it in one file
            answer = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
            # Found out now, while there is something to mend: restore refuses what is not as ctx writes it.
            problem = next(validate_catalog(copy), None) if answer == "ok" else None
        except sqlite3.OperationalError as error:
            raise IndexUnusableError(
                f"the backup cannot be written: {error}", hint="see that there is space beside the file"
            ) from error
        except sqlite3.DatabaseError as error:
            answer, problem = str(error), None
        finally:
            source.execute("ROLLBACK")
    if answer != "ok":
        raise IndexUnusableError(f"the catalog is damaged and not worth a backup: {answer}", hint=DAMAGED)
    if problem is not None:
        raise IndexUnusableError(f"the catalog is not as ctx writes it, so no backup is made: {problem}", hint=MEND)


def _add_images(opened: zipfile.ZipFile, paths: IndexPaths, drawn: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Add both files of each page; returns the pages whose files were gone, as when a document was just removed."""
    gone = []
    for doc_id, page in drawn:
        names = (image_name(page), thumbnail_name(page))
        with ExitStack() as both:
            files = [_open_image(paths, doc_id, name) for name in names]
            found = [both.enter_context(file) for file in files if file is not None]
            if len(found) < len(names):
                gone.append((doc_id, page))
                continue
            for name, file in zip(names, found, strict=True):
                archive.add(opened, f"images/{doc_id}/{name}", file)
    return gone


def _open_image(paths: IndexPaths, doc_id: str, name: str) -> BinaryIO | None:
    """A page's image, if it is one. No link is followed: it could lead any file of the user's into the backup."""
    folder = paths.image_folder(doc_id)
    if folder.is_symlink() or paths.images.is_symlink():
        return None
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | _NO_FOLLOWING)
    except OSError:
        return None
    file = os.fdopen(descriptor, "rb")
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and is_image(name, file.read(HEAD), status.st_size):
        file.seek(0)
        return file
    file.close()
    return None


def _put_in_place(written: Path, target: Path, *, force: bool) -> None:
    if force:
        written.replace(target)
    else:
        try:
            os.link(written, target)  # unlike a rename it never replaces a file that came meanwhile
        except FileExistsError as error:
            raise _exists(target) from error
        except OSError:  # a file system without links
            written.rename(target)
    with suppress(OSError):
        sync(target.parent)


def _exists(target: Path) -> UsageError:
    return UsageError(f"{target} exists already", hint="name another file, or replace it with --force")


def _failure(target: Path, error: OSError) -> CtxError:
    hint = "free some space or name a file on another disk" if is_full(error) else "name a file in another folder"
    return CtxError(f"cannot write {target}: {error.strerror or error}", hint=hint)
