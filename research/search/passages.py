"""What on a page answers a question: its units, scored by the words, numbers and years that are asked for."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from research.context import section_path
from research.models import Item, Passage
from research.records import Box, rounded, union
from research.store import analyze, analyze_name
from research.units import Unit, is_caption, values_of

if TYPE_CHECKING:
    from research.store import ComparedChunk

_PHRASES = re.compile(
    "|".join(tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["asks_for_number"]), re.I
)
YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_ASKED_YEAR = re.compile(r"(?:\b|FY ?)((?:1[89]|20)\d\d)\b|\bFY ?(\d\d)\b")


def years_asked(question: str) -> frozenset[str]:
    """The years that a question names, as 2022, FY2022 or FY22."""
    return frozenset(whole or f"20{short}" for whole, short in _ASKED_YEAR.findall(question))


def asks_for_number(question: str) -> bool:
    return _PHRASES.search(question) is not None


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
_NUMBERED = 0.5  # for the row of the year, or of the error number, that is asked for
_SAID = 0.25  # of a row's label, squared, from which on the row stands alone
_COSINE = 0.25
_UNCOVERED = 0.4  # of a label, where nothing else of the question stands in the row or above it
_TITLE = 0.5  # for a row whose table has a known name of what is asked for
_LEADER = re.compile(r"\.(?: ?\.){2,} ?\d")
_LISTED = 6  # rows of a table of contents, at least
_MOST_PAGES = 9999
# What is left of something is another thing, and full-text search leaves such words out.
_REST = re.compile(r"\b(?:others?|non|excluding|übrige|sonstige|autres?|otros?|otras?|altri|altre|overige)\b", re.I)
_WHY = re.compile(r"\b(?:why|reasons?|explain\w*|what (?:drove|drives|caused|led))\b", re.I)  # no row says it
# Tables of a part of the company, beside those of all of it.
_PART = re.compile(r"\b(?:obligors?|guarant(?:or|ee)s?|parent company|pro forma|discontinued|held for sale)\b", re.I)
_ASIDE = re.compile(r"\([^()]*\)")  # "(millions)", "(note 5)": not what a row is called
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
        self._names = frozenset(names)
        weights = self.weights
        self._why = _WHY.search(question) is not None
        self._lines = [frozenset(analyze(line)) for line in dict.fromkeys(() if self._why else lines)]
        self.number = bool(self._lines) or asks_for_number(question)
        self.years = years_asked(question)
        self.has_lines = bool(self._lines)
        said = {word: weight for word, weight in weights.items() if not word.isdigit()}
        self._said_words = said
        self._usual = sum(weights.values()) / max(1, len(weights))
        self._rest = _REST.search(question) is not None
        self.of_a_part = _PART.search(question) is not None
        self._rows: dict[str, tuple[float, float]] = {}
        self.given = frozenset(_NUMBERS.findall(question))  # numbers that are no answer
        self._numbered = self.years | {number for number in self.given if len(number) > 1}
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

    def label(self, row: str) -> tuple[float, float]:
        """How well a row's label is what the question asks for, 0 to 1: by the words it says, and by the known names
        of what it asks for.

        What counts is the share of the label that the question says, so that "Total current liabilities" comes before
        "Other current liabilities", and that before a sentence about them.
        """
        label, bar, _ = row.strip("| ").partition(" | ")
        if bar and label in self._numbered:
            return _NUMBERED, 0.0
        if not bar or self._why or not values_of(row):
            return 0.0, 0.0
        if label not in self._rows:
            stems = [stem for stem in analyze(_ASIDE.sub(" ", label)) if stem not in self._names] or analyze(label)
            less = 0.5 if _REST.search(label) and not self._rest else 1.0
            # A row with a known name has all of its words: "purchases of equipment" is not "equipment".
            known = (_share(stems, line) * _share(line, stems) ** 2 for line in self._lines)
            self._rows[label] = less * self._said(stems), less * max(known, default=0.0)
        return self._rows[label]

    def is_about(self, title: str) -> bool:
        """Whether the title of a table has a known name of what is asked for: "Capital expenditures" for capex."""
        words = frozenset(analyze(title)) if self._lines else frozenset[str]()
        return any(line <= words for line in self._lines if line)

    def _said(self, label: Sequence[str]) -> float:
        """How much of a label the question says: the square of its share, and a quarter of that for a single word."""
        weights = {word: self._said_words.get(word, 0.0) or self._usual for word in label}
        said = [weight for word, weight in weights.items() if word in self._said_words]
        share = sum(said) / (sum(weights.values()) or 1.0)
        return (share * min(1.0, len(said) / 2)) ** 2


def _share(words: Collection[str], of: Collection[str]) -> float:
    return len(set(words) & set(of)) / len(set(words)) if words else 0.0


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
        self._listing = _listing(text, units)
        self._parts = {index for index, unit in enumerate(units) if unit.kind == "line" and unit.header is not None}
        self._labels = [0.0] * len(units)
        called: dict[str, list[int]] = {}
        for index, unit in enumerate(units):
            # Most rows say no word of the question, and need no look at what they are called.
            if unit.kind == "row" and (self._words[index] or wanted.has_lines) and index not in self._listing:
                self._labels[index] = self._label(index)
                called.setdefault(_label(text, unit), []).append(index)
        for rows in called.values():
            for index in rows:  # of rows that are all called so, the label alone does not tell which is meant
                self._labels[index] /= len(rows) ** 0.5
        headers = {unit.header for unit in units if unit.kind == "row" and unit.header is not None}
        self._naming = {index for start, end in headers for index in self._between(start, end)}

    def refine(self, cosines: Sequence[float]) -> None:
        """The units' own cosines, in place of what their chunks have; they tell units apart, and so weigh in full."""
        self._cosines = [cosine / _COSINE for cosine in cosines]

    def texts(self) -> list[str]:
        """Of every unit, for those who embed them all."""
        return [self.text[unit.start : unit.end] for unit in self.units]

    def passages(self, section: str = "") -> tuple[Passage, ...]:
        """The best passages that do not overlap, best first. `section`: the headings in force where the page begins."""
        said = [index for index in range(len(self.units)) if not self._only_names(index)] or range(len(self.units))
        alone = sorted(said, key=lambda index: -round(self._score(index, index), 6))[:_LOOKED_AT]
        # Of equals the longest: what stands beside the match is as likely to answer, and the last, for that follows it.
        windows: list[tuple[float, int, int]] = []
        for first, last in self._windows(set(alone)):
            windows.append((round(self._score(first, last), 6), first, last))
        scored = sorted(windows, key=self._order)
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

    def _order(self, window: tuple[float, int, int]) -> tuple[float, int, int]:
        """Best first; of equals the shortest where a row with values is meant, for the next ones say something else."""
        score, first, last = window
        row = self.units[next((index for index in range(first, last + 1) if index not in self._naming), first)]
        text = self.text[row.start : row.end]
        has_values = row.kind == "row" and " | " in text and bool(values_of(text))
        return -score, last - first if has_values else first - last, -first

    def label_of(self, passage: Passage) -> float:
        """How well a row in it is called what the question asks for; 0 without a row."""
        return max((self._labels[index] for index in self._between(passage.start, passage.end)), default=0.0)

    def _only_names(self, index: int) -> bool:
        """Whether a unit names what others say: a heading, the header of a table, an entry of a table of contents."""
        return self.units[index].kind == "heading" or index in self._listing or index in self._naming

    def _between(self, start: int, end: int) -> range:
        """The units of a span that begins with one."""
        return range(max(0, bisect_right(self._starts, start) - 1), bisect_right(self._starts, end - 1))

    def _windows(self, around: set[int]) -> Iterator[tuple[int, int]]:
        """First and last unit of whatever may be a passage and has one of these units in it."""
        units, opens, places = self.units, self._opening(), sorted(around)
        for first, unit in enumerate(units[: places[-1] + 1] if places else ()):
            nearest = places[bisect_left(places, first)]
            if nearest > first + 1 and units[nearest - 1].end - unit.start > _LONGEST:
                continue  # nothing from here reaches one
            ends = [first]
            # A row that the question says is an answer by itself.
            alone = unit.kind == "heading" or self._labels[first] > _SAID or first in self._listing
            while not alone and ends[-1] + 1 < len(units):
                last, following = ends[-1], units[ends[-1] + 1]
                joined = following.block == unit.block or opens[last]
                apart = following.kind == "heading" or self._labels[last + 1] > _SAID or last + 1 in self._listing
                apart = apart or (last + 1 in self._parts and last not in self._parts)
                if apart or not joined or following.end - unit.start > _LONGEST:
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
        own, above, cosine, label = self._words[first], self._context[first], self._cosines[first], self._labels[first]
        if last > first:
            own = own.union(*self._words[first + 1 : last + 1])
            cosine, label = max(self._cosines[first : last + 1]), max(self._labels[first : last + 1])
        weight = self._weights.__getitem__
        score = sum(map(weight, own)) + _CONTEXT * sum(map(weight, above - own))
        score += _COSINE * max(0.0, cosine) + _LABEL * label
        unit = self.units[first]
        if self._wanted.number:
            numbers = set(_NUMBERS.findall(self.text, unit.start, self.units[last].end))
            score += _NUMBER * (not numbers <= self._wanted.given)
        # Of a table the rows say it, under a caption that has the question's words.
        names_only = unit.kind == "heading" or (first == last and self._wanted.number and is_caption(self.text, unit))
        return score - _HEADING * names_only

    def _label(self, index: int) -> float:
        """How well a row is what is asked for; half as well, if its table is of other years or of a part of it all."""
        row = self.units[index]
        said, known = self._wanted.label(self.text[row.start : row.end])
        if said:
            covered = sum(map(self._weights.__getitem__, self._words[index] | self._context[index]))
            said *= _UNCOVERED + (1 - _UNCOVERED) * covered
            if row.title is not None and self._wanted.is_about(self.text[slice(*row.title)]):
                said += _TITLE
        label = max(said, known)
        if row.title is not None and not self._wanted.of_a_part and _PART.search(self.text, *row.title):
            label /= 2
        if label and self._wanted.years:
            spans = [span for span in (row.title, row.header, (row.start, row.end)) if span is not None]
            years = {year for start, end in spans for year in YEAR.findall(self.text, start, end)}
            if years and years.isdisjoint(self._wanted.years):
                return label / 2
        return label

    def _above(self) -> list[frozenset[str]]:
        """Of each unit the question's words in the heading above it, in its table's title and header, and in the line
        that names its part of the table."""
        found: list[frozenset[str]] = []
        heading = part = nothing = frozenset[str]()
        said: dict[tuple[int, int] | None, frozenset[str]] = {
            None: nothing
        }  # by span, which the rows of a table have in common
        for index, unit in enumerate(self.units):
            if unit.kind == "heading":
                heading = self._words[index]
            if unit.kind != "row" or unit.header is None:
                part = nothing if unit.header is None else self._words[index]
            for span in (unit.title, unit.header):
                if span is not None and span not in said:
                    said[span] = nothing.union(*(self._words[index] for index in self._between(*span)))
            found.append(heading | part | said[unit.title] | said[unit.header])
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


def with_passages(question: str, item: Item) -> Item:
    """An item of any kind with the passages of its text, by words alone, each counting the same. Where it has none of
    the question's words, its beginning stands for it, below the header of its rows if they have one."""
    text, wanted = item.stored, WantedWords(question, dict.fromkeys(analyze_name(question), 1.0))
    spaced = item.text.replace("_", " ")  # the words of an identifier are words
    found = PageEvidence(spaced, text.units, wanted).passages()
    if not found and text.units:
        rows = [unit for unit in text.units if unit.kind == "row" and unit.header is not None] or text.units
        first = [unit for unit in rows if unit.block == rows[0].block]
        end = max(unit.end for unit in first if unit is first[0] or unit.end - first[0].start <= _LONGEST)
        found = (Passage("", 0.0, start=first[0].start, end=end),)
    passages = tuple(replace(each, text=item.text[each.start : each.end]) for each in found)
    return replace(item, passages=passages, structure=text)


def _label(text: str, row: Unit) -> str:
    return text[row.start : row.end].strip("| ").partition(" | ")[0]


def _listing(text: str, units: Sequence[Unit]) -> set[int]:
    """The entries of a table of contents or an index: dots that lead to numbers, or many rows whose only value is a
    page number that never falls."""
    found: set[int] = set()
    run: list[int] = []
    last = 0
    for index, unit in enumerate(units):
        if _LEADER.search(text, unit.start, unit.end):
            found.add(index)
        values = values_of(text[unit.start : unit.end]) if unit.kind == "row" else []
        page = int(values[0]) if len(values) == 1 and values[0].isascii() and values[0].isdigit() else 0
        if not last <= page <= _MOST_PAGES or not page:
            run = []
        last = page
        run = [*run, index] if page else []
        if len(run) >= _LISTED:
            found.update(run)
    return found


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
