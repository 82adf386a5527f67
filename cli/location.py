"""Which index a command uses, and why that one."""

from __future__ import annotations

from dataclasses import dataclass

from cli.options import Common, index_of, settings_for
from research.folders import PROJECT_FOLDER
from research.settings import given_settings
from research.store.files.paths import IndexPaths


@dataclass(frozen=True, slots=True)
class Location:
    paths: IndexPaths
    why: str


def locate(given: Common) -> Location:
    paths = index_of(settings_for(given))
    said = given_settings({"index": given.index}).get("index")
    if said is not None and said.value:
        why = said.where if said.where.startswith(("--", "CTX_")) else f"set in {said.where}"
    elif paths.root.name == PROJECT_FOLDER:
        why = "the nearest .ctx upward"
    else:
        why = "the default; no .ctx here or above"
    return Location(paths, why)
