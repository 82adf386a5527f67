"""Where the parts of an index live inside its folder, which folder may become one, and one writer at a time: a lock
file, and beside it a note of the process holding it.

Files of our own in there are made, read and removed without ever following a link. A folder can come from anywhere:
git carries symbolic links, and one in the place of a name of ours would let a command write or delete elsewhere in the
user's name.


The marker of an index folder.

Without it, nothing in a folder is ours to remove or to overwrite.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import (
    BusyError,
    IndexUnusableError,
    NothingFoundError,
    OlderIndexError,
    UsageError,
    next_step,
    unusable,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock


CATALOG = "catalog.sqlite3"
MARKER = "ctx-index.json"
# Every name that ctx, SQLite or the lock makes directly in the folder.
_OWN_NAMES = frozenset(
    {
        MARKER,
        ".gitignore",
        "write.lock",
        "write.pid",
        "chroma",
        "images",
        "spool",
        "uploads",
        "restoring",
        CATALOG,
        *(CATALOG + ending for ending in ("-wal", "-shm", "-journal")),
        "catalog.damaged",
    }
)
_SPOOLED = re.compile(r"[0-9a-f]{16}\.(jsonl|images)|tokens\.json")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def is_own_name(name: str) -> bool:
    """Whether ctx itself makes a file or folder of this name directly in an index."""
    return name in _OWN_NAMES


@dataclass(frozen=True, slots=True)
class IndexPaths:
    """The files of one index. Nothing is created until `create`."""

    root: Path

    @property
    def catalog(self) -> Path:
        return self.root / CATALOG

    @property
    def chroma(self) -> Path:
        """Holds one folder a generation of the collections; only `generations` looks inside."""
        return self.root / "chroma"

    @property
    def images(self) -> Path:
        """Page images and thumbnails, one folder a document."""
        return self.root / "images"

    def image_folder(self, doc_id: str) -> Path:
        return self.images / doc_id

    def image_path(self, doc_id: str, page: int) -> str:
        return str(self.image_folder(doc_id) / image_name(page))

    def thumbnail_path(self, doc_id: str, page: int) -> str:
        return str(self.image_folder(doc_id) / thumbnail_name(page))

    @property
    def spool(self) -> Path:
        """Pages on their way from a reader to the catalog. Empty between runs."""
        return self.root / "spool"

    @property
    def uploads(self) -> Path:
        """Files that came through a server and lie nowhere else, one folder a document; `store/files.py`."""
        return self.root / "uploads"

    @property
    def restoring(self) -> Path:
        """A backup on its way in, until it was found whole."""
        return self.root / "restoring"

    @property
    def lock(self) -> Path:
        return self.root / "write.lock"

    @property
    def exists(self) -> bool:
        """Whether there is a catalog, or a link in its place, which whoever opens it is told of."""
        return self.catalog.is_file() or self.catalog.is_symlink()

    def nothing_found(self) -> NothingFoundError:
        """There is nothing to search or to list, and why: the folder is an index without documents, or none at all."""
        made = self.exists or (self.root / MARKER).is_file()
        what = f"the index {self.root} is empty" if made else f"there is no index at {self.root}"
        return NothingFoundError(what, hint="add documents first: ctx ingest PATH")

    def refuse_links(self) -> None:
        """Raise if a name of ours in the folder is a link. SQLite and Chroma would follow it without a word."""
        try:
            with os.scandir(self.root) as entries:
                links = [entry for entry in entries if entry.name in _OWN_NAMES and entry.is_symlink()]
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable("cannot look into", error) from error
        for link in links:
            refuse_link(Path(link))

    def open_spool(self) -> Path:
        """The spool, there and without what a stopped run left in it."""
        self.clear_spool()
        make_folder(self.spool)
        return self.spool

    def clear_spool(self) -> None:
        """Remove what is ours in the spool, and the folder if it is empty then."""
        for path in own_entries(self.spool, _SPOOLED):
            remove_tree(path)
            remove_file(path)
        with suppress(OSError):
            self.spool.rmdir()

    def has_spooled(self) -> bool:
        """Whether a stopped run left a spool, with something of ours in it or nothing at all."""
        if self.spool.is_symlink() or not self.spool.is_dir():
            return False
        return bool(own_entries(self.spool, _SPOOLED)) or not any(self.spool.iterdir())

    def create(self) -> None:
        """Make the folder, readable by its owner only: it holds the text of private documents.

        One that is there must be empty, or an index; any other is left as it is, and `UsageError` says so.
        """
        try:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            try:
                self.root.mkdir(mode=0o700)
                made = True
            except FileExistsError:
                made = False
            self.refuse_links()
            mark(self.root)
            if made:
                ignore_for_git(self.root)
        except OSError as error:
            raise self._unusable("cannot use" if self.root.is_dir() else "cannot create", error) from error

    def make_private(self) -> bool:
        """`create`, and shut a folder that was there for everybody else. False if it was."""
        refuse_link(self.root)
        existed = self.root.is_dir()
        self.create()
        try:
            if self.root.stat().st_mode & 0o077:
                self.root.chmod(0o700)
        except OSError as error:
            raise IndexUnusableError(
                f"cannot make {self.root} private: {error.strerror or error}",
                hint=f"chmod 700 {shlex.quote(str(self.root))}",
            ) from error
        return not existed

    def _unusable(self, what: str, error: OSError) -> IndexUnusableError:
        hint = next_step(error) or "name another folder with --index DIR or CTX_INDEX"
        return IndexUnusableError(f"{what} the index folder {self.root}: {error.strerror or error}", hint=hint)


@dataclass(frozen=True, slots=True)
class StagedPaths(IndexPaths):
    """The folder `restoring` of an index. Paths of page images are those they will have, so that the collections
    can be built before anything is put in place."""

    @property
    def images(self) -> Path:
        return IndexPaths(self.root.parent).images

    @property
    def staged_images(self) -> Path:
        """Where image files wait until then."""
        return self.root / "images"


def image_name(page: int) -> str:
    return f"{page:05d}.jpg"


def thumbnail_name(page: int) -> str:
    return f"{page:05d}.webp"


def refuse_link(path: Path) -> None:
    """Raise if this name of ours is a link. One that is missing is fine."""
    if path.is_symlink():
        raise IndexUnusableError(
            f"{path} is a link, and ctx follows none inside an index",
            hint="remove the link, or name another index with --index DIR",
        )


def create_file(path: Path, data: bytes) -> None:
    """Write a new file for its owner only; `FileExistsError` if anything has that name, a dangling link too."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def touch_private(path: Path) -> None:
    """Have a file for its owner only before somebody else makes it with other rights: SQLite gives those of a database
    to all that it makes beside it. One that is there stays as it is."""
    with suppress(FileExistsError):
        create_file(path, b"")


def make_tree_private(folder: Path) -> None:
    """Take from all others what they may do with a folder of ours and everything in it."""
    for current, _, names in os.walk(folder):
        Path(current).chmod(0o700)
        for name in names:
            Path(current, name).chmod(0o600)


def read_file(path: Path, most: int) -> bytes:
    """The content, at most `most` bytes of it. `OSError` for a link or anything that is no file."""
    descriptor = os.open(path, os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no file")
        return file.read(most)


def make_folder(path: Path) -> None:
    """A folder for its owner only. One that is there is used, a link to one is not."""
    refuse_link(path)
    path.mkdir(mode=0o700, exist_ok=True)


def sync(path: Path) -> None:
    """What was written to this file, or the names in this folder, survive a power cut from here on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a folder of ours as far as that can be done. A link in its place, and what it leads to, stays."""
    with suppress(OSError):
        shutil.rmtree(path)  # refuses a link by itself, and does not follow those inside


def own_entries(folder: Path, ours: re.Pattern[str]) -> list[Path]:
    """What has a name of ours in a folder of ours; nothing if that is a link."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if ours.fullmatch(path.name)]


def remove_file(path: Path) -> None:
    """Remove a file of ours as far as that can be done. Of a link only the link."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


_TRIES = 1000  # in the microseconds that somebody looks at the lock


@contextmanager
def write_lock(paths: IndexPaths, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the index's write lock, waiting up to `wait` seconds (-1: for ever). Raises `BusyError`.

    Whoever writes comes through here: a folder that is not ours is refused before anything in it is touched.
    """
    from filelock import FileLock, Timeout

    paths.create()
    path = paths.lock
    refuse_link(_pid_file(path))
    lock = FileLock(path, timeout=wait, mode=0o600)
    try:
        _acquire(lock, paths)
    except Timeout as error:
        pid = holder(path)
        who = f"process {pid}" if pid else "another process"
        raise BusyError(f"{who} is writing this index", pid=pid, hint="wait for it to finish, or add --wait") from error
    except OSError as error:
        raise unusable("cannot lock the index", error) from error
    pid_file = _pid_file(path)
    try:
        _note(pid_file)
        yield
    finally:
        remove_file(pid_file)  # the folder may be gone, or read-only by now
        lock.release()


def _acquire(lock: BaseFileLock, paths: IndexPaths) -> None:
    from filelock import Timeout

    for _ in range(_TRIES):
        try:
            lock.acquire()
        except Timeout:
            if is_locked(paths):
                raise
        else:
            return  # those before met somebody who only looked (`is_locked`)
    lock.acquire()


def _note(pid_file: Path) -> None:
    try:
        pid_file.unlink(missing_ok=True)  # of a process that was killed
        create_file(pid_file, str(os.getpid()).encode())
    except OSError as error:
        raise unusable("cannot write into the index folder", error) from error


def is_locked(paths: IndexPaths) -> bool:
    """Whether a process writes the index now. The lock itself is asked: the note of one that was killed stays, and its
    process id may be another's by now."""
    import fcntl

    try:
        descriptor = os.open(paths.lock, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:  # never locked, or not ours to look at
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that several may look at once
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks has no writer that holds one
        return False
    finally:
        os.close(descriptor)
    return False


def holder(path: Path) -> int | None:
    """The process id noted beside the lock, if one is there."""
    try:
        return int(_pid_file(path).read_text())
    except (OSError, ValueError):
        return None


def _pid_file(path: Path) -> Path:
    # Beside the lock, not inside: on some systems a locked file cannot be read by others.
    return path.with_suffix(".pid")


FORMAT = "ctx.index/1"
_NOTE = "This folder is an index of ctx, which removes and rewrites files of its own in here."
_MOST = 4096
_ID = re.compile(r"[0-9a-f]{32}")
_WRITING_SECONDS = 1.0  # another process may just be writing the marker

_LAST_UNMARKED = 13  # number of a schema
_IGNORE_ALL = b"*\n"


def index_id(root: Path) -> str:
    """The lasting id of the index in this folder; empty if it carries no marker. Raises for a marker not of ours."""
    deadline = time.monotonic() + _WRITING_SECONDS
    while True:
        try:
            written = read_file(root / MARKER, _MOST)
        except FileNotFoundError:
            return ""
        except PermissionError:
            raise
        except OSError as error:
            raise _strange(root) from error
        if written or time.monotonic() > deadline:
            return _parse(root, written)
        time.sleep(0.01)


def mark(root: Path) -> None:
    """Make an empty folder ours. Any other is refused."""
    if index_id(root):
        return
    names = set(os.listdir(root)) - {MARKER}  # noqa: PTH208  names are all that is wanted
    if names:
        _refuse_older(root)
        raise UsageError(
            f"{root} holds other files and is no index of ctx; nothing in it was touched",
            hint=f"make one inside it with: ctx init {shlex.quote(str(root))}"
            " (and leave out --index), or name a new or empty folder",
        )
    document = {"schema": FORMAT, "id": uuid.uuid4().hex, "note": _NOTE}
    try:
        create_file(root / MARKER, json.dumps(document, indent=1).encode() + b"\n")
    except FileExistsError:
        if not index_id(root):  # another process was first; an empty one was left by a kill
            (root / MARKER).unlink(missing_ok=True)
            mark(root)


def _refuse_older(root: Path) -> None:
    """Raise if this folder is an index of an older ctx: the first had no marker."""
    try:
        with (root / CATALOG).open("rb") as file:
            head = file.read(64)
    except OSError:
        return
    version = int.from_bytes(head[60:64], "big")  # what SQLite calls user_version
    if head.startswith(b"SQLite format 3\0") and 0 < version <= _LAST_UNMARKED:
        raise OlderIndexError.of(f"the index {root}")


def ignore_for_git(root: Path) -> None:
    """Keep an index that ctx made out of the repository it stands in."""
    create_file(root / ".gitignore", _IGNORE_ALL)


def _parse(root: Path, written: bytes) -> str:
    if not written:
        return ""
    try:
        found = json.loads(written)
        name = str(found["id"]) if found["schema"] == FORMAT else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        name = ""
    if not _ID.fullmatch(name):
        raise _strange(root)
    return name


def _strange(root: Path) -> IndexUnusableError:
    return IndexUnusableError(
        f"{root / MARKER} is not a marker of ctx, or a damaged one",
        hint="name another index with --index DIR; if this folder is an index, remove that file",
    )
