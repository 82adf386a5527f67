"""One writer at a time: a lock file, and beside it a note of the process holding it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import BusyError, unusable
from research.store.files.paths import IndexPaths, create_file, refuse_link, remove_file

if TYPE_CHECKING:
    from filelock import BaseFileLock

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
        raise BusyError(
            f"{who} is writing this index",
            pid=pid,
            hint="wait for it to finish, or add --wait",
        ) from error
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
