"""The sections of a document: the path of a passage, and the table of contents of a whole one.

Headings are those of the stored markdown. A bookmark that no line of its page repeats is known from the page's section
path alone. Running headers repeat a heading on page after page; in a table of contents it counts where it comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from research.models import DocumentOutline, OutlineEntry, PageBeginning
from research.records import DocumentInfo
from research.store import PageText
from research.units import Unit

_SEPARATOR = " > "  # of the stored path
_MOST_NAME = 120  # characters of a heading in a path, as in ingest/pdf/headings.py
_MOST_TITLE = 200
# A page of nothing but headings is no table of contents.
_MOST_ON_PAGE = 200
_MOST_LINES = 5000  # of a page
_FENCE = "```"
_NUMBER = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){0,5}|[A-Z])[.):]?\s+(?=\S)")  # a bookmark often lacks its heading's
_BEGINNING = 80  # characters of a page

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
    return unit.start, marks, title if len(title) <= _MOST_NAME else f"{title[: _MOST_NAME - 1].rstrip()}…"


def _letters(title: str) -> str:
    """Letters and digits only, without case: how titles are compared."""
    return "".join(filter(str.isalnum, title.casefold()))


def document_outline(document: DocumentInfo, pages: Iterable[PageText]) -> DocumentOutline:
    """Of pages that come in order."""
    read = list(pages)
    entries = outline_of(read)
    return DocumentOutline(document, entries, [] if entries else [_beginning(page) for page in read])


def outline_of(pages: Iterable[PageText]) -> list[OutlineEntry]:
    """The headings of pages that come in order."""
    entries: list[OutlineEntry] = []
    above: list[tuple[float, str]] = []  # the headings in force: level as marked, folded title
    before: list[str] = []  # the section path of the page before
    for page in pages:
        marked = list(_headings(page.markdown))
        on_page = {_folded(title) for _, title in marked}
        path = [name for name in page.section_path.split(_SEPARATOR) if name]
        found = [*_unseen(path, before, on_page, above), *marked]
        before = path
        depths = {_folded(name): depth for depth, name in enumerate(path)}
        for level, title in found[:_MOST_ON_PAGE]:
            key = _folded(title)
            if any(key == known for _, known in above):
                continue  # a running header
            if key in depths:  # the page's path knows how deep it stands
                del above[depths[key] :]
            while above and above[-1][0] >= level:
                above.pop()
            above.append((level, key))
            entries.append(OutlineEntry(len(above), title, page.page, page.label))
    return entries


def _unseen(
    path: list[str], before: list[str], on_page: set[str], above: list[tuple[float, str]]
) -> Iterator[tuple[float, str]]:
    """The sections that begin on a page without a heading: each below those it stands in."""
    for depth, name in enumerate(path):
        known = path[: depth + 1] == before[: depth + 1] or _folded(name) in on_page
        if not known and _folded(name) not in {title for _, title in above}:
            yield (above[depth - 1][0] if 0 < depth <= len(above) else 0.0) + 0.5, name


def _headings(markdown: str) -> Iterator[tuple[float, str]]:
    in_code = False
    for line in markdown.splitlines()[:_MOST_LINES]:
        if line.startswith(_FENCE):
            in_code = not in_code
        marks = len(line) - len(line.lstrip("#")) if line.startswith("#") and not in_code else 0
        if 0 < marks <= 6 and line[marks : marks + 1] == " ":
            title = " ".join(line[marks : marks + 2 * _MOST_TITLE].split())
            if title:
                yield float(marks), title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…"


def _folded(title: str) -> str:
    """Letters and digits only, without case and a number before them: how titles are compared."""
    bare = title[number.end() :] if (number := _NUMBER.match(title)) else title
    return "".join(filter(str.isalnum, bare.casefold())) or title


def _beginning(page: PageText) -> PageBeginning:
    words = page.markdown[: 4 * _BEGINNING].replace("#", " ").replace("|", " ").split()
    text = " ".join(words)
    short = text if len(text) <= _BEGINNING else f"{text[: _BEGINNING - 1].rstrip()}…"
    return PageBeginning(page.page, page.label, short)
