"""An index out of a backup. Everything is checked aside first; the old index stays until one commit replaces it."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from research.errors import IndexUnusableError, NewerIndexError, UsageError
from research.store import archive, images, schema
from research.store.archive import Archive, open_archive, refusal
from research.store.catalog import Catalog
from research.store.foreign_keys import orphans
from research.store.lock import write_lock
from research.store.pages import count_pages
from research.store.paths import IndexPaths
from research.store.publisher import publish_apart
from research.store.trouble import unusable, unusable_catalog
from research.store.vectors import count_chunks


@dataclass(frozen=True, slots=True)
class Restored:
    """What the index holds now. `kept_aside`: where a damaged catalog was put that stood in the way."""

    documents: int
    pages: int
    chunks: int
    images: int
    kept_aside: str = ""


def restore(paths: IndexPaths, file: Path, *, force: bool = False, wait: float = 0.0) -> Restored:
    """Bring back an index. Raises before anything is changed if the file is no sound backup or the place is taken."""
    with open_archive(file) as opened, _folder(paths), write_lock(paths, wait=wait):
        damaged = _check_place(paths, force=force)
        try:
            staged = _stage(opened, paths, file)
            kept_aside = _set_aside(paths) if damaged else ""
            count = _adopt_images(opened, paths)
            _replace_catalog(staged, paths)
        except OSError as error:
            raise unusable(f"cannot restore into {paths.root}", error) from error
        finally:
            shutil.rmtree(paths.restoring, ignore_errors=True)
        with Catalog(paths, writable=True) as catalog:
            known = {str(row[0]) for row in catalog.connection.execute("SELECT doc_id FROM documents")}
            images.sweep(paths, known)
            images.forget(catalog, images.missing(catalog))
            publish_apart(paths, anew=True)
            return Restored(len(known), count_pages(catalog), count_chunks(catalog), count, kept_aside)


@contextmanager
def _folder(paths: IndexPaths) -> Iterator[None]:
    """Make the index folder; take it away again if it stays empty."""
    existed = paths.root.exists()
    paths.create()
    try:
        yield
    finally:
        if not existed and not paths.exists:
            shutil.rmtree(paths.root, ignore_errors=True)


def _check_place(paths: IndexPaths, *, force: bool) -> bool:
    """Raise if something is there that may not be replaced. True if a damaged catalog is to be set aside."""
    if not paths.exists:
        return False
    try:
        with Catalog(paths) as catalog:
            filled = catalog.connection.execute("SELECT COUNT(*) FROM documents").fetchone()[0]
    except NewerIndexError:
        raise
    except (IndexUnusableError, sqlite3.Error) as error:
        if not force:
            raise UsageError(
                f"there is a damaged index at {paths.root}", hint="replace it with --force; its catalog is kept aside"
            ) from error
        return True
    if filled and not force:
        raise UsageError(
            f"the index {paths.root} holds {filled} documents",
            hint="replace them with --force, or restore elsewhere with --index DIR",
        )
    return False


def _stage(opened: Archive, paths: IndexPaths, file: Path) -> Path:
    """The backup's catalog, found sound and brought to this version, in a folder of its own."""
    shutil.rmtree(paths.restoring, ignore_errors=True)
    paths.restoring.mkdir(mode=0o700)
    staged = paths.restoring / archive.CATALOG
    opened.extract(archive.CATALOG, staged)
    try:
        with closing(sqlite3.connect(staged, isolation_level=None)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            _check_catalog(connection, file)
            schema.migrate(connection)
            # A new identity: collections built from another state of the same index are not to be trusted.
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('catalog_id', ?)", (uuid.uuid4().hex,))
    except sqlite3.Error as error:
        raise refusal(file, f"its catalog is damaged ({error})") from error
    return staged


def _check_catalog(connection: sqlite3.Connection, file: Path) -> None:
    version = schema.version_of(connection)
    answer = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if answer != "ok":
        raise refusal(file, f"its catalog is damaged ({answer})")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as expected:
        schema.migrate(expected, upto=version)
        # Not one table more: a trigger or a view would run with our rights.
        if version == 0 or _tables(connection) != _tables(expected):
            raise refusal(file, "its catalog is not one of ctx")
    if orphans(connection):
        raise refusal(file, "its catalog is damaged (rows that belong to nothing)")


def _tables(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master")
    return {tuple(row) for row in rows if not str(row[1]).startswith("sqlite_stat")}


def _adopt_images(opened: Archive, paths: IndexPaths) -> int:
    """Put image files beside those there are. A document's id is its content, so the same name is the same page."""
    count = 0
    for doc_id, name, entry in opened.images():
        target = paths.images / doc_id / name
        count += 1
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = paths.restoring / name
        part.unlink(missing_ok=True)
        opened.extract(entry, part)
        part.rename(target)
    return count


def _set_aside(paths: IndexPaths) -> str:
    aside = paths.catalog.with_suffix(".damaged")
    paths.catalog.replace(aside)
    _drop_log(paths)
    return str(aside)


def _replace_catalog(staged: Path, paths: IndexPaths) -> None:
    """One commit: readers see the old index before it and the restored one after it."""
    if not paths.exists:
        _drop_log(paths)
        staged.replace(paths.catalog)
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
