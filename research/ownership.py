"""Whether what is found in a folder may be used: only what is the user's own, as git does it.

An index or a settings file in a parent folder that others can write would catch everybody who works below it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path


def why_strange(path: Path) -> str:
    """Why not to trust it, after "it"; empty if it is the user's own and nobody else may write it."""
    if not hasattr(os, "geteuid"):  # Windows has other rules, and no such folders that everybody can write
        return ""
    found, led_to = path.lstat(), path.stat()
    if stat.S_ISLNK(found.st_mode) and stat.S_ISDIR(led_to.st_mode):
        return "is a link to another folder"
    for status in (found, led_to):
        if status.st_uid not in _own_ids():
            return f"belongs to another user (user id {status.st_uid})"
    if led_to.st_mode & stat.S_IWOTH:
        return f"can be written by everybody (mode {stat.S_IMODE(led_to.st_mode):o})"
    return ""


def _own_ids() -> set[int]:
    """The user's; for root also that of whoever called sudo."""
    own = os.geteuid()
    called_by = os.environ.get("SUDO_UID", "")
    return {own, int(called_by)} if own == 0 and called_by.isdecimal() else {own}


def is_safe(path: Path, safe_folders: Collection[str]) -> bool:
    """Whether the user lists it, or the folder that it stands in, as safe."""
    names = {os.path.realpath(os.path.expanduser(folder)) for folder in safe_folders}  # noqa: PTH111  as typed
    return bool(names & {os.path.realpath(path), os.path.realpath(path.parent)})
