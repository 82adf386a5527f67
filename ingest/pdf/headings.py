"""A document's sections: its outline (bookmarks), as far as it can be believed, and which drafts are headings.

The outline gives a heading's level where it names it, else the font does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ingest.pdf.document_stats import Fonts
from ingest.pdf.lines import clean_text
from ingest.pdf.mupdf import MupdfError, mupdf_errors
from ingest.pdf.paragraphs import Draft

_MAX_ENTRIES = 50_000
_MAX_ON_PAGE = 200
_MAX_TITLE = 120
_MAX_PATH = 400
_SPARSE = 10  # pages to an entry; beyond this headings on the pages say more
_EMPTY_NAME = re.compile(r"(?:slide|page|folie|seite|blank page|bookmark|untitled|p\.?)\s*\d*", re.IGNORECASE)
_SEPARATOR = " > "

_NUMBER = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3})*\.?|[A-Z]\.(?:\d+\.?)*|[IVX]{1,5}\.|"
    r"(?:Chapter|Section|Part|PART|Item|ITEM|Note|NOTE|Appendix|Article|Annex|Exhibit|Figure|Table)\s+[\dA-Z][\w.]*)\s+\S"
)
_LEADING_NUMBER = re.compile(r"[\d.]+\s*|[A-Z]\.\s+")
_MAX_HEADING = 160


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """One line of the outline; `page` is physical and 1-based."""

    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The believable entries by page. `sparse` where they are too few to name a page's section alone."""

    by_page: dict[int, list[OutlineEntry]] = field(default_factory=dict)
    depth: int = 0
    sparse: bool = True


def fold(text: str) -> str:
    """Letters and digits only, without case: how titles are compared."""
    return "".join(filter(str.isalnum, text.casefold()))


def shorten(title: str) -> str:
    """A title fit for a section path: one line, bounded, without the path's own separator."""
    title = clean_text(title).replace(" > ", " › ").strip()
    return title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1].rstrip() + "…"


def read_outline(document: Any, num_pages: int) -> Outline:
    """The outline, without entries that point nowhere or say nothing."""
    try:
        with mupdf_errors():
            raw = document.get_toc(simple=True)
    except MupdfError:
        return Outline()
    entries: list[OutlineEntry] = []
    for level, name, page in raw[:_MAX_ENTRIES]:
        title = shorten(str(name))
        if 1 <= page <= num_pages and fold(title) and not _EMPTY_NAME.fullmatch(title):
            entries.append(OutlineEntry(max(1, min(6, level)), title, page))
    if len(entries) < 2 or (num_pages > 1 and len({entry.page for entry in entries}) < 2):
        return Outline()
    by_page: dict[int, list[OutlineEntry]] = {}
    for entry in entries:
        on_page = by_page.setdefault(entry.page, [])
        if len(on_page) < _MAX_ON_PAGE:
            on_page.append(entry)
    return Outline(by_page, max(e.level for e in entries), num_pages > _SPARSE * len(by_page))


@dataclass(slots=True)
class Sections:
    """The headings in force, carried from page to page."""

    stack: list[tuple[int, str]] = field(default_factory=list)

    def enter(self, level: int, title: str) -> None:
        title = shorten(title)
        if not title:
            return
        while self.stack and self.stack[-1][0] >= level:
            self.stack.pop()
        self.stack.append((level, title))

    def path(self) -> tuple[str, str]:
        """The path and its last element. A path too long loses its outermost parts."""
        titles = [title for _, title in self.stack]
        while len(_SEPARATOR.join(titles)) > _MAX_PATH:
            titles.pop(0)
        return _SEPARATOR.join(titles), titles[-1] if titles else ""


def advance(sections: Sections, outline: Outline, page: int, headings: list[tuple[bool, int, str]]) -> tuple[str, str]:
    """Enter a page's headings (leading?, level, title); return the path in force where its main content begins."""
    entries = outline.by_page.get(page, [])
    titles = [fold(title) for _, _, title in headings]
    leading = [fold(title) for is_leading, _, title in headings if is_leading]
    first: list[tuple[int, str]] = []
    later: list[tuple[int, str]] = []
    for entry in entries:
        # An entry not found on its page most likely names the page itself, if it deepens the path before it.
        unseen = not _named(entry, titles) and (not first or entry.level > first[-1][0])
        opens = not later and (_named(entry, leading) or unseen)
        (first if opens else later).append((entry.level, entry.title))
    if outline.sparse:
        for is_leading, level, title in headings:
            if not any(_named(entry, [fold(title)]) for entry in entries):
                (first if is_leading and not later else later).append((level + outline.depth, title))
    for level, title in first:
        sections.enter(level, title)
    path = sections.path()
    for level, title in later:
        sections.enter(level, title)
    return path


def _named(entry: OutlineEntry, titles: list[str]) -> bool:
    """Whether one of the titles is the entry's, a number in front of either aside."""
    key = fold(entry.title)
    return any(
        key == title or (min(len(key), len(title)) > 3 and (title.endswith(key) or key.endswith(title)))
        for title in titles
    )


def heading_levels(drafts: list[Draft], fonts: Fonts, entries: list[OutlineEntry]) -> dict[int, int]:
    """Levels of the drafts that are headings, by their index."""
    levels: dict[int, int] = {}
    by_font: dict[int, int] = {}  # their lengths
    wanted = {fold(entry.title): entry.level for entry in entries}
    for index, draft in enumerate(drafts):
        if draft.kind in ("table", "code") or len(draft.rows) > 4:
            continue
        level = _toc_level(draft.text, wanted)
        if level == 0 and _is_heading(draft, fonts):
            level = fonts.level(draft.rows[0].size)
            by_font[index] = len(draft.text)
        if level:
            levels[index] = level
    # A page set in a large font throughout holds text, not headings; only its short lines may stay.
    if len(by_font) > 3 and sum(by_font.values()) > 0.6 * sum(len(draft.text) for draft in drafts):
        for index, length in by_font.items():
            if length > 60:
                del levels[index]
    return levels


def _toc_level(text: str, wanted: dict[str, int]) -> int:
    if not wanted or len(text) > 300:
        return 0
    folded = fold(text)
    bare = fold(_LEADING_NUMBER.sub("", text, count=1))
    for title, level in wanted.items():
        if title and (
            folded == title
            or (len(bare) > 1 and (bare == title or (title.endswith(bare) and len(bare) > 0.7 * len(title))))
        ):
            return level
    return 0


def _is_heading(draft: Draft, fonts: Fonts) -> bool:
    """Whether a draft's font alone makes it a heading."""
    if not _could_be(draft, fonts):
        return False
    text, row = draft.text, draft.rows[0]
    words = len(text.split())
    ratio = row.size / max(fonts.body, 0.1)
    if ratio >= 1.15:
        return not (text.endswith(".") and words > 8)
    if text[-1] in ".:" or text[0].islower() or words > 15:
        return False
    apart = draft.space_above >= 0.35
    if ratio >= 1.08:
        return row.bold or apart or bool(_NUMBER.match(text))
    return ratio >= 0.95 and row.bold and apart and words <= 12 and len(draft.rows) <= 2


def _could_be(draft: Draft, fonts: Fonts) -> bool:
    """What every heading must have, whatever its font: few words, letters, one cell, upright, not code."""
    text, row = draft.text, draft.rows[0]
    if (draft.kind == "list" and not _NUMBER.match(text)) or (row.mono and fonts.code):
        return False
    if len(row.cells) > 1 or not row.lines[0].upright or len(text) > _MAX_HEADING or len(draft.rows) > 3:
        return False
    named = _LEADING_NUMBER.sub("", text, count=1)
    letters = sum(map(str.isalpha, named))
    return letters >= 2 and letters >= 0.5 * len(named.replace(" ", "")) and text[-1] not in ",;"
