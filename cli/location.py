"""Which index a command uses, and why that one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.options import Common, index_of, settings_for
from research.folders import PROJECT_FOLDER
from research.settings import given_settings

if TYPE_CHECKING:
    from research.index import Index


@dataclass(frozen=True, slots=True)
class Location:
    index: Index
    why: str


def locate(given: Common) -> Location:
    index = index_of(settings_for(given))
    said = given_settings({"index": given.index}).get("index")
    if said is not None and said.value:
        why = said.where if said.where.startswith(("--", "CTX_")) else f"set in {said.where}"
    elif index.root.name == PROJECT_FOLDER:
        why = "the nearest .ctx upward"
    else:
        why = "the default; no .ctx here or above"
    return Location(index, why)
