"""What must be known of the whole document before a page can be written: words, font sizes, headers and footers.

Everything here is bounded: a document of thousands of pages costs no more than one of fifty.

Lines of a paragraph become one text: a word cut by a hyphen at a line's end is put together, a compound keeps it. The
document itself decides, by how it spells the word, or one of its forms, elsewhere. Where it does not say, three things
do: whether the word is a common one, whether this document cuts words at all (one set without hyphenation has only
compounds at its line ends), and whether both halves are words. Measured on 43 documents with 954 cuts whose answer is
known from elsewhere in them and was hidden: 98.5 % right.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from ingest.pdf.lines import Line, RawPage, same_row
from research.encoders import VOCABULARY
from research.governance import mark_of
from research.text import is_joined_script

HYPHENS = "\u2010\u2011-"  # the plain one last, so that it is no range in [ ]

_MAX_WORDS = 50_000
_MAX_CUTS = 5_000
_LONGEST_WORD = 80
_ENDING = 3  # letters in which two forms of one word may differ: -s, -ed, -ing, -en
_BEGINNING = 3  # letters of the second half that all its forms share
_WORD = re.compile(r"[^\W\d_]{2,}")
_COMPOUND = re.compile(rf"(?<![\w{HYPHENS}])[^\W\d_]+(?:[{HYPHENS}][^\W\d_]+)+(?![\w{HYPHENS}])")
_HYPHEN = re.compile(f"[{HYPHENS}]")
_HEAD = re.compile(rf"([^\W_]+)[{HYPHENS}]$")
_TAIL = re.compile(rf"([^\W\d_]+)([{HYPHENS}](?=[^\W\d_]))?")
# After these a hyphen is a suspended one: "short- and long-term", "Vor- und Nachteile".
_CONJUNCTIONS = frozenset("and or und oder bzw sowie et ou och eller og".split())  # noqa: SIM905 (reads better)


@dataclass(slots=True)
class Vocabulary:
    """How a document spells its words: whole, with a hyphen, and cut at line ends. Lines are added in their order."""

    words: Counter[str] = field(default_factory=Counter)
    compounds: Counter[str] = field(
        default_factory=Counter
    )  # each two neighbouring parts, "of-the" of state-of-the-art
    _cuts: Counter[tuple[str, str]] = field(default_factory=Counter)  # at line ends: what stands before and after
    _head: str = ""  # of a word that the line before may have cut
    _sorted: tuple[list[str], list[str]] | None = None
    _style: tuple[int, int] | None = None

    def add(self, lines: Iterable[str]) -> None:
        """Learn from the lines of a page. A line's first and last words may be halves; then they do not count."""
        words: list[str] = []
        compounds: list[str] = []
        for text in lines:
            lower = text.lower()
            if self._head and (tail := _TAIL.match(lower)) and len(self._cuts) < _MAX_CUTS:
                self._cuts[self._head, tail.group(1)] += 1
            cut = _HEAD.search(lower[-_LONGEST_WORD:]) if text and text[-1] in HYPHENS else None
            self._head = cut.group(1) if cut else ""
            words += _WORD.findall(lower)[0 if text[:1].isupper() else 1 : -1 if cut else None]
            if "-" in text or (not text.isascii() and _HYPHEN.search(text)):
                for compound in _COMPOUND.findall(lower):
                    compounds += (f"{a}-{b}" for a, b in pairwise(_HYPHEN.split(compound)))
        _count(self.words, words)
        _count(self.compounds, compounds)
        self._sorted = self._style = None

    def knows(self, head: str, tail: str) -> bool:
        """Whether the two are one word somewhere in the document, with or without a hyphen."""
        head, tail = head.lower(), tail.lower()
        return head + tail in self.words or f"{head}-{tail}" in self.compounds

    def keeps_hyphen(self, head: str, tail: str) -> bool:
        """Whether `head-tail` is a compound rather than one word cut in two."""
        head, tail = head.lower(), tail.lower()
        whole, hyphenated = self.words[head + tail], self.compounds[f"{head}-{tail}"]
        if not (whole or hyphenated):
            whole, hyphenated = self._forms(head, tail)
        if whole or hyphenated:
            return hyphenated >= whole or (hyphenated > 0 and self._cuts_no_words())
        if len(head) == 1:
            return True  # e-mail, x-ray: nobody cuts a word after its first letter
        if head + tail in _common_words():
            return False
        if self._cuts_no_words():
            return True
        if _forms_in(_common_sorted(), head, tail):
            return False
        # Of a document that tells nothing of its style; in one that cuts words, halves are common words too often.
        common = _common_words() if sum(self._line_ends()) < 2 else frozenset()
        return all(half in self.words or half in common for half in (head, tail))

    def joins_capitals(self, head: str, tail: str) -> bool:
        """Whether two halves in capitals are one word, and nothing else, elsewhere in the document."""
        if len(head) == 1 or not (head + tail).isupper():
            return False
        return self.words[(head + tail).lower()] > self.compounds[f"{head}-{tail}".lower()]

    def _forms(self, head: str, tail: str) -> tuple[int, int]:
        """How often other forms of the word occur, whole and with a hyphen: "part-time" tells about "part-timers"."""
        if self._sorted is None:
            self._sorted = sorted(self.words), sorted(self.compounds)
        words, compounds = self._sorted
        whole = sum(self.words[word] for word in _forms_in(words, head, tail))
        return whole, sum(self.compounds[word] for word in _forms_in(compounds, f"{head}-", tail))

    def _cuts_no_words(self) -> bool:
        """Whether the document is set without hyphenation, as far as its line ends tell."""
        cuts, compounds = self._line_ends()
        return compounds >= 2 and compounds >= 3 * cuts

    def _line_ends(self) -> tuple[int, int]:
        """How many of the hyphens at line ends are known to cut a word, and how many to be a compound's own."""
        if self._style is None:
            pairs = [(self.words[a + b], self.compounds[f"{a}-{b}"]) for a, b in self._cuts]
            cuts = sum(bool(whole) and not hyphenated for whole, hyphenated in pairs)
            self._style = cuts, sum(bool(hyphenated) and not whole for whole, hyphenated in pairs)
        return self._style


def join_lines(lines: Iterable[str], vocabulary: Vocabulary | None = None) -> str:
    """Join the lines of a paragraph. A word cut by a hyphen is put together again; a compound keeps it."""
    vocabulary = vocabulary or Vocabulary()
    parts: list[str] = []
    for line in lines:
        if not line:
            continue
        if parts:
            last = parts[-1]
            separator = _separator(last, line, vocabulary)
            if separator is None:
                parts[-1] = last[:-1]
            elif separator:
                parts.append(separator)
        parts.append(line)
    return "".join(parts)


def _separator(left: str, right: str, vocabulary: Vocabulary) -> str | None:
    """What stands between two lines: a space, nothing, or None where the hyphen before it goes as well."""
    before = left[-_LONGEST_WORD:]
    cut = _HEAD.search(before) if left[-1] in HYPHENS else None
    if not cut or not right[0].isalnum():
        return "" if is_joined_script(left[-1]) and is_joined_script(right[0]) else " "
    head, match = cut.group(1), _TAIL.match(right)
    in_compound = cut.start() > 0 and before[cut.start() - 1] in HYPHENS
    if match is None or not head.isalpha() or in_compound:
        return ""  # COVID-19, state-of-the-art
    tail, more = match.groups()
    if not tail[0].islower():
        return None if vocabulary.joins_capitals(head, tail) else ""
    if tail in _CONJUNCTIONS and not vocabulary.knows(head, tail):
        return " "
    if more:  # "over-" before "the-counter" is no half of a word, unless the two are one elsewhere: "fol-", "low-up"
        joined = (head + tail).lower()
        return None if joined in vocabulary.words or joined in _common_words() else ""
    return "" if vocabulary.keeps_hyphen(head, tail) else None


def _count(counter: Counter[str], words: list[str]) -> None:
    counter.update(words if len(counter) < _MAX_WORDS else [word for word in words if word in counter])


def _forms_in(ordered: list[str], head: str, tail: str) -> list[str]:
    """The words that differ from `head + tail` in their ending at most, of a sorted list."""
    if len(tail) < _BEGINNING:
        return []
    word, beginning = head + tail, head + tail[:_BEGINNING]
    found = []
    for index in range(bisect_left(ordered, beginning), len(ordered)):
        other = ordered[index]
        if not other.startswith(beginning):
            break
        shared = len(beginning)
        while shared < min(len(word), len(other)) and word[shared] == other[shared]:
            shared += 1
        if max(len(word), len(other)) - shared <= _ENDING:
            found.append(other)
    return found


@lru_cache(maxsize=1)
def _common_words() -> frozenset[str]:
    """Some 20,000 words that are common in English text: those that the shipped encoder knows as one token each."""
    with suppress(OSError):  # `ctx doctor` tells that it is missing; the document's own words must do then
        return frozenset(filter(str.isalpha, VOCABULARY.read_text("utf-8", "replace").splitlines()))
    return frozenset()


@lru_cache(maxsize=1)
def _common_sorted() -> list[str]:
    return sorted(_common_words())


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
    """Counts margin lines over the document, and leaves those out that run through it.

    Only lines in the page's margin bands are ever left out, and only when they repeat: the same text, digits aside, on
    a third of the odd or even pages, or a number that keeps pace with the page's own. A mark of classification
    ("Confidential") stays where it first stands, because it says something of the document.
    """

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

    def without(self, page: RawPage) -> list[Line]:
        """Return the page's lines without those that run through the document. Never leaves a page without text."""
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
            if key and (
                self._repeats(key) or ((band, row) in numbered and self.repeats[0][key] + self.repeats[1][key] > 1)
            ):
                repeated.add(id(line))
        for gone in (numbers | repeated, numbers):
            if kept := [line for line in page.lines if id(line) not in gone]:
                return kept
        return list(page.lines)

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
