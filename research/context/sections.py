"""The section of a passage: the headings above it on its page, under those in force where the page begins."""

from __future__ import annotations

from collections.abc import Sequence

from research.units import Unit

_SEPARATOR = " > "  # of the stored path, and its bounds: ingest/pdf/headings.py
_MOST_TITLE = 120

_Heading = tuple[int, int, str]  # where it begins, its level, its title


def section_path(markdown: str, units: Sequence[Unit], at: int, stored: str) -> str:
    """The path for what stands at this place. `stored` is that of the page, in force where its main text begins.

    The levels of headings on earlier pages are not known. Of the stored path, what stands above a heading is taken if
    the page shows that it does: if the heading, or one of its level before the main text, is named in it. Otherwise
    the page's own headings stand alone, which is less and never wrong.
    """
    headings = [_heading(markdown, unit) for unit in units if unit.kind == "heading" and unit.start <= at]
    above: list[_Heading] = []
    for heading in headings:
        while above and above[-1][1] >= heading[1]:
            above.pop()
        above.append(heading)
    if not above:
        return stored
    main = next((unit.start for unit in units if unit.kind != "heading"), len(markdown))
    names = stored.split(_SEPARATOR)
    known = [_letters(name) for name in names]
    for start, level, title in headings:
        if start < main and level == above[0][1] and _letters(title) in known:
            names = names[: known.index(_letters(title))]
            break
    else:
        names = []
    return _SEPARATOR.join([*names, *(title for _, _, title in above)])


def _heading(markdown: str, unit: Unit) -> _Heading:
    line = markdown[unit.start : unit.end]
    marks = len(line) - len(line.lstrip("#"))
    title = " ".join(line[marks:].replace(_SEPARATOR, " › ").split())
    return unit.start, marks, title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1].rstrip()}…"


def _letters(title: str) -> str:
    """Letters and digits only, without case: how titles are compared."""
    return "".join(filter(str.isalnum, title.casefold()))
