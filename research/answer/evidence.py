"""The sources that an answer cites, as windows: the units of a page that a sentence is compared with, alone and with
their neighbour, with the header of their table and the headings above them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from research.answer.language import language_of
from research.answer.numbers import SCALES
from research.answer.wording import Reading, Word, keys_of, read, stem
from research.context.units import Unit, split
from research.store.fulltext.analyzer import analyze_name, normalize

_LOOKED_AT = 8  # units, the best by the words they share, that windows are made around
_HEADINGS = 3  # above a unit, that say what it is about
_TITLE = 100  # characters of a first line that may be the page's title
_LONGEST = 1600  # characters of a unit that are read
_MOST_UNITS = 20_000  # of a source; a context of a million tokens has fewer
_TERM = re.compile(r"[^\W_]+")
_ACRONYM = re.compile(r"\b[A-Z][A-Z&]{1,5}\b")
_SCALE = re.compile(r"(?<![\d ]) ?\b(thousands?|millions?|billions?|mm|mn|bn)\b", re.IGNORECASE)
_FLAT = re.compile(r"[^\W_]+(?:[.,:]\d+)*|[%$€£]")


@dataclass(frozen=True, slots=True)
class Window:
    """One unit of a source or two neighbours. `keys` are those of their words, `around` the stems of what stands above."""

    source: int
    first: int
    last: int
    text: str
    parts: tuple[Reading, ...]  # a reading a unit
    is_prose: bool  # sentences and entries of lists, no labels with their values
    keys: frozenset[str]
    around: frozenset[str]
    row: str = ""  # a row of a table, and its header
    header: str = ""


class Source:
    """One cited text. It is read as far as sentences ask for it, and each unit once."""

    def __init__(self, number: int, text: str, header: str = "") -> None:
        self.number = number
        self._text = text
        self._named = frozenset(stem(word) for word in analyze_name(header))
        self._readings: dict[int, Reading] = {}

    @cached_property
    def units(self) -> list[Unit]:
        return split(self._text)[:_MOST_UNITS]

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

    @cached_property
    def acronyms(self) -> dict[str, frozenset[str]]:
        """Key of a short form → those of the words it stands for, where the page has both side by side."""
        words = [(match.group(), match.start()) for match in _TERM.finditer(self._text)]
        places = [start for _, start in words]
        found: dict[str, frozenset[str]] = {}
        for match in _ACRONYM.finditer(self._text):
            short = match.group()
            at = bisect_right(places, match.start()) - 1
            for long in _spelt_out(short, [word for word, _ in words[max(0, at - 9) : at + 9]]):
                found.setdefault(normalize(short), frozenset(long))
        return found

    def passages(self, most: int) -> list[str]:
        """Its first sentences, entries and rows."""
        kinds = {"sentence", "item", "row"}
        numbers = [number for number, unit in enumerate(self.units) if unit.kind in kinds]
        return [self._shown(number) for number in numbers[:most]]

    @cached_property
    def language(self) -> str:
        return language_of(self._text)

    def has_mark(self, mark: str, before: str) -> bool:
        """Whether it holds a mark such as "[12]" of its own, after the same word."""
        return f"{before}{mark}" in self._unspaced

    @cached_property
    def _unspaced(self) -> str:
        return "".join(self._text.split())

    def may_join(self, first: int, last: int) -> bool:
        """Whether two units say something together. Two lines with figures do not: each has its own label."""
        pair = [self.units[first], self.units[last]]
        if first == last or all(unit.kind in {"sentence", "item"} for unit in pair):
            return True
        figures = [any(map(str.isdigit, self._text[unit.start : unit.end])) for unit in pair]
        return not all(figures) and not all(unit.kind == "row" for unit in pair)

    def window(self, first: int, last: int) -> Window:
        parts = tuple(self._reading(number) for number in range(first, last + 1))
        keys = {key for part in parts for key in part.keys}
        for short, long in self.acronyms.items():
            if short in keys:
                keys |= {key for word in long for key in keys_of(word)}
            elif all(keys_of(word) & keys for word in long):
                keys.add(short)
        unit = self.units[first]
        is_row = first == last and unit.kind == "row" and unit.header is not None
        return Window(
            self.number,
            first,
            last,
            self._shown(first) if first == last else f"{self._shown(first)}\n{self._shown(last)}",
            parts,
            all(self.units[number].kind in {"sentence", "item"} for number in range(first, last + 1)),
            frozenset(keys),
            self._around(first),
            self._text[unit.start : unit.end] if is_row else "",
            self._text[slice(*unit.header)] if is_row and unit.header else "",
        )

    def _reading(self, number: int) -> Reading:
        if number not in self._readings:
            self._readings[number] = read(self._shown(number)[:_LONGEST])
        return self._readings[number]

    def _shown(self, number: int) -> str:
        unit = self.units[number]
        own = self._text[unit.start : unit.end]
        return f"{self._text[slice(*unit.header)]}\n{own}" if unit.header else own

    def _around(self, number: int) -> frozenset[str]:
        at = bisect_right(self._headings, number)
        above = {*self._headings[max(0, at - _HEADINGS) : at], *self._headings[:1]}
        if self.units[0].end - self.units[0].start <= _TITLE:
            above.add(0)
        return self._named.union(*({word.stem for word in self._reading(n).words} for n in above))

    def _terms(self, text: str) -> set[str]:
        found: set[str] = set()
        for match in _TERM.finditer(normalize(text)):
            term = match.group()
            if term.isascii() or term.isalpha():
                found |= keys_of(term)
            found.update(term[i : i + 2] for i in range(len(term) - 1) if not term.isascii())
        return found


def flat(text: str) -> str:
    return f" {' '.join(_FLAT.findall(normalize(text)))} "


def _spelt_out(short: str, near: list[str]) -> Iterator[set[str]]:
    """The words beside a short form whose first letters it is made of."""
    letters = [letter for letter in short.lower() if letter.isalpha()]
    for first in range(len(near) - len(letters) + 1):
        words = near[first : first + len(letters)]
        if [word[0].lower() for word in words] == letters and short not in words:
            yield {normalize(word) for word in words}


def best_windows(claim: Reading, sources: Sequence[Source], wanted: Iterable[Word] = ()) -> list[Window]:
    """The windows that share most with a claim: the best units, alone and with the unit before or after them."""
    scores: Counter[tuple[int, int]] = Counter()
    terms = [(word.keys, 2.0 if word.is_name else 0.3 if word.is_light else 1.0) for word in (wanted or claim.words)]
    for quantity in claim.quantities:
        digits = _TERM.findall(normalize(quantity.text))
        terms.append((frozenset(key for term in digits for key in keys_of(term)), 1.5))
    for position, source in enumerate(sources):
        for keys, weight in terms:
            units = {unit for key in keys for unit in source.postings.get(key, ())}
            rarity = weight / (1 + 0.1 * len(units) ** 0.5)
            for unit in units:
                scores[position, unit] += rarity  # type: ignore[assignment]
    # The first of equals, so that the same answer always gets the same verdict.
    best = sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))[:_LOOKED_AT]
    spans: dict[tuple[int, int, int], None] = {}
    for (position, unit), _ in best:
        last = len(sources[position].units) - 1
        for first, end in ((unit, unit), (unit - 1, unit), (unit, unit + 1)):
            if 0 <= first and end <= last and sources[position].may_join(first, end):
                spans[position, first, end] = None
    return [sources[position].window(first, last) for position, first, last in spans]


def sources_of(texts: Mapping[int, str], headers: Mapping[int, str]) -> dict[int, Source]:
    return {number: Source(number, text, headers.get(number, "")) for number, text in texts.items()}
