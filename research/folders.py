"""Which folders and files are used that nobody named: the nearest .ctx and ctx.toml upward, else the user's own.

Only what is the user's own is used, as git does it. An index or a settings file in a parent folder that others can
write would catch everybody who works below it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import UntrustedError

if TYPE_CHECKING:
    from research.settings import Settings

PROJECT_FOLDER = ".ctx"
PROJECT_FILE = "ctx.toml"


def index_folder(settings: Settings, folder: Path | None = None) -> Path:
    """Where the index is, without making it."""
    if settings.index:
        return Path(settings.index).expanduser().absolute()
    for candidate in _upward(folder or Path.cwd()):
        found = candidate / PROJECT_FOLDER
        if found.is_dir():
            check_owner(found, settings.safe_folders)
            return found
    return user_data()


def check_owner(found: Path, safe_folders: Collection[str]) -> None:
    """What nobody named is used only if it is the user's own."""
    reason = _why_strange(found)
    if not reason or _is_safe(found, safe_folders):
        return
    import shlex

    instead = f"name it with --index {shlex.quote(str(found))}" if found.is_dir() else "move it away"
    raise UntrustedError(
        f"found {found}, and did not use it: it {reason}",
        hint=f"{instead}, or if you trust it, add {shlex.quote(str(found.parent))} to safe_folders in {user_config()}",
    )


def user_data() -> Path:
    from platformdirs import user_data_path

    return user_data_path("ctx", appauthor=False)


def user_state() -> Path:
    """For what may be forgotten: which pages the last answer cited."""
    from platformdirs import user_state_path

    return user_state_path("ctx", appauthor=False)


def user_config() -> Path:
    from platformdirs import user_config_path

    return user_config_path("ctx", appauthor=False) / "config.toml"


def _upward(folder: Path) -> Iterator[Path]:
    folder = folder.absolute()
    yield folder
    yield from folder.parents


def project_files(folder: Path) -> list[Path]:
    """The nearest ctx.toml upward, if there is one."""
    return next(([c / PROJECT_FILE] for c in _upward(folder) if (c / PROJECT_FILE).is_file()), [])


def is_inside(place: Path, folder: Path) -> bool:
    """Whether a path stays in a folder, with every link followed. (realpath, because resolve() raises for a loop.)"""
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))


def _why_strange(path: Path) -> str:
    """Why not to trust it, after "it"; empty if it is the user's own and nobody else may write it."""
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


def _is_safe(path: Path, safe_folders: Collection[str]) -> bool:
    """Whether the user lists it, or the folder that it stands in, as safe."""
    names = {os.path.realpath(os.path.expanduser(folder)) for folder in safe_folders}  # noqa: PTH111  as typed
    return bool(names & {os.path.realpath(path), os.path.realpath(path.parent)})
