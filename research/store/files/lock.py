"""One writer at a time: a lock file that names the process holding it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from research.errors import BusyError
from research.store.error_hints import unusable
from research.store.files.own_files import create_file, refuse_link, remove_file
from research.store.files.paths import IndexPaths
from research.store.files.private import private_files


@contextmanager
def write_lock(paths: IndexPaths, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the index's write lock, waiting up to `wait` seconds (-1: for ever). Raises `BusyError`.

    Whoever writes comes through here: a folder that is not ours is refused before anything in it is touched, and what
    is written is for its owner only.
    """
    from filelock import FileLock, Timeout

    paths.create()
    path = paths.lock
    refuse_link(_pid_file(path))
    lock = FileLock(path, timeout=wait, mode=0o600)
    try:
        lock.acquire()
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
        with private_files():
            _note(pid_file)
            yield
    finally:
        remove_file(pid_file)  # the folder may be gone, or read-only by now
        lock.release()


def _note(pid_file: Path) -> None:
    try:
        pid_file.unlink(missing_ok=True)  # of a process that was killed
        create_file(pid_file, str(os.getpid()).encode())
    except OSError as error:
        raise unusable("cannot write into the index folder", error) from error


def holder(path: Path) -> int | None:
    """The process id noted beside the lock, if one is there."""
    try:
        return int(_pid_file(path).read_text())
    except (OSError, ValueError):
        return None


def _pid_file(path: Path) -> Path:
    # Beside the lock, not inside: on some systems a locked file cannot be read by others.
    return path.with_suffix(".pid")
