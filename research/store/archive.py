"""SQLite's own: one file out of a live index: a snapshot of the catalog and the page images that belong to it; and the
file's form, a plain zip without compression, so that nothing in it can swell when it is opened.

images/DOC_ID/00001.jpg …   page images and thumbnails
catalog.sqlite3             everything else
ctx-backup.json             what it is and what is in it; written last
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from research.errors import DAMAGED, MEND, CtxError, IndexUnusableError, NewerIndexError, UsageError, is_full
from research.reports import Backup
from research.store.catalog import SCHEMA_VERSION, Catalog, check_version, connect
from research.store.checks import strict_json, value_problem
from research.store.paths import IndexPaths, image_name, sync, thumbnail_name

if TYPE_CHECKING:
    from filelock import BaseFileLock


FORMAT = "ctx.archive/1"
CATALOG = "catalog.sqlite3"
MANIFEST = "ctx-backup.json"

_IMAGE = re.compile(r"images/([0-9A-Za-z]{1,64})/(\d{5,9})\.(jpg|webp)")
_FORMATS = re.compile(r"ctx\.archive/\d{1,9}", re.ASCII)
_MOST_MANIFEST = 1 << 16
_MOST_IMAGE = 1 << 25  # bytes; ours have some hundred thousand
_MOST_COUNT = 1 << 53
_PART = 1 << 20
_ENCRYPTED = 0x1
# What zipfile raises for an entry that is not what the archive's list of contents says.
_BROKEN = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError, struct.error)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself."""

    schema: str
    catalog_version: int
    created: str
    documents: int
    pages: int
    images: int  # files


def add(archive: zipfile.ZipFile, name: str, source: IO[bytes]) -> None:
    """Append one file, uncompressed and readable by its owner only."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFREG | 0o600) << 16
    with archive.open(entry, "w", force_zip64=True) as target:
        while part := source.read(_PART):
            target.write(part)


def add_manifest(archive: zipfile.ZipFile, manifest: Manifest) -> None:
    entry = zipfile.ZipInfo(MANIFEST)
    entry.external_attr = (stat.S_IFREG | 0o600) << 16
    archive.writestr(entry, json.dumps(asdict(manifest), indent=1) + "\n")


def is_image(name: str, head: bytes, size: int) -> bool:
    """Whether a file that begins like this is of the kind its name says, and no larger than a page image may be."""
    if size > _MOST_IMAGE:
        return False
    if name.endswith(".jpg"):
        return head.startswith(b"\xff\xd8\xff")
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


HEAD = 12  # bytes that `is_image` looks at


class Archive:
    """A backup opened for reading and found to be one: every name is a name of ours, nothing is larger than it is."""

    def __init__(self, opened: zipfile.ZipFile, path: Path) -> None:
        self._zip = opened
        self.path = path
        self._entries = opened.infolist()
        self._check_entries()
        self.manifest = self._read_manifest()

    def images(self) -> Iterator[tuple[str, str, zipfile.ZipInfo]]:
        """doc_id, file name and entry of every image."""
        for entry in self._entries:
            match = _IMAGE.fullmatch(entry.filename)
            if match:
                yield match.group(1), f"{match.group(2)}.{match.group(3)}", entry

    def extract(self, entry: zipfile.ZipInfo | str, target: Path) -> None:
        """Write one entry to a new private file; its checksum is compared on the way."""
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file, self._zip.open(entry) as source:
                while part := source.read(_PART):
                    file.write(part)
        except _BROKEN as error:
            raise self.refusal("it is damaged") from error

    def extract_image(self, entry: zipfile.ZipInfo, target: Path) -> None:
        """The same for an image, which must be one."""
        try:
            with self._zip.open(entry) as source:
                head = source.read(HEAD)
        except _BROKEN as error:
            raise self.refusal("it is damaged") from error
        if not is_image(target.name, head, entry.file_size):
            raise self.refusal(f"it holds a file that is no image of a page: {entry.filename!r}")
        self.extract(entry, target)

    def _check_entries(self) -> None:
        names = [entry.filename for entry in self._entries]
        if MANIFEST not in names or CATALOG not in names:
            raise self.refusal("it is no backup of ctx, or not a whole one")
        if len(set(names)) != len(names):
            raise self.refusal("it holds a file twice")
        for entry in self._entries:
            if entry.filename not in {MANIFEST, CATALOG} and not _IMAGE.fullmatch(entry.filename):
                raise self.refusal(f"it holds a file that is not ctx's: {entry.filename[:80]!r}")
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in {0, stat.S_IFREG} or entry.is_dir():
                raise self.refusal(f"it holds something that is no file: {entry.filename!r}")
            # Nothing is stored packed, so nothing can be larger than the archive itself, alone or together.
            packed = entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size
            if packed or entry.flag_bits & _ENCRYPTED:
                raise self.refusal(f"it holds a packed file: {entry.filename!r}")
        if sum(entry.file_size for entry in self._entries) > self.path.stat().st_size:
            raise self.refusal("its files claim to be larger than it is")

    def _read_manifest(self) -> Manifest:
        if self._zip.getinfo(MANIFEST).file_size > _MOST_MANIFEST:
            raise self.refusal("its manifest is too large")
        try:
            manifest = _manifest(strict_json(self._zip.read(MANIFEST).decode()))
        except (*_BROKEN, ValueError) as error:
            raise self.refusal(f"its manifest cannot be read ({error})") from error
        if manifest.schema != FORMAT:
            raise NewerIndexError.of(str(self.path), manifest.catalog_version, SCHEMA_VERSION)
        check_version(str(self.path), manifest.catalog_version)
        return manifest

    def refusal(self, why: str) -> IndexUnusableError:
        return refusal(self.path, why)


def _manifest(found: Any) -> Manifest:
    """Raises ValueError for anything that `add_manifest` would not have written."""
    found = found if isinstance(found, dict) else {}
    for name in ("schema", "created"):
        if type(found.get(name)) is not str or len(found[name]) > 100:
            raise ValueError(f"{name} is no short text")
    if not _FORMATS.fullmatch(found["schema"]):
        raise ValueError("it is of another program")
    for name in ("catalog_version", "documents", "pages", "images"):
        if type(found.get(name)) is not int or not 0 <= found[name] <= _MOST_COUNT:
            raise ValueError(f"{name} is no count")
    return Manifest(**{name: found[name] for name in Manifest.__slots__})


def refusal(path: Path, why: str) -> IndexUnusableError:
    return IndexUnusableError(f"{path} cannot be restored: {why}", hint="nothing was changed; try another backup")


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Raises `IndexUnusableError` for anything that is not a sound backup."""
    try:
        opened = zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise IndexUnusableError(f"there is no file {path}", hint="make one with: ctx backup FILE") from error
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise refusal(path, f"it is no backup of ctx, or not a whole one ({error})") from error
    with opened:
        yield Archive(opened, path)


_PREFIX = ".ctx-backup-"
_NAME = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")
_LOCK = "lock"
_TRIES = 10


@contextmanager
def work_folder(parent: Path, names: frozenset[str]) -> Iterator[Path]:
    """A folder in `parent` for files of these names, gone at the end. Its lock is held meanwhile, so whoever can take
    the lock of another one knows that its process is gone."""
    _clear_dead(parent, names)
    folder, lock = _make(parent)
    try:
        yield folder
    finally:
        _unlink(folder, names)
        lock.release()
        _remove(folder)


def _make(parent: Path) -> tuple[Path, BaseFileLock]:
    """A new folder and its lock. Another process may take it for a dead one until the lock is ours: then a next."""
    from filelock import FileLock, Timeout

    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        lock = FileLock(folder / _LOCK, timeout=0, mode=0o600)
        try:
            lock.acquire()
        except (Timeout, FileNotFoundError):
            continue
        if (folder / _LOCK).exists():
            return folder, lock
        lock.release()
    raise OSError(f"no folder of our own can be kept in {parent}")


def _clear_dead(parent: Path, names: frozenset[str]) -> None:
    from filelock import FileLock

    for folder in [Path(entry) for entry in os.scandir(parent) if _NAME.fullmatch(entry.name)]:
        # Nothing that goes wrong with another's leftovers stands in the way of this run.
        with suppress(OSError):
            if _is_ours(folder, names):
                lock = FileLock(folder / _LOCK, timeout=0, mode=0o600)
                lock.acquire()  # a time-out is an OSError: its process is at work
                try:
                    _unlink(folder, names)
                finally:
                    lock.release()
                _remove(folder)


def _is_ours(folder: Path, names: frozenset[str]) -> bool:
    """A real folder of this user with a lock in it and nothing that we do not put there. Raises OSError."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or not _is_mine(found):
        return False
    inside = {entry.name: entry.stat(follow_symlinks=False) for entry in os.scandir(folder)}
    return (
        _LOCK in inside
        and inside.keys() <= names | {_LOCK}
        and all(stat.S_ISREG(status.st_mode) and _is_mine(status) for status in inside.values())
    )


def _is_mine(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _unlink(folder: Path, names: frozenset[str]) -> None:
    for name in names:
        with suppress(OSError):
            (folder / name).unlink()


def _remove(folder: Path) -> None:
    _unlink(folder, frozenset({_LOCK}))
    with suppress(OSError):
        folder.rmdir()


_PAGES_A_STEP = 2000  # of the database, between two chances to be interrupted
_ARCHIVE = "archive"
# A pipe in an image's place is opened without waiting for its other end. Windows has neither flag.
_NO_FOLLOWING = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FILES = frozenset({_ARCHIVE, *(CATALOG + ending for ending in ("", "-journal", "-wal", "-shm"))})


def backup(paths: IndexPaths, target: Path, *, images: bool = True, force: bool = False) -> Backup:
    """Write the index to `target`, whole or not at all. Others may read and write the index meanwhile. Files that
    documents were read from are not in it, uploaded ones no more than others."""
    _check(paths, target, force=force)
    with Catalog(paths) as catalog:  # before anything is written, so that a missing index leaves no trace
        try:
            with work_folder(target.parent, _FILES) as folder:
                written = folder / _ARCHIVE
                manifest = _write(catalog, written, folder / CATALOG, images=images)
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
    with os.fdopen(descriptor, "w+b") as file, closing(connect(snapshot)) as copy:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as opened:
            drawn = copy.execute("SELECT doc_id, page FROM pages WHERE image ORDER BY doc_id, page").fetchall()
            left_out = _add_images(opened, catalog.paths, drawn) if images else drawn
            # A page whose image is not in the backup is drawn again by the first run after a restore.
            copy.execute("BEGIN")
            copy.pages.forget_images(left_out)
            copy.execute("COMMIT")
            manifest = Manifest(
                schema=FORMAT,
                catalog_version=SCHEMA_VERSION,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                documents=copy.execute("SELECT COUNT(*) FROM documents").fetchone()[0],
                pages=copy.execute("SELECT COUNT(*) FROM pages").fetchone()[0],
                images=2 * (len(drawn) - len(left_out)),
            )
            with snapshot.open("rb") as source:
                add(opened, CATALOG, source)
            add_manifest(opened, manifest)
        file.flush()
        os.fsync(file.fileno())
    return manifest


def _copy_catalog(catalog: Catalog, snapshot: Path) -> None:
    snapshot.touch(mode=0o600)
    source = catalog.connection
    with closing(connect(snapshot)) as copy:
        try:
            # One reading transaction over all steps: a writer goes on beside it and is not seen.
            source.execute("BEGIN")
            source.execute("SELECT COUNT(*) FROM meta").fetchone()
            source.backup(copy, pages=_PAGES_A_STEP)
            copy.execute("PRAGMA journal_mode = DELETE")  # all of it in one file
            answer = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
            # Found out now, while there is something to mend: restore refuses what is not as ctx writes it.
            problem = value_problem(copy) if answer == "ok" else ""
        except sqlite3.OperationalError as error:
            raise IndexUnusableError(
                f"the backup cannot be written: {error}", hint="see that there is space beside the file"
            ) from error
        except sqlite3.DatabaseError as error:
            answer, problem = str(error), ""
        finally:
            source.execute("ROLLBACK")
    if answer != "ok":
        raise IndexUnusableError(f"the catalog is damaged and not worth a backup: {answer}", hint=DAMAGED)
    if problem:
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
                add(opened, f"images/{doc_id}/{name}", file)
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
