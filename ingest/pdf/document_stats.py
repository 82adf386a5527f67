"""What must be known of the whole document before any page can be written: font sizes, words, headers and footers.

Everything here is bounded: a document of thousands of pages costs no more than one of fifty.

Running headers, footers and page numbers are noticed in the first pass and left out in the second. Only lines in the
page's margin bands are ever left out, and only when they repeat: the same text, digits aside, on a third of the odd or
even pages, or a number that keeps pace with the page's own. A mark of classification ("Confidential") stays where it
first stands, because it says something of the document.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from ingest.pdf.hyphens import Vocabulary
from ingest.pdf.lines import Line, RawPage, same_row
from research.governance import mark_of

_BAND = 0.12  # of the page's height, at the top and at the bottom
_ROWS = 4  # the outermost rows looked at in each band
_MAX_KEYS = 20_000
_DIGITS = re.compile(r"\d+")
# Roman numerals are spelt out in both cases: to ignore case would let in İ and ı, which are no ASCII letters in any.
_PAGE_NUMBER = re.compile(
    r"(?:page|p\.|pg\.?|seite|página|стр\.)?\s*[-–—|\[(]*\s*(?:[a-z]{1,3}-)?(?:(\d{1,5})|((?-i:[ivxlcIVXLC]{1,8})))\s*[-–—|\])]*"
    r"(?:\s*(?:of|/|von|de|sur)\s*\d{1,5})?",
    re.IGNORECASE,
)
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}

Key = tuple[str, str, int]

_MAX_SIZES = 2_000


def _margin_lines(page: RawPage) -> list[tuple[str, int, Line]]:
    """Lines of the margin bands as (band, row from the edge, line)."""
    found: list[tuple[str, int, Line]] = []
    lines = [line for line in page.lines if line.upright]
    top, bottom = page.height * _BAND, page.height * (1 - _BAND)
    head = sorted((ln for ln in lines if ln.middle < top), key=lambda ln: ln.middle)
    foot = sorted((ln for ln in lines if ln.middle > bottom), key=lambda ln: -ln.middle)
    for band, candidates in (("top", head), ("bottom", foot)):
        row, anchor = -1, None
        for line in candidates:
            if anchor is None or not same_row(anchor, line):
                row, anchor = row + 1, line
            if row >= _ROWS:
                break
            found.append((band, row, line))
    return found


def _last_alone(page: RawPage) -> Line | None:
    """The lowest line, if it stands alone in its row: short pages carry their number right under the text."""
    lines = [line for line in page.lines if line.upright]
    lowest = max(lines, key=lambda line: line.middle, default=None)
    if lowest is None or lowest.middle < 0.4 * page.height:
        return None
    return lowest if sum(same_row(lowest, line) for line in lines) == 1 else None


@dataclass(slots=True)
class HeadersFooters:
    """Counts margin lines over the document."""

    pages: list[int] = field(default_factory=lambda: [0, 0])  # even, odd
    repeats: tuple[Counter[Key], Counter[Key]] = field(default_factory=lambda: (Counter(), Counter()))
    offsets: Counter[int] = field(default_factory=Counter)  # printed number minus physical number
    marks: dict[str, int] = field(default_factory=dict)  # classification → the first page that says so in its margin

    def add(self, page: RawPage) -> None:
        parity = page.number % 2
        self.pages[parity] += 1
        keys: set[Key] = set()
        offsets: set[int] = set()
        for band, row, line in _margin_lines(page):
            key = _key(band, line)
            if key:
                keys.add(key)
                if mark := mark_of(line.text):
                    self.marks[mark] = min(page.number, self.marks.get(mark, page.number))
            value = _page_number(line.text)
            if value is not None and row < 2:
                offsets.add(value - page.number)
        lowest = _last_alone(page)
        value = _page_number(lowest.text) if lowest else None
        if value is not None:
            offsets.add(value - page.number)
        counter = self.repeats[parity]
        counter.update(key for key in keys if key in counter or len(counter) < _MAX_KEYS)
        self.offsets.update(o for o in offsets if o in self.offsets or len(self.offsets) < _MAX_KEYS)

    def split(self, page: RawPage) -> tuple[list[Line], list[Line]]:
        """The page's lines that stay, and those that run through the document. Never leaves a page without text."""
        margin = _margin_lines(page)
        numbers = {id(line) for _, row, line in margin if row < 2 and self._is_number(line, page)}
        lowest = _last_alone(page)
        if lowest and self._is_number(lowest, page):
            numbers.add(id(lowest))
        numbered = {(band, row) for band, row, line in margin if id(line) in numbers}
        repeated: set[int] = set()
        for band, row, line in margin:
            key = _key(band, line)
            if key and self.marks.get(mark_of(line.text)) == page.number:
                continue
            # What stands beside the page number is a header or footer even if it runs through one chapter only.
            if key and (self._repeats(key) or ((band, row) in numbered and self._seen(key) > 1)):
                repeated.add(id(line))
        for gone in (numbers | repeated, numbers):
            kept = [line for line in page.lines if id(line) not in gone]
            if kept:
                return kept, [line for line in page.lines if id(line) in gone]
        return list(page.lines), []

    def _seen(self, key: Key) -> int:
        return self.repeats[0][key] + self.repeats[1][key]

    def _repeats(self, key: Key) -> bool:
        even, odd = self.repeats[0][key], self.repeats[1][key]
        if even + odd < 3:
            return False
        return any(n >= 2 and n >= 0.3 * pages for n, pages in ((even, self.pages[0]), (odd, self.pages[1])))

    def _is_number(self, line: Line, page: RawPage) -> bool:
        value = _page_number(line.text)
        if value is None:
            return False
        if page.label and line.text.strip(" -–—").casefold() == page.label.casefold():
            return True
        offset = value - page.number
        return offset == 0 or self.offsets[offset] >= max(3, 0.1 * sum(self.pages))


def _key(band: str, line: Line) -> Key | None:
    folded = _DIGITS.sub("#", line.text.casefold())[:200]
    # Figures alone are no header: a table may reach into the margin.
    return (band, folded, round(line.size)) if any(map(str.isalpha, folded)) else None


def _page_number(text: str) -> int | None:
    match = _PAGE_NUMBER.fullmatch(text.strip()) if len(text) <= 40 else None
    if not match:
        return None
    if match.group(1):
        return int(match.group(1))
    return _roman(match.group(2).lower())


def _roman(text: str) -> int | None:
    total = 0
    for here, following in zip(text, [*text[1:], "i"], strict=True):
        value = _ROMAN[here]
        total += -value if value < _ROMAN[following] else value
    return total if 0 < total < 400 else None


@dataclass(slots=True)
class DocumentStats:
    """Gathers during the first pass, answers during the second."""

    characters: Counter[float] = field(default_factory=Counter)
    mono_characters: int = 0
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    headers_footers: HeadersFooters = field(default_factory=HeadersFooters)

    def add(self, page: RawPage) -> None:
        top, bottom = 0.08 * page.height, 0.92 * page.height
        for line in page.lines:
            if not line.upright:
                continue  # stamps along the margin
            size = round(line.size * 2) / 2  # scaled pages give the same font slightly different sizes
            if size in self.characters or len(self.characters) < _MAX_SIZES:
                # Headers and footers repeat on every page; they must not pass for the body.
                self.characters[size] += len(line.text) if top < line.middle < bottom else 1
            if line.mono:
                self.mono_characters += len(line.text)
        self.vocabulary.add(line.text for line in page.lines if line.upright)
        self.headers_footers.add(page)

    def fonts(self) -> Fonts:
        """The document's fonts, once all pages were added."""
        total = self.characters.total()
        body = max(self.characters.items(), key=lambda item: (item[1], -item[0]))[0] if total else 10.0
        larger = sorted((size for size in self.characters if size >= 1.08 * body), reverse=True)
        ranks: list[float] = []
        for size in larger:  # sizes within 4 % of each other are one rank
            if not ranks or size < 0.96 * ranks[-1]:
                ranks.append(size)
        return Fonts(body=body, ranks=tuple(ranks), code=self.mono_characters * 2 < total)


@dataclass(frozen=True, slots=True)
class Fonts:
    """The body size, the larger sizes in descending ranks, and whether monospace means code here."""

    body: float
    ranks: tuple[float, ...]
    code: bool

    def level(self, size: float) -> int:
        """Heading level of a size, 1 for the largest, at most 6."""
        if size < 1.08 * self.body:
            return min(6, len(self.ranks) + 1)
        for index, rank in enumerate(self.ranks):
            if size >= 0.96 * rank:
                return min(6, index + 1)
        return min(6, len(self.ranks) + 1)
