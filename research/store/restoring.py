"""SQLite's own: an index out of a backup. All of it is made and checked aside first, and nothing is used before it was
found to be ours; one commit replaces the old.

The backup's own database is only read. What is kept is a catalog made by this ctx, with the rows that passed and with
full-text search made anew from them, so that no table of the backup's that nobody can check stays in use.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from research.encoders import is_embedded
from research.errors import (
    CtxError,
    IndexUnusableError,
    NewerIndexError,
    OlderIndexError,
    UsageError,
    is_machine_trouble,
    unusable,
    unusable_catalog,
)
from research.reports import Restored
from research.store import files, generations
from research.store.archive import CATALOG, Archive, open_archive
from research.store.catalog import Catalog, connect, create_schema
from research.store.checks import Review, tables_of, together_problem
from research.store.fulltext import fill_fulltext
from research.store.generations import Generation
from research.store.paths import (
    IndexPaths,
    StagedPaths,
    image_name,
    make_folder,
    refuse_link,
    remove_tree,
    sync,
    thumbnail_name,
    touch_private,
    write_lock,
)
from research.store.publish import AGAIN, publish_staged


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
        known = {str(row[0]) for row in catalog.execute("SELECT doc_id FROM documents")}
        files.sweep_images(paths, known)
        return Restored(
            documents=len(known),
            pages=catalog.pages.count(),
            chunks=catalog.chunks.count(),
            images=image_files,
            kept_aside=kept_aside,
            text_encoder=catalog.chunks.encoder(),
            visual_encoder=catalog.visual.encoder(),
            foreign_encoders=_foreign_encoders(catalog),
        )


def _foreign_encoders(catalog: Catalog) -> tuple[str, ...]:
    text, side = catalog.chunks.encoder(), catalog.visual.side()
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
            documents, memories, experiences, items = catalog.execute(
                "SELECT (SELECT COUNT(*) FROM documents), (SELECT COUNT(*) FROM memories),"
                " (SELECT COUNT(*) FROM item_parents WHERE kind = 'experience'), (SELECT COUNT(*) FROM items)"
            ).fetchone()
    except NewerIndexError:
        raise
    except (IndexUnusableError, sqlite3.Error) as error:
        if not force:
            what = "an index of an older ctx" if isinstance(error, OlderIndexError) else "a damaged index"
            raise UsageError(
                f"there is {what} at {paths.root}", hint="replace it with --force; its catalog is kept aside"
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


_FOREIGN = "backup.sqlite3"
_OF_VALUES = ("CHECK", "NULL", "non-", "NUMERIC", "TEXT value")  # what quick_check says of a value, not of the file
_NOT_BUILT = "nothing was changed; see that the disk has space and run the command again, or try another backup"


@dataclass(frozen=True, slots=True)
class Staged:
    """An index that is complete and not in place yet."""

    paths: StagedPaths
    catalog_id: str
    generation: Generation


def stage(opened: Archive, paths: IndexPaths) -> Staged:
    """Make the index aside. Raises `IndexUnusableError` if anything in the backup is not as ctx writes it."""
    remove_tree(paths.restoring)
    paths.restoring.mkdir(mode=0o700)
    staged = StagedPaths(paths.restoring)
    _extract_catalog(opened, staged, paths)
    _extract_images(opened, staged)
    try:
        publish_staged(staged)
    except IndexUnusableError as error:
        hint = _NOT_BUILT if error.hint == AGAIN else error.hint
        raise IndexUnusableError(opened.refusal(error.message).message, hint=hint) from error
    catalog_id = _catalog_id(staged)
    generation = generations.newest(staged.chroma, catalog_id)
    if generation is None:
        raise opened.refusal("its collections cannot be built")
    return Staged(staged, catalog_id, generation)


def _extract_catalog(opened: Archive, staged: StagedPaths, paths: IndexPaths) -> None:
    """Make a catalog of our own with the rows of the backup's, whose own file is only read. What a row may hold is said
    by the schema, which refuses it on its way in, and by `checks`."""
    foreign = staged.root / _FOREIGN
    opened.extract(CATALOG, foreign)
    try:
        with closing(sqlite3.connect(foreign, isolation_level=None)) as source:
            source.execute("PRAGMA trusted_schema = OFF")
            source.execute("PRAGMA cell_size_check = ON")
            _check_structure(source, opened)
            _copy(source, staged.catalog, _page_size(paths))
            _check_counts(source, opened)
    except ValueError as error:
        raise opened.refusal(f"its catalog is not as ctx writes it: {error}") from error
    except sqlite3.Error as error:
        if is_machine_trouble(error):
            raise unusable_catalog(f"cannot restore into {paths.root}", error) from error
        raise opened.refusal(f"its catalog is damaged ({error})") from error
    foreign.unlink()


def _check_structure(connection: sqlite3.Connection, opened: Archive) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0] != opened.manifest.catalog_version:
        raise opened.refusal("its manifest names another version than its catalog has")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as expected:
        create_schema(expected)
        # Not one table more: a trigger or a view would run with our rights.
        if _tables(connection) != _tables(expected):
            raise opened.refusal("its catalog is not one of ctx")
    # Whether rows are what the schema says is found, with the name of the column, when they are copied.
    answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if answer != "ok" and not answer.startswith(_OF_VALUES):
        raise opened.refusal(f"its catalog is damaged ({answer[:200]})")


def _tables(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master")
    return {tuple(row) for row in rows if not str(row[1]).startswith("sqlite_stat")}


def _check_counts(connection: sqlite3.Connection, opened: Archive) -> None:
    """The manifest's counts, and the images file by file: those of drawn pages, all of them and no others."""
    for name, said in (("documents", opened.manifest.documents), ("pages", opened.manifest.pages)):
        found = int(connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0])
        if found != said:
            raise opened.refusal(f"its manifest speaks of {said} {name}, and it holds {found}")
    held = {(doc_id, name) for doc_id, name, _ in opened.images()}
    if len(held) != opened.manifest.images:
        raise opened.refusal(f"its manifest speaks of {opened.manifest.images} image files, and it holds {len(held)}")
    for doc_id, page in connection.execute("SELECT doc_id, page FROM pages WHERE image"):
        for name in (image_name(page), thumbnail_name(page)):
            if (doc_id, name) not in held:
                raise opened.refusal(f"it lacks an image of its page {page} of {doc_id}")
            held.remove((doc_id, name))
    if held:
        doc_id, name = min(held)
        raise opened.refusal(f"it holds an image of a page that it does not have: images/{doc_id}/{name}")


def _copy(source: sqlite3.Connection, target: Path, page_size: int) -> None:
    touch_private(target)
    review = Review(source)
    with closing(connect(target)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        # Until it is in place a half-made file is thrown away, so nothing needs to survive a kill.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        create_schema(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN")
        for table in tables_of(connection):
            marks = ", ".join("?" * len(connection.execute(f"PRAGMA table_info({table})").fetchall()))
            try:
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", review.rows(source, table))
            except sqlite3.IntegrityError as error:
                raise ValueError(f"{table}: {error}") from error
        problem = together_problem(connection)
        if problem:
            raise ValueError(problem)
        # A new identity: collections built from another state of the same index are not to be trusted.
        connection.write_meta({"catalog_id": uuid.uuid4().hex})
        # Whoever holds memories of the index before reads them again.
        connection.execute("UPDATE memory_tenants SET version = random() & 1152921504606846975")
        fill_fulltext(connection)
        connection.execute("COMMIT")
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _page_size(paths: IndexPaths) -> int:
    """Of the catalog that is to be replaced: one in use cannot take pages of another size."""
    if paths.exists:
        try:
            with closing(sqlite3.connect(paths.catalog)) as connection:
                return int(connection.execute("PRAGMA page_size").fetchone()[0])
        except sqlite3.Error:
            pass  # a damaged one is set aside, not written into
    return 4096


def _extract_images(opened: Archive, staged: StagedPaths) -> None:
    for doc_id, name, entry in opened.images():
        folder = staged.staged_images / doc_id
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        opened.extract_image(entry, folder / name)


def _catalog_id(staged: StagedPaths) -> str:
    with closing(sqlite3.connect(staged.catalog)) as connection:
        return str(connection.execute("SELECT value FROM meta WHERE key = 'catalog_id'").fetchone()[0])
