"""What parts of a document are called, by those who ask for them and in its headings: part_words.toml, read once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of part; the table explains the fields."""

    headings: tuple[str, ...] = ()
    asked: str = ""
    last: bool = False
    begins: bool = False
    everyday: bool = False
    also: str = ""


def _read(path: Path) -> Mapping[str, Part]:
    table: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    sums_up = table["summary"]["headings"]
    shared = {"abstract": sums_up, "letter": sums_up[2:3]}
    return {
        kind: Part(**entry | {"headings": tuple(entry.get("headings", shared.get(kind, ())))})
        for kind, entry in table.items()
    }


PARTS = _read(Path(__file__).with_suffix(".toml"))
SUMMARY = PARTS["summary"].headings
# Deep inside a document these open a chapter; the others do, if more words follow.
IN_FRONT = ", ".join((SUMMARY[2], *SUMMARY[4:]))
