"""A private folder beside a file that is being written. One that a killed process left is cleared by the next."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

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
