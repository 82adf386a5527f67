"""One raw page to one `Page`: order, paragraphs, headings, tables, lists, code, pictures, section.

A block is written from drafts: its markdown, and its box as fractions of the page. The outline (bookmarks), as far as
it can be believed, gives a heading's level where it names it, else the font does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from ingest.pdf.document import HYPHENS, DocumentStats, Fonts, Vocabulary, join_lines
from ingest.pdf.layout import Region, reading_order
from ingest.pdf.lines import Line, RawPage, clean_text
from ingest.pdf.mupdf import MupdfError, mupdf_errors
from ingest.pdf.paragraphs import Draft, Row, draft_region, make_rows, marker_of
from ingest.pdf.tables import RuledTable, find_ruled_tables
from research.records import Block, Box, Page, fractions, union

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
class _OutlineEntry:
    """One line of the outline; `page` is physical and 1-based."""

    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The believable entries by page. `sparse` where they are too few to name a page's section alone."""

    by_page: dict[int, list[_OutlineEntry]] = field(default_factory=dict)
    depth: int = 0
    sparse: bool = True


def _fold(text: str) -> str:
    """Letters and digits only, without case: how titles are compared."""
    return "".join(filter(str.isalnum, text.casefold()))


def _shorten(title: str) -> str:
    """A title fit for a section path: one line, bounded, without the path's own separator."""
    title = clean_text(title).replace(" > ", " › ").strip()
    return title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1].rstrip() + "…"


def read_outline(document: Any, num_pages: int) -> Outline:
    """Read the outline, without entries that point nowhere or say nothing."""
    try:
        with mupdf_errors():
            raw = document.get_toc(simple=True)
    except MupdfError:
        return Outline()
    entries: list[_OutlineEntry] = []
    for level, name, page in raw[:_MAX_ENTRIES]:
        title = _shorten(str(name))
        if 1 <= page <= num_pages and _fold(title) and not _EMPTY_NAME.fullmatch(title):
            entries.append(_OutlineEntry(max(1, min(6, level)), title, page))
    if len(entries) < 2 or (num_pages > 1 and len({entry.page for entry in entries}) < 2):
        return Outline()
    by_page: dict[int, list[_OutlineEntry]] = {}
    for entry in entries:
        on_page = by_page.setdefault(entry.page, [])
        if len(on_page) < _MAX_ON_PAGE:
            on_page.append(entry)
    return Outline(by_page, max(e.level for e in entries), num_pages > _SPARSE * len(by_page))


@dataclass(slots=True)
class _Sections:
    """The headings in force, carried from page to page."""

    stack: list[tuple[int, str]] = field(default_factory=list)

    def enter(self, level: int, title: str) -> None:
        title = _shorten(title)
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


def _advance(
    sections: _Sections, outline: Outline, page: int, headings: list[tuple[bool, int, str]]
) -> tuple[str, str]:
    """Enter a page's headings (leading?, level, title); return the path in force where its main content begins."""
    entries = outline.by_page.get(page, [])
    titles = [_fold(title) for _, _, title in headings]
    leading = [_fold(title) for is_leading, _, title in headings if is_leading]
    first: list[tuple[int, str]] = []
    later: list[tuple[int, str]] = []
    for entry in entries:
        # An entry not found on its page most likely names the page itself, if it deepens the path before it.
        unseen = not _named(entry, titles) and (not first or entry.level > first[-1][0])
        opens = not later and (_named(entry, leading) or unseen)
        (first if opens else later).append((entry.level, entry.title))
    if outline.sparse:
        for is_leading, level, title in headings:
            if not any(_named(entry, [_fold(title)]) for entry in entries):
                (first if is_leading and not later else later).append((level + outline.depth, title))
    for level, title in first:
        sections.enter(level, title)
    path = sections.path()
    for level, title in later:
        sections.enter(level, title)
    return path


def _named(entry: _OutlineEntry, titles: list[str]) -> bool:
    """Whether one of the titles is the entry's, a number in front of either aside."""
    key = _fold(entry.title)
    return any(
        key == title or (min(len(key), len(title)) > 3 and (title.endswith(key) or key.endswith(title)))
        for title in titles
    )


def _heading_levels(drafts: list[Draft], fonts: Fonts, entries: list[_OutlineEntry]) -> dict[int, int]:
    """Levels of the drafts that are headings, by their index."""
    levels: dict[int, int] = {}
    by_font: dict[int, int] = {}  # their lengths
    wanted = {_fold(entry.title): entry.level for entry in entries}
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
    folded = _fold(text)
    bare = _fold(_LEADING_NUMBER.sub("", text, count=1))
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


Piece = Draft | RuledTable

_LEADERS = re.compile(r"([._\-–—=*·…])(?: ?\1){4,}")
_LIKE_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(slots=True)
class Composer:
    """Writes pages one after the other; carries the sections in force from page to page."""

    stats: DocumentStats
    fonts: Fonts
    outline: Outline
    sections: _Sections = field(default_factory=_Sections)

    def compose(self, raw: RawPage, page: Any) -> Page:
        """The page as it will be stored. `page` is PyMuPDF's, where there may be ruled tables on it."""
        kept = self.stats.headers_footers.without(raw)
        tables = find_ruled_tables(page, kept, self.stats.vocabulary) if page is not None and not raw.rotated else []
        drafts = self._drafts(kept, tables)
        pieces = _with_tables(drafts, tables)
        levels = _heading_levels(
            [piece if isinstance(piece, Draft) else Draft("table", ()) for piece in pieces],
            self.fonts,
            self.outline.by_page.get(raw.number, []),
        )
        blocks = self._blocks(pieces, levels, raw)
        path, parent = self._section(raw.number, blocks)
        empty = Page(raw.number, "", raw.label, path, parent, painted=raw.painted)
        return with_blocks(empty, _with_pictures(blocks, raw))

    def _drafts(self, lines: list[Line], tables: list[RuledTable]) -> list[Draft]:
        taken = frozenset().union(*(table.lines for table in tables)) if tables else frozenset[int]()
        drafts: list[Draft] = []
        for region in reading_order([line for line in lines if id(line) not in taken]):
            for part in _parted(region, tables):
                drafts += draft_region(make_rows(part), code=self.fonts.code)
        return _joined(drafts, self.stats.vocabulary)

    def _blocks(self, pieces: list[Piece], levels: dict[int, int], raw: RawPage) -> list[Block]:
        def place(box: Box) -> Box:
            return fractions(box, raw.width, raw.height)

        placed = [
            piece if isinstance(piece, Draft) else Block("table", piece.markdown, place(piece.box)) for piece in pieces
        ]
        return _swept(write_blocks(placed, lambda drafts: place(_box_of(drafts)), self.stats.vocabulary, levels))

    def _section(self, number: int, blocks: list[Block]) -> tuple[str, str]:
        headings: list[tuple[bool, int, str]] = []
        leading = True
        for block in blocks:
            if block.kind == "heading":
                headings.append((leading, block.level, block.text[block.level + 1 :]))
            else:
                leading = False
        return _advance(self.sections, self.outline, number, headings)


def write_blocks(
    pieces: Sequence[Draft | Block],
    box_of: Callable[[list[Draft]], Box],
    vocabulary: Vocabulary,
    levels: Mapping[int, int] | None = None,
) -> list[Block]:
    """Write drafts as blocks, a run of list items as one; blocks among them stay. `levels`: of those that are headings,
    by their index."""
    levels = levels or {}
    blocks: list[Block] = []
    for is_list, run in groupby(enumerate(pieces), lambda each: _is_item(each[1]) and each[0] not in levels):
        group = list(run)
        if is_list:
            items = [piece for _, piece in group if isinstance(piece, Draft)]
            blocks.append(_list_block(items, box_of(items), vocabulary))
            continue
        for index, piece in group:
            blocks.append(
                piece if isinstance(piece, Block) else _block(piece, levels.get(index, 0), box_of([piece]), vocabulary)
            )
    return [block for block in blocks if block.text]


def _is_item(piece: Draft | Block) -> bool:
    return isinstance(piece, Draft) and piece.kind == "list"


def _block(draft: Draft, level: int, box: Box, vocabulary: Vocabulary) -> Block:
    if draft.kind == "code" and not level:
        return _code_block(draft, box)
    if draft.kind == "table" and not level:  # unruled rows: each a line, so that a label and its figures stay together
        return Block("table", "\n".join(_shrink_leaders(row.text) for row in draft.rows), box)
    text = _text_of(draft, vocabulary)
    if level:
        return Block("heading", f"{'#' * level} {text}", box, level)
    # What is no heading on the page must not turn into one here.
    return Block("paragraph", f"\\{text}" if _LIKE_HEADING.match(text) else text, box)


def with_blocks(page: Page, blocks: Sequence[Block]) -> Page:
    """Return a page with these blocks, and what is told of them."""
    kinds = Counter(block.kind for block in blocks)
    return replace(
        page,
        markdown="\n\n".join(block.text for block in blocks if block.text),
        num_headings=kinds["heading"],
        num_tables=kinds["table"],
        num_pictures=kinds["picture"],
        blocks=tuple(blocks),
    )


def _parted(region: Region, tables: list[RuledTable]) -> list[Region]:
    """A region cut where a ruled table was taken out of it, so that nothing joins across the gap."""
    parts: list[Region] = [region]
    for table in tables:
        top = table.box[1]
        parts = [
            part
            for whole in parts
            for part in ([ln for ln in whole if ln.middle < top], [ln for ln in whole if ln.middle >= top])
            if part
        ]
    return parts


def _with_tables(drafts: list[Draft], tables: list[RuledTable]) -> list[Piece]:
    """Ruled tables put where they stand: before the first draft beside or under them that begins lower."""
    pieces: list[Piece] = list(drafts)
    for table in tables:
        x0, y0, x1, _ = table.box
        at = len(pieces)
        for index, piece in enumerate(pieces):
            box = _box_of([piece]) if isinstance(piece, Draft) else piece.box
            if box[1] >= y0 and box[0] < x1 and box[2] > x0:
                at = index
                break
        pieces.insert(at, table)
    return pieces


def _joined(drafts: list[Draft], vocabulary: Vocabulary) -> list[Draft]:
    """A word cut at the foot of a column goes on at the head of the next: those two drafts are one."""
    joined: list[Draft] = []
    for draft in drafts:
        last = joined[-1] if joined else None
        if last and draft.kind == "paragraph" and _cut_between(last, draft, vocabulary):
            joined[-1] = Draft(last.kind, last.rows + draft.rows, last.space_above)
        else:
            joined.append(draft)
    return joined


def _cut_between(last: Draft, draft: Draft, vocabulary: Vocabulary) -> bool:
    """Whether one word runs from draft to draft: what is put together must be a word seen whole elsewhere."""
    end, start = last.rows[-1], draft.rows[0]
    if last.kind not in ("paragraph", "list") or end.text[-1] not in HYPHENS or abs(end.size - start.size) > 0.5:
        return False
    return vocabulary.knows(end.text.split()[-1][:-1], start.text.split()[0].rstrip(".,;:!?)"))


def _swept(blocks: list[Block]) -> list[Block]:
    """Crumbs, such as the labels of a map or the stacked heads of a table, gathered to one block of short lines."""
    swept: list[Block] = []
    for is_crumb, run in groupby(blocks, key=_is_crumb):
        group = list(run)
        if is_crumb and len(group) >= 3:
            swept.append(Block("paragraph", _gathered(group), union([block.box for block in group])))
        else:
            swept += group
    return swept


def _gathered(crumbs: list[Block]) -> str:
    """Short lines, one under the other; single characters beside each other."""
    lines: list[str] = []
    for tiny, run in groupby(crumbs, key=lambda block: len(block.text) <= 2):
        texts = [block.text for block in run]
        lines += [" ".join(texts)] if tiny else texts
    return "\n".join(lines)


def _is_crumb(block: Block) -> bool:
    text = block.text
    return block.kind == "paragraph" and len(text) <= 24 and (len(text) <= 2 or text[-1] not in ".!?")


def _with_pictures(blocks: list[Block], raw: RawPage) -> list[Block]:
    placed = list(blocks)
    for picture in raw.pictures:
        box = fractions(picture, raw.width, raw.height)
        at = next((i for i, block in enumerate(placed) if block.box[1] > box[1]), len(placed))
        placed.insert(at, Block("picture", "", box))
    return placed


def _box_of(drafts: list[Draft]) -> Box:
    """The box around drafts, in points."""
    return union([(row.x0, row.y0, row.x1, row.y1) for draft in drafts for row in draft.rows])


def _text_of(draft: Draft, vocabulary: Vocabulary) -> str:
    return _shrink_leaders(join_lines((row.text for row in draft.rows), vocabulary))


def _shrink_leaders(text: str) -> str:
    """Dot leaders and rules made of characters, cut to three: they say nothing and cost tokens."""
    return _LEADERS.sub(r"\1\1\1", text)


def _list_block(drafts: list[Draft], box: Box, vocabulary: Vocabulary) -> Block:
    """A run of list items, indented by where they stand."""
    size = max(drafts[0].rows[0].size, 1.0)
    edges: list[float] = []
    for x0 in sorted({draft.rows[0].x0 for draft in drafts}):
        if not edges or x0 > edges[-1] + 0.8 * size:
            edges.append(x0)
    items = []
    for draft in drafts:
        depth = max(index for index, edge in enumerate(edges) if edge <= draft.rows[0].x0)
        items.append("  " * min(depth, 3) + _item_text(_text_of(draft, vocabulary)))
    return Block("list", "\n".join(items), box)


def _item_text(text: str) -> str:
    marker = marker_of(text)
    if marker[:1].isdigit():
        return text
    if marker[:1].isalpha() or marker[:1] == "(":
        return f"- {text}"
    return f"- {text[len(marker) :]}"


def _code_block(draft: Draft, box: Box) -> Block:
    """Monospaced rows, fenced, with the indentation they have on the page."""
    rows = draft.rows
    widths = [(line.x1 - line.x0) / len(line.text) for row in rows for line in row.lines if line.x1 > line.x0]
    _advance = max(median(widths), 0.5) if widths else 5.0
    left = min(row.x0 for row in rows)
    steps = [b.middle - a.middle for a, b in pairwise(rows)]
    usual = median(steps) if steps else 0.0
    lines: list[str] = []
    for index, row in enumerate(rows):
        if index and steps[index - 1] > 1.7 * usual > 0:
            lines.append("")
        lines.append(_code_line(row, left, _advance))
    text = "\n".join(lines)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return Block("code", f"{fence}\n{text}\n{fence}", box)


def _code_line(row: Row, left: float, _advance: float) -> str:
    text = ""
    for line in row.lines:
        column = min(round((line.x0 - left) / _advance), 200)
        text += " " * max(column - len(text), 1 if text else 0) + line.text
    return text
