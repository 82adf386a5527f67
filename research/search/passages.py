"""The passages of pages: which of their units fit a question, and where on the page they stand.

    score = words + 0.6 · words of its headings alone + 0.25 · cosine + 0.4 if it has a number that is asked for
            + label, if it is a row that is called what the question asks for

`words` is the share of the question's weight that stands in the passage, without the name of the document it is of.
Words of the table's header and of the heading above count, but less than its own. `cosine` is that of the chunk around
it, or of a line of OCR in it; without an encoder it is nothing. Vectors of single units cost as much as the whole
search and bring nothing measurable here; a picture is marked by them (`refine`).

A passage is one unit or several that follow each other, up to 300 characters: a label with its value, rows of a table,
a question with its answer. Measured on the pages of mmlongbench-dev that hold the answer (`make bench ONLY=quotes`):
it stands in one of the three best passages of .60, and with vectors of units in no more.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from research.boxes import Box, rounded, union
from research.context.sections import section_path
from research.models import Passage
from research.search.numbers_asked import asks_for_number
from research.store.fulltext.analyzer import analyze
from research.units import Unit, values_of

if TYPE_CHECKING:
    from research.store.catalog.vectors import ComparedChunk

_MOST = 3  # passages a page
_LOOKED_AT = 6  # units of a page, the best by themselves, that a passage is made around
_AS_GOOD = 0.35  # of the best passage's score, for a further one to be named
_LONGEST = 300  # characters of a passage of several units
_CONTEXT = 0.6
_NUMBER = 0.4
_HEADING = 0.15  # what a heading loses: it names what is asked for, and says nothing of it
_ROUGH = 0.25  # what a chunk's cosine says less than a unit's own: the best of a chunk is better than the rest of it
BEST = 2.65  # the most that a passage can score: its words, cosine, number and label
_OPENS = ":?：？"  # what ends so is answered by what follows
_DIGITS = 4  # of a box
_LABEL = 1.0
_SAID = 0.25  # of a row's label, squared, from which on the row stands alone
_COSINE = 0.25
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_ASKED_YEAR = re.compile(r"(?:\b|FY ?)((?:1[89]|20)\d\d)\b|\bFY ?(\d\d)\b")
# What is left of something is another thing, and full-text search leaves such words out.
_REST = re.compile(r"\b(?:others?|non|excluding|übrige|sonstige|autres?|otros?|otras?|altri|altre|overige)\b", re.I)
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A visible piece of a page with the cosine of the vector that holds it: a block of a chunk, or a line of OCR."""

    text: str
    box: Box
    cosine: float


class WantedWords:
    """The words of a question with their weights, found in texts as full-text search compares them. `lines`: what the
    rows of a table are called that answer it, in other words than its own."""

    def __init__(
        self,
        question: str,
        weights: Mapping[str, float],
        lines: Iterable[str] = (),
        names: Collection[str] = (),
    ) -> None:
        self.weights = {word: weight for word, weight in weights.items() if word not in names} or weights
        weights = self.weights
        self.number = asks_for_number(question)
        self.years = frozenset(whole or f"20{short}" for whole, short in _ASKED_YEAR.findall(question))
        said = {word: weight for word, weight in weights.items() if not word.isdigit()}
        self._labels = [said, *(dict.fromkeys(analyze(line), 0.0) for line in dict.fromkeys(lines))]
        self._usual = sum(weights.values()) / max(1, len(weights))
        self._rest = _REST.search(question) is not None
        self._rows: dict[str, float] = {}
        self.given = frozenset(_NUMBERS.findall(question))  # numbers that are no answer
        self._known: dict[str, frozenset[str]] = {}
        self._pattern = _beginnings(weights) if all(word.isascii() for word in weights) else None

    def find(self, text: str) -> Iterator[tuple[int, frozenset[str]]]:
        """Where in a text words of the question stand, and which. Scripts without blanks are analysed line by line."""
        if self._pattern is None:
            for line in re.finditer(r"[^\n]+", text):
                if found := frozenset(analyze(line.group())) & self.weights.keys():
                    yield line.start(), found
            return
        for match in self._pattern.finditer(text):
            word = match.group()
            if word not in self._known:
                self._known[word] = frozenset(analyze(word)) & self.weights.keys()
            if self._known[word]:
                yield match.start(), self._known[word]

    def label(self, row: str) -> float:
        """How well a row's label is what the question asks for, 0 to 1: all of its words are said, and more than one.

        What counts is the share of the label that the question says, so that "Total current liabilities" comes before
        "Other current liabilities", and that before a sentence about them.
        """
        label, bar, _ = row.strip("| ").partition(" | ")
        if not bar or not values_of(row):
            return 0.0
        if label not in self._rows:
            stems = analyze(label)
            less = 0.5 if _REST.search(label) and not self._rest else 1.0
            self._rows[label] = less * max(self._said(stems, words) for words in self._labels)
        return self._rows[label]

    def _said(self, label: Sequence[str], words: Mapping[str, float]) -> float:
        """How much of a label these words say: the square of its share, and half of that for a single word."""
        weights = {word: words.get(word, 0.0) or self._usual for word in label}
        said = [weight for word, weight in weights.items() if word in words]
        share = sum(said) / (sum(weights.values()) or 1.0)
        return share**2 * min(1.0, len(said) / 2)


def _beginnings(words: Mapping[str, float]) -> re.Pattern[str]:
    """Finds the words that may be meant: stems begin the words they stand for, but for a last letter ("happi")."""
    starts = []
    for word in sorted(words, key=len, reverse=True):
        start = word[:-1] if len(word) > 3 and word.endswith("i") else word
        grouped = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",?", start) if start.isdigit() else re.escape(start)
        starts.append(grouped)
    if not starts:
        return re.compile(r"(?!)")
    return re.compile(rf"\b(?:{'|'.join(starts)})[\w.,'’]*", re.IGNORECASE)


class PageEvidence:
    """A page's units and what speaks for each of them."""

    def __init__(
        self,
        text: str,
        units: list[Unit],
        wanted: WantedWords,
        chunks: Sequence[ComparedChunk] = (),
        lines: Sequence[Piece] = (),
    ) -> None:
        self.text = text
        self.units = units
        self._starts = [unit.start for unit in self.units]
        self._words: list[frozenset[str]] = [frozenset()] * len(self.units)
        for place, found in wanted.find(text):
            if (index := self._unit_at(place)) is not None:
                self._words[index] |= found
        whole = sum(wanted.weights.values()) or 1.0
        self._weights = {word: weight / whole for word, weight in wanted.weights.items()}
        self._wanted = wanted
        self._blocks = list(_blocks(text, chunks))
        self._lines = list(_lines(text, lines))
        self._cosines = self._rough(chunks)
        self._context = self._above()
        self._labels = [self._label(unit) if unit.kind == "row" else 0.0 for unit in units]

    def refine(self, cosines: Sequence[float]) -> None:
        """The units' own cosines, in place of what their chunks have; they tell units apart, and so weigh in full."""
        self._cosines = [cosine / _COSINE for cosine in cosines]

    def texts(self) -> list[str]:
        """Of every unit, for those who embed them all."""
        return [self.text[unit.start : unit.end] for unit in self.units]

    def passages(self, section: str = "") -> tuple[Passage, ...]:
        """The best passages that do not overlap, best first. `section`: the headings in force where the page begins."""
        said = [index for index, unit in enumerate(self.units) if unit.kind != "heading"] or range(len(self.units))
        alone = sorted(said, key=lambda index: -self._score(index, index))[:_LOOKED_AT]
        # Of equals the longest: what stands beside the match is as likely to answer, and the last, for that follows it.
        windows: list[tuple[float, int, int]] = []
        for first, last in self._windows(set(alone)):
            windows.append((round(self._score(first, last), 6), first, last))
        scored = sorted(windows, key=lambda entry: (-entry[0], entry[1] - entry[2], -entry[1]))
        chosen: list[tuple[int, int]] = []
        found: list[Passage] = []
        for score, first, last in scored:
            if len(found) == _MOST or score <= 0 or score < _AS_GOOD * scored[0][0]:
                break
            if all(last < begin or first > end for begin, end in chosen):
                chosen.append((first, last))
                start, end = self.units[first].start, self.units[last].end
                share = round(min(1.0, score / BEST), 4)
                path = section_path(self.text, self.units, start, section)
                found.append(Passage(self.text[start:end], share, self._box(start, end), start, end, path))
        return tuple(found)

    def _windows(self, around: set[int]) -> Iterator[tuple[int, int]]:
        """First and last unit of whatever may be a passage and has one of these units in it."""
        units, opens = self.units, self._opening()
        for first, unit in enumerate(units):
            ends = [first]
            # A row that the question says is an answer by itself.
            alone = unit.kind == "heading" or self._labels[first] > _SAID
            while not alone and ends[-1] + 1 < len(units):
                last, following = ends[-1], units[ends[-1] + 1]
                joined = following.block == unit.block or opens[last]
                if following.kind == "heading" or not joined or following.end - unit.start > _LONGEST:
                    break
                ends.append(last + 1)
            if around.isdisjoint(range(first, ends[-1] + 2)):
                continue
            if len(ends) == 1 and opens[first]:
                ends.append(first + 1)
            # What announces something is no end, unless nothing else is.
            for last in [last for last in ends if not opens[last]] or ends[-1:]:
                if not around.isdisjoint(range(first, last + 1)):
                    yield first, last

    def _opening(self) -> list[bool]:
        """Of each unit whether it is answered by the next one: a question, or what ends with a colon."""
        found = []
        for unit, following in zip_longest(self.units, self.units[1:]):
            answered = unit.kind != "heading" and following is not None and following.kind != "heading"
            found.append(answered and self.text[unit.end - 1] in _OPENS)
        return found

    def _score(self, first: int, last: int) -> float:
        own = frozenset[str]().union(*self._words[first : last + 1])
        weight = self._weights.__getitem__
        score = sum(map(weight, own)) + _CONTEXT * sum(map(weight, self._context[first] - own))
        score += _COSINE * max(0.0, *self._cosines[first : last + 1])
        score += _LABEL * max(self._labels[first : last + 1])
        unit = self.units[first]
        if self._wanted.number:
            numbers = set(_NUMBERS.findall(self.text, unit.start, self.units[last].end))
            score += _NUMBER * (not numbers <= self._wanted.given)
        return score - _HEADING * (unit.kind == "heading")

    def _label(self, row: Unit) -> float:
        """How well a row is what is asked for; half as well, if its table is of other years."""
        label = self._wanted.label(self.text[row.start : row.end])
        if label and self._wanted.years:
            spans = [span for span in (row.title, row.header, (row.start, row.end)) if span is not None]
            years = {year for start, end in spans for year in _YEAR.findall(self.text, start, end)}
            if years and years.isdisjoint(self._wanted.years):
                return label / 2
        return label

    def _above(self) -> list[frozenset[str]]:
        """Of each unit the question's words in the heading above it and in its table's header."""
        found: list[frozenset[str]] = []
        heading: frozenset[str] = frozenset()
        for index, unit in enumerate(self.units):
            if unit.kind == "heading":
                heading = self._words[index]
            header = unit.header
            rows = range(0)
            if header is not None:
                rows = range(bisect_right(self._starts, header[0]) - 1, bisect_right(self._starts, header[1] - 1))
            found.append(heading.union(*(self._words[row] for row in rows)))
        return found

    def _rough(self, chunks: Sequence[ComparedChunk]) -> list[float]:
        """Of each unit the cosine of its chunk, or of a line in it that has its own."""
        least = min((chunk.cosine for chunk in chunks), default=0.0) - _ROUGH
        found = [least] * len(self.units)
        for places, less in ((self._blocks, _ROUGH), (self._lines, 0.0)):
            for place in places:
                first = max(0, bisect_right(self._starts, place.start) - 1)
                for index in range(first, bisect_right(self._starts, place.end - 1)):
                    found[index] = max(found[index], place.cosine - less)
        return found

    def _unit_at(self, place: int) -> int | None:
        index = bisect_right(self._starts, place) - 1
        return index if index >= 0 and place < self.units[index].end else None

    def _box(self, start: int, end: int) -> Box | None:
        for places in (self._lines, self._blocks):  # a line's box is the closer one
            boxes = [place.box for place in places if place.start < end and start < place.end]
            if boxes:
                return rounded(union(boxes), _DIGITS)
        return None


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    box: Box
    cosine: float


def _blocks(text: str, chunks: Sequence[ComparedChunk]) -> Iterator[_Place]:
    """The visible pieces of chunks, where they stand in the page's text."""
    for chunk in chunks:
        at = text.find(chunk.text)
        ends = [*(region.start for region in chunk.regions[1:]), len(chunk.text)]
        for region, end in zip(chunk.regions, ends, strict=True):
            piece = chunk.text[region.start : end].strip()
            start = text.find(piece, at + region.start if at >= 0 else 0) if piece else -1
            if start >= 0:
                yield _Place(start, start + len(piece), region.box, chunk.cosine)


def _lines(text: str, lines: Sequence[Piece]) -> Iterator[_Place]:
    for line in lines:
        start = text.find(line.text) if line.text else -1
        if start >= 0:
            yield _Place(start, start + len(line.text), line.box, line.cosine)
