"""Files of our own inside an index folder: made, read and removed without ever following a link.

A folder can come from anywhere: git carries symbolic links, and one in the place of a name of ours would let a
command write or delete elsewhere in the user's name.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from research.errors import IndexUnusableError

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


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
