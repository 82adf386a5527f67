"""Headings of pages that stand on other pages. A page knows the section that it begins in, and the heading of that may
stand on a page before it, which somebody who may read this page may not read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from research.store.catalog.pages import section_paths

if TYPE_CHECKING:
    from research.models import Item
    from research.store.catalog.reader import Reader

_SEPARATOR = " > "  # of section paths

Readable = Callable[[Sequence[str]], Collection[str]]
"""Those of some refs that may be read as they are."""


def without_others(reader: Reader, items: Sequence[Item], readable: Readable) -> list[Item]:
    """The items in their order; pages without headings of pages that may not be read. Most have none of other pages,
    and cost nothing."""
    asked: dict[int, dict[str, tuple[str, ...]]] = {}  # place of an item → its borrowed headings, with where they stand
    paths: dict[str, list[tuple[int, str]]] = {}
    for place, item in enumerate(items):
        for heading in _borrowed(item):
            key = item.ref.key
            if key not in paths:
                paths[key] = section_paths(reader, key)
            asked.setdefault(place, {})[heading] = _where(item, heading, paths[key])
    if not asked:
        return list(items)
    refs = dict.fromkeys(ref for headings in asked.values() for several in headings.values() for ref in several)
    seen = readable(list(refs))
    found = list(items)
    for place, headings in asked.items():
        hidden = {heading for heading, several in headings.items() if not all(ref in seen for ref in several)}
        found[place] = _without(found[place], hidden)
    return found


def _parts(item: Item) -> list[str]:
    return [part for part in str(item.metadata.get("section_path", "")).split(_SEPARATOR) if part]


def _borrowed(item: Item) -> list[str]:
    """Headings that the page's own text does not have."""
    if item.ref.kind != "page":
        return []
    parts = [*_parts(item), str(item.metadata.get("parent_heading", ""))]
    own = _letters(item.text) if any(parts) else ""
    return [part for part in dict.fromkeys(parts) if part and _letters(part) not in own]


def _where(item: Item, heading: str, paths: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Where a heading stands: on the first page whose section it is, or at the end of the page before that."""
    page = int(item.ref.part)
    first = next((number for number, path in paths if heading in path.split(_SEPARATOR)), page)
    first = min(first, page)
    return tuple(f"page:{item.ref.key}#{number}" for number in (first - 1, first) if number > 0)


def _without(item: Item, hidden: Collection[str]) -> Item:
    if not hidden:
        return item
    path = _SEPARATOR.join(part for part in _parts(item) if part not in hidden)
    parent = str(item.metadata.get("parent_heading", ""))
    own = {"section_path": path, "parent_heading": "" if parent in hidden else parent}
    return replace(item, metadata=dict(item.metadata) | own)


def _letters(text: str) -> str:
    """Letters and digits only, without case: markdown marks some of the rest."""
    return "".join(filter(str.isalnum, text.casefold()))
