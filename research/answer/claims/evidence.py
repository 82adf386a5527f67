"""The sources that an answer cites, as windows: the units of a page that a sentence is compared with, alone and with
their neighbour, with the header of their table and the headings above them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from research.answer.claims.statement import Reading, Word, read
from research.answer.claims.vocabulary import SCALES, keys_of, stem
from research.answer.quotes import language_of
from research.answer.sentences import ENTRY
from research.store import analyze_name, normalize
from research.units import Structure, Unit

_LOOKED_AT = 8  # units, the best by the words they share, that windows are made around
_RARE, _COMMON = 3, 500  # the rarest words are always looked up, others only if they stand in so few units
_DEEPEST = 7  # marks of a heading, and one more
_CLAUSE = 4  # words of the shortest sentence that a semicolon ends; of less it is a list
_VERBATIM = 4  # words that can hardly stand in a source by chance
_RUN_IN = 40  # characters of a heading that stands in the line of its paragraph
_TITLE = 100  # characters of a first line that may be the page's title
_LONGEST = 1600  # characters of a unit that are read
_MOST_UNITS = 20_000  # of a source; a context of a million tokens has fewer
_MOST_ROWS = 200  # of a page, whose labels are compared
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_PROSE = frozenset({"sentence", "item"})
_SEMICOLON = re.compile(r";\s*(?=\S)")
_TERM = re.compile(r"[^\W_]+")
_SCALE = re.compile(r"(?<![\d ]) ?\b(thousands?|millions?|billions?|mn|bn)\b", re.IGNORECASE)
_FLAT = re.compile(r"[^\W_]+(?:[.,:]\d+)*|[%$€£]")


@dataclass(frozen=True, slots=True)
class Window:
    """One unit of a source or two neighbours: the keys of their words, and the stems of what stands above them."""

    source: int
    text: str
    parts: tuple[Reading, ...]  # a reading a unit
    is_prose: bool  # sentences and entries of lists, no labels with their values
    keys: frozenset[str]
    around: frozenset[str]
    named: frozenset[str]  # stems of the name of its file
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A value of a row, and what stands above it."""

    name: str
    terms: frozenset[str]
    text: str
    value: Reading


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its label as stems, its values, and the other rows of the page, as labels with all they say."""

    name: str
    label: frozenset[str]
    columns: tuple[Column, ...]
    others: tuple[tuple[frozenset[str], Reading], ...]
    scales: frozenset[float]
    scale: str = ""  # what its table says that its figures are in: "thousand"


class Source:
    """One cited text. It is read as far as sentences ask for it, and each unit once."""

    def __init__(self, number: int, structure: Structure, header: str = "") -> None:
        self.number = number
        self._structure, self._text = structure, structure.text
        self._named = frozenset(stem(word) for word in analyze_name(header))
        self._readings: dict[int, Reading] = {}

    @cached_property
    def units(self) -> list[Unit]:
        return [part for unit in self._structure.units[:_MOST_UNITS] for part in _clauses(self._text, unit)]

    @cached_property
    def _headings(self) -> list[int]:
        return [number for number, unit in enumerate(self.units) if unit.kind == "heading"]

    @cached_property
    def postings(self) -> dict[str, list[int]]:
        """Key of a word, or figure → the units that hold it."""
        found: dict[str, list[int]] = {}
        for number in range(len(self.units)):
            for key in self._terms(self._shown(number)):
                found.setdefault(key, []).append(number)
        return found

    @cached_property
    def keys(self) -> frozenset[str]:
        """Of all its words, and of the name of its file."""
        return frozenset(self.postings) | self._named

    @cached_property
    def whole(self) -> Reading:
        """All of it: for numbers and names that stand anywhere."""
        return read(self._text[: _LONGEST * 100])

    @cached_property
    def scales(self) -> frozenset[float]:
        """What the figures of its tables are to be multiplied with: "£ thousand", "in millions"."""
        return frozenset(SCALES[match[1].lower()] for match in _SCALE.finditer(self._text))

    @cached_property
    def flat(self) -> str:
        """Its words and figures, a blank between: what is said verbatim is a part of it."""
        return flat(self._text)

    def quotes(self, claim: str) -> bool:
        """Whether it holds a claim word for word, whatever the case, the punctuation and the marks of lists."""
        said = flat(claim)
        return said.count(" ") > _VERBATIM and said in self.flat

    @cached_property
    def flat_units(self) -> frozenset[str]:
        return frozenset(flat(self._text[unit.start : unit.end]) for unit in self._structure.units[:_MOST_UNITS])

    @cached_property
    def language(self) -> str:
        return language_of(self._text)

    def has_mark(self, mark: str) -> bool:
        """Whether it holds a mark of its own, given with the word before it: "shown[12]"."""
        return mark in self._unspaced

    @cached_property
    def _unspaced(self) -> str:
        return "".join(self._text.split())

    def may_join(self, first: int, last: int) -> bool:
        """Whether two units say something together. Two lines with figures do not: each has its own label."""
        pair = [self.units[first], self.units[last]]
        if first == last or all(unit.kind in _PROSE for unit in pair):
            return True
        if any(unit.kind == "heading" for unit in pair):
            return False  # what stands under it has its words anyway
        figures = [any(map(str.isdigit, self._text[unit.start : unit.end])) for unit in pair]
        return not all(figures) and not all(unit.kind == "row" for unit in pair)

    def window(self, first: int, last: int) -> Window:
        parts = tuple(self._reading(number) for number in range(first, last + 1))
        unit = self.units[first]
        return Window(
            source=self.number,
            text="\n".join(dict.fromkeys((self._shown(first), self._shown(last)))),
            parts=parts,
            is_prose=all(self.units[number].kind in _PROSE for number in (first, last)),
            keys=frozenset().union(*(part.keys for part in parts)),
            around=self._around(first),
            named=self._named,
            row=self._row(first) if first == last and unit.kind == "row" else None,
        )

    def _row(self, number: int) -> Row:
        unit = self.units[number]
        own = self._text[unit.start : unit.end]
        name = own.strip("| ").split(" | ")[0].strip()
        header = self._text[slice(*unit.header)] if unit.header else ""
        others = tuple(labelled for other, labelled in self._labels.items() if other != number)
        title = self._text[slice(*unit.title)] if unit.title else ""
        scale = _SCALE.search(f"{title} {header}")
        in_scale = scale[1].lower() if scale else ""
        return Row(name, read(name).stems, _columns(own, header), others, self.scales, in_scale)

    @cached_property
    def _labels(self) -> dict[int, tuple[frozenset[str], Reading]]:
        """Its rows: the stems of their labels, and what they hold."""
        found: dict[int, tuple[frozenset[str], Reading]] = {}
        for number, unit in enumerate(self.units):
            if unit.kind == "row" and len(found) < _MOST_ROWS:
                label, _, values = self._text[unit.start : unit.end].strip("| ")[:_LONGEST].partition(" | ")
                if any(map(str.isdigit, values)) and (stems := read(label).stems):
                    found[number] = stems, read(values)
        return found

    def _reading(self, number: int) -> Reading:
        if number not in self._readings:
            self._readings[number] = read(self._shown(number)[:_LONGEST])
        return self._readings[number]

    def _shown(self, number: int) -> str:
        unit = self.units[number]
        mark = ENTRY.match(self._text, unit.start, unit.end)
        title = unit.title
        if title:  # from its last heading on, if it does not end as a sentence
            title = (max(title[0], self._text.rfind("\n#", *title)), title[1])
            title = title if self._text[title[1] - 1] not in ".!?" else None
        spans = [span for span in (title, unit.header, (mark.end() if mark else unit.start, unit.end)) if span]
        return "\n".join(self._text[slice(*span)] for span in spans)

    def _around(self, number: int) -> frozenset[str]:
        """The words of the page's title and of the headings that a unit stands under."""
        above = {self._headings[0]} if self._headings else set()
        level = _DEEPEST
        for at in reversed(self._headings[: bisect_right(self._headings, number)]):
            depth = self._text[self.units[at].start : self.units[at].end].count("#", 0, _DEEPEST)
            if depth < level:
                level = depth
                above.add(at)
        if self.units[0].end - self.units[0].start <= _TITLE:
            above.add(0)
        opening = bisect_left(self.units, self.units[number].block, key=attrgetter("block"))
        if self.units[opening].end - self.units[opening].start <= _RUN_IN:  # "Option A, new beams. The cost is …"
            above.add(opening)
        return frozenset().union(*({word.stem for word in self._reading(n).words} for n in above))

    def _terms(self, text: str) -> set[str]:
        found: set[str] = set()
        for match in _TERM.finditer(normalize(text)):
            term = match.group()
            if term.isascii() or term.isalpha():
                found |= keys_of(term)
            found.update(term[i : i + 2] for i in range(len(term) - 1) if not term.isascii())
        return found


def _clauses(text: str, unit: Unit) -> list[Unit]:
    """A sentence whose semicolons part sentences, as those; one that lists things stays whole."""
    if unit.kind != "sentence" or ";" not in text[unit.start : unit.end]:
        return [unit]
    places = [unit.start, *(match.end() for match in _SEMICOLON.finditer(text, unit.start, unit.end)), unit.end]
    if any(len(_TERM.findall(text, first, last)) < _CLAUSE for first, last in pairwise(places)):
        return [unit]
    return [unit._replace(start=first, end=last) for first, last in pairwise(places)]


def _columns(row: str, header: str) -> tuple[Column, ...]:
    """The values of a row under the names of their columns; none, if the two cannot be laid side by side."""
    cells = [cell.strip() for cell in row.strip("| ").split(" | ")][1:]
    names = [name.strip() for name in header.strip("| ").split("\n")[-1].split("|")]
    if len(names) == len(cells) + 1 or (len(names) > len(cells) and not _YEAR.search(names[0])):
        names = names[1:]  # the corner
    if len(names) < len(cells):  # a line of years
        names = _YEAR.findall(header)
    if len(cells) < 2 or len(names) < len(cells) or (len(names) > len(cells) and not _YEAR.search(names[0])):
        return ()
    found = []
    for name, cell in zip(names, cells, strict=False):
        heading = read(name)
        terms = heading.stems.union(*(quantity.terms for quantity in heading.quantities))
        found.append(Column(name, terms, cell, read(cell)))
    return tuple(found)


def flat(text: str) -> str:
    return f" {' '.join(_FLAT.findall(normalize(text)))} "


def best_windows(claim: Reading, sources: Sequence[Source], wanted: Iterable[Word] = ()) -> list[Window]:
    """The windows that share most with a claim: the best units, alone and with the unit before or after them."""
    scores: defaultdict[tuple[int, int], float] = defaultdict(float)
    terms = [(word.keys, 2.0 if word.is_name else 0.3 if word.is_light else 1.0) for word in (wanted or claim.words)]
    for quantity in claim.quantities:
        digits = _TERM.findall(normalize(quantity.text))
        terms.append((frozenset(key for term in digits for key in keys_of(term)), 1.5))
    for position, source in enumerate(sources):
        found = [({unit for key in keys for unit in source.postings.get(key, ())}, weight) for keys, weight in terms]
        found.sort(key=lambda entry: len(entry[0]))
        for rank, (units, weight) in enumerate(found):
            if rank >= _RARE and len(units) > _COMMON:
                break  # hostile or huge: words of every line tell nothing
            for unit in units:
                scores[position, unit] += weight / (1 + 0.1 * len(units) ** 0.5)
    # The first of equals, so that the same answer always gets the same verdict.
    best = sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))[:_LOOKED_AT]
    spans: dict[tuple[int, int, int], None] = {}
    for (position, unit), _ in best:
        last = len(sources[position].units) - 1
        for first, end in ((unit, unit), (unit - 1, unit), (unit, unit + 1)):
            if first >= 0 and end <= last and sources[position].may_join(first, end):
                spans[position, first, end] = None
    return [sources[position].window(first, last) for position, first, last in spans]
