"""Which index a command uses, and why that one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cli.options import Common, index_of, settings_for
from research.settings import PROJECT_FILE, PROJECT_FOLDER, user_config
from research.store.files.paths import IndexPaths


@dataclass(frozen=True, slots=True)
class Location:
    paths: IndexPaths
    why: str


def locate(given: Common) -> Location:
    settings = settings_for(given)
    paths = index_of(settings)
    if given.index is not None:
        why = "--index"
    elif os.environ.get("CTX_INDEX"):
        why = "CTX_INDEX"
    elif settings.index:
        why = f"set in {_file_with_index()}"
    elif paths.root.name == PROJECT_FOLDER:
        why = "the nearest .ctx upward"
    else:
        why = "the default; no .ctx here or above"
    return Location(paths, why)


def _file_with_index() -> Path:
    """The settings file that named the index: the nearest ctx.toml if it does, else the user's config."""
    import tomllib

    here = Path.cwd()
    for folder in (here, *here.parents):
        project = folder / PROJECT_FILE
        if project.is_file():
            return project if "index" in tomllib.loads(project.read_text("utf-8")) else user_config()
    return user_config()
