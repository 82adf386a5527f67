"""What a sentence says, as far as words tell: its content words, numbers and names, its bounds, and where it says no;
and whether another states the same number or date.

A word is compared by its keys (`thesaurus`): "purchased" and "bought" share one, "May" and "may" do not. Phrases that
are said in many ways are put into one first: "no more than", "up to" and "at most" become "≤". Some of them hold a "no"
that denies nothing, so this goes before negations are looked for.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, field, replace
from enum import IntEnum
from operator import attrgetter
from pathlib import Path

from research.answer.claims.vocabulary import MONTHS, Number, keys_of, numbers_in, opposites_of, stem, thesaurus, words
from research.store import SIGNS, STOP_WORDS, normalize
from research.text import UNSPACED

CONTRARY = {"≤": ">≥", "≥": "<≤", ">": "<≤", "<": ">≥"}
"""A bound, and the bounds that contradict it."""


def _phrases() -> list[tuple[re.Pattern[str], str]]:
    """Ways to say a thing, as one pattern each, and the one way in which they are compared."""
    data = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))

    def filled(way: str) -> str:
        return _FRAGMENT.sub(lambda match: data["fragments"][match[1]], way)

    return [(re.compile("|".join(map(filled, each["ways"])), re.IGNORECASE), each["said"]) for each in data["phrase"]]


_FRAGMENT = re.compile(r"\{([a-z]+)\}")
_PHRASES = _phrases()
_TABLE = words("function")
_TELLING = _TABLE["telling"]
_STOP = (STOP_WORDS - _TELLING) | _TABLE["stop"]
_OPENERS = _TELLING | _TABLE["openers"]
_CLAUSE_WORDS = _TABLE["clauses"]
_JOINTS = _CLAUSE_WORDS | _TABLE["joints"]
_MODALS = dict.fromkeys(("must", "shall", "required"), "must") | dict.fromkeys(("may", "can", "could", "might"), "may")
_WAY = re.compile(r"\b(by|to|from)(?: about| around| approximately)?\W{1,3}$", re.IGNORECASE)
_VERBAL = ("ed", "ing")
_YEAR = re.compile(r"(?:FY ?)?(?:1[89]|20)\d\d")
_MOST_CUES = 20  # no sentence says "no" more often
_UNIT_LETTERS = "mglhstpVAWKC"
_SYMBOLS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "°": "degree", "µ": "micro", "Ω": "ohm"}
_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|von|mit|den|dem|des|für|sind|wird|werden|zu)\b")
_WIDE_NEGATIONS = re.compile("[不没沒未無无非別勿]|ない|なかっ|ません|없|아니")
_TOKEN = re.compile(
    rf"(?P<wide>[{UNSPACED}]+)|(?P<word>(?:[^\W_{UNSPACED}][{SIGNS}]*)+(?:\.(?=[a-zA-Z]\b)[a-zA-Z])*)"
    r"|(?P<sign>[$€£¥°µΩ≤≥<>])|(?P<end>[.;:!?。！？|—\n])|(?P<comma>[,()、，])"
)


def _in_one_way(text: str) -> str:
    for pattern, said in _PHRASES:
        text = pattern.sub(said, text)
    return text


@dataclass(frozen=True, slots=True)
class Word:
    """A content word. `place` counts all words of the text, `clause` its parts."""

    keys: frozenset[str]
    stem: str
    text: str
    place: int
    clause: int
    is_name: bool = False
    is_light: bool = False  # says nothing of its own
    is_common: bool = False  # stands in the table: "the Company" names nobody
    is_verb: bool = False  # what its sentence says else may be enough

    @property
    def turns(self) -> bool:
        """Whether it says which way a figure went."""
        return not opposites_of(self.stem).isdisjoint({"increas", "decreas"})

    @property
    def is_unit(self) -> bool:
        """Whether it says nothing of what a number is of."""
        return self.text in _SYMBOLS or self.text in {"percent", "percentpoint"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or date at its place among the words."""

    number: Number
    text: str
    place: int
    clause: int = 0
    way: str = ""  # "by", "to" or "from", right before it

    @property
    def is_year(self) -> bool:
        """Whether it says when, and not how much."""
        return bool(self.number.dates) or _YEAR.fullmatch(self.text) is not None

    @property
    def terms(self) -> frozenset[str]:
        """As it names the column of a table: 2024, or the year of a date."""
        years = {float(date[0]) for date in self.number.dates if date[0]}
        return frozenset(f"{value:g}" for value in self.number.values | years)


@dataclass(frozen=True, slots=True)
class Cue:
    """A word that changes what is said of those beside it."""

    place: int
    clause: int


@dataclass(slots=True, eq=False)
class Reading:
    words: list[Word] = field(default_factory=list)
    quantities: list[Quantity] = field(default_factory=list)
    keys: frozenset[str] = frozenset()  # of all words
    negations: list[Cue] = field(default_factory=list)
    plans: list[Cue] = field(default_factory=list)  # "plan", "expect", "perhaps"
    bounds: list[tuple[str, int]] = field(default_factory=list)  # "≤", "≥", "<", ">" and the place
    passives: list[int] = field(default_factory=list)  # places of a "by" after a form of "be"
    is_passive: bool = False  # some form of "be" stands in it
    links: set[int] = field(default_factory=set)  # places of "and" and "or"
    joints: list[int] = field(default_factory=list)  # places of commas and of words that tie clauses together
    modals: frozenset[str] = frozenset()  # "must", "may"
    particles: set[str] = field(default_factory=set)  # "on", "off", "up", "down"
    has_pronoun: bool = False  # "it", "she" among the first words

    @property
    def items(self) -> list[Word | Quantity]:
        return sorted([*self.words, *self.quantities], key=attrgetter("place"))

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.words)

    @property
    def years(self) -> frozenset[str]:
        return frozenset().union(*(quantity.terms for quantity in self.quantities if quantity.is_year))


def side_of(reading: Reading, item: Word | Quantity) -> tuple[int, int]:
    """In which clause something stands, and on which side of its "and"s."""
    return item.clause, sum(place < item.place for place in reading.links)


def read(text: str) -> Reading:
    """A sentence, or a few. To cut what is longer than some thousand characters is up to the caller."""
    text = _in_one_way(text)
    return _Reader(text).reading(numbers_in(text))


class _Reader:
    """Goes over a text once and gathers what it says."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._all_nouns_capital = len(_GERMAN.findall(text)) >= 2
        self._place = self._clause = 0
        self._begins = True  # a sentence
        self._after_be = False
        self._last = ""  # word
        self._modals: dict[int, str] = {}
        self._found = Reading()

    def reading(self, numbers: list[Number]) -> Reading:
        waiting, found = iter(numbers), self._found
        number = next(waiting, None)
        for match in _TOKEN.finditer(self._text):
            while number is not None and number.end <= match.start():
                number = next(waiting, None)
            if number is None or match.start() < number.start:
                self._token(match)
            elif match.start() == number.start:
                self._place += 1
                said = self._text[number.start : number.end].strip()
                said += "%" if self._text[number.end : number.end + 10].lstrip().startswith("percent") else ""
                way = _WAY.search(self._text, max(0, number.start - 20), number.start)
                found.quantities.append(
                    Quantity(number, said, self._place, self._clause, way[1].lower() if way else "")
                )
                self._begins = False
        found.keys = frozenset(key for word in found.words for key in word.keys)
        found.modals = frozenset(self._modals.values())
        del found.negations[_MOST_CUES:], found.plans[_MOST_CUES:]
        return found

    def _token(self, match: re.Match[str]) -> None:
        kind, token = match.lastgroup, match.group()
        if kind == "end":
            self._clause += 1
            self._begins = True
            if token in ";:|":
                self._found.joints.append(self._place)
        elif kind == "comma":
            self._found.joints.append(self._place)
        elif kind == "wide":
            self._wide(token)
        elif kind == "sign":
            if token in CONTRARY:
                self._found.bounds.append((token, self._place))
            else:
                self._add(keys_of(_SYMBOLS[token]), token)
        else:
            self._place += 1
            lowered = normalize(token)
            self._function(token, lowered)
            self._content(token, lowered, match.end())
            self._last = lowered
            self._begins = False

    def _wide(self, token: str) -> None:
        """Scripts without blanks: pairs of characters, as full-text search has them."""
        for match in _WIDE_NEGATIONS.finditer(token):
            self._found.negations.append(Cue(self._place + match.start(), self._clause))
        for pair in [token] if len(token) == 1 else [token[i : i + 2] for i in range(len(token) - 1)]:
            self._place += 1
            self._add(frozenset({pair}), pair)

    def _function(self, token: str, lowered: str) -> None:
        """What a word does to the sentence, whatever it means itself."""
        if lowered in _TABLE["be"]:
            self._after_be = self._found.is_passive = True
        elif lowered == "by" and (self._after_be or self._last.endswith("ed")):
            self._found.passives.append(self._place)
            self._after_be = False
        elif lowered in _TABLE["links"]:
            self._found.links.add(self._place)
        if lowered in _CLAUSE_WORDS:
            self._clause += 1
        if lowered in _JOINTS:
            self._found.joints.append(self._place)
        if lowered in _MODALS and (self._begins or not token[0].isupper()):
            self._modals[self._place] = _MODALS[lowered]
        if lowered in _TABLE["unsure"] or stem(lowered) in _TABLE["plans"]:
            self._found.plans.append(Cue(self._place, self._clause))
        if lowered in _TABLE["particles"]:
            self._found.particles.add(lowered)
        if self._place <= 2 and lowered in _TABLE["pronouns"]:
            self._found.has_pronoun = True
        if self._found.words and self._place - self._found.words[-1].place <= 3:
            last = self._found.words[-1]
            meant = thesaurus().idioms.get((last.stem, lowered))
            if meant:  # "thrown away" also has the keys of "discarded"
                self._found.words[-1] = replace(last, keys=last.keys | keys_of(meant))

    def _content(self, token: str, lowered: str, end: int) -> None:
        month = MONTHS.get(lowered) if token[0].isupper() else None
        if month and not (self._begins and lowered in _TABLE["months_too"]):
            self._add(frozenset({f"month {month}"}), token)
        elif lowered in thesaurus().negations or stem(lowered) in thesaurus().denying:
            self._found.negations.append(Cue(self._place, self._clause))
            self._modals.pop(self._place - 1, None)  # "may not" is "must not"
        elif unit := self._unit(token, lowered):
            self._add(keys_of(unit), token)
        elif len(token) == 1 and token.isupper() and not self._begins:  # Option A, grade B
            self._add(frozenset({lowered}), token, is_name=True)
        elif lowered not in _STOP and (len(lowered) > 1 or token.isupper() or token.isdigit()):
            is_name = self._is_name(token, lowered, end)
            is_light = stem(lowered) in thesaurus().light
            if is_name and is_light:  # "Table 1" says little, "States" is a name
                is_light = self._text[end : end + 2].strip().isdigit()
                is_name = not is_light
            is_common = stem(lowered) in thesaurus().groups
            is_verb = (
                not is_name
                and self._last not in _TABLE["articles"]
                and (stem(lowered) in thesaurus().verbs or (len(lowered) > 4 and lowered.endswith(_VERBAL)))
            )
            self._add(keys_of(lowered), token, is_name=is_name, is_light=is_light, is_common=is_common, is_verb=is_verb)

    def _unit(self, token: str, lowered: str) -> str | None:
        """What "m" stands for right after a number."""
        after_number = self._found.quantities and self._found.quantities[-1].place == self._place - 1
        if not (after_number or (len(token) > 1 and self._last == "per")):
            return None
        return thesaurus().units.get(lowered) if len(token) > 1 or token in _UNIT_LETTERS else None

    def _is_name(self, token: str, lowered: str, end: int) -> bool:
        if any(map(str.isdigit, token)) or (len(token) > 1 and token.isupper()):
            return True
        if not token[0].isupper() or self._all_nouns_capital:
            return False
        if not self._begins:
            return True
        following = self._text[end : end + 2]
        return lowered not in _OPENERS and following[:1] == " " and following[1:].isupper()

    def _add(
        self,
        keys: frozenset[str],
        text: str,
        *,
        is_name: bool = False,
        is_light: bool = False,
        is_common: bool = False,
        is_verb: bool = False,
    ) -> None:
        stemmed = stem(normalize(text)) if text.isalnum() else min(keys)
        self._found.words.append(
            Word(keys, stemmed, text, self._place, self._clause, is_name, is_light, is_common, is_verb)
        )


class Fit(IntEnum):
    NONE = 0
    UNSCALED = 1  # "1,469 million" for "1,469": the page may say "in millions" elsewhere, or not
    ROUNDED = 2
    SAME = 3


def fit(quantity: Quantity, reading: Reading, scales: frozenset[float]) -> Fit:
    """How well the number or date that fits best does. `scales` are what the figures of tables are multiplied with."""
    number, best = quantity.number, Fit.NONE
    for other in reading.quantities:
        if number.dates:
            same = any(_same_date(one, two) for one in number.dates for two in other.number.dates)
            best = Fit.SAME if same else best
        elif other.number.dates:
            parts = {float(part) for date in other.number.dates for part in (date[0], date[2]) if part}
            best = Fit.SAME if parts & number.values else best
        else:
            best = max(best, _same_number(number, other.number, scales))
        if best == Fit.SAME:
            return best
    return Fit.SAME if number.dates and _date_in_parts(number, reading) else best


def _same_date(one: tuple[int, int, int], two: tuple[int, int, int]) -> bool:
    """A claim may say less than the source; and a year that only the claim names, if the day is right."""
    day_and_month = one[1] == two[1] and one[2] in {0, two[2]}
    return day_and_month and (one[0] in {0, two[0]} or two[0] == 0)


def _date_in_parts(number: Number, reading: Reading) -> bool:
    values = {value for quantity in reading.quantities for value in quantity.number.values}
    return any(
        f"month {month}" in reading.keys and (not day or day in values) and (not year or year in values)
        for year, month, day in number.dates
    )


def _same_number(number: Number, other: Number, scales: frozenset[float]) -> Fit:
    best = Fit.NONE
    for value in number.values:
        for stated in other.values:
            for scale in (1.0, *scales):
                if math.isclose(value, stated * scale, rel_tol=1e-9):
                    return Fit.SAME
                if other.precision > number.precision >= 2 and _rounds_to(stated * scale, value, number.precision):
                    best = Fit.ROUNDED
            if number.scaled and any(math.isclose(value, stated * scale, rel_tol=1e-9) for scale in (1e3, 1e6, 1e9)):
                best = max(best, Fit.UNSCALED)
    return best


def _rounds_to(stated: float, value: float, precision: int) -> bool:
    if value <= 0 or stated <= 0:
        return False
    step = 10.0 ** (math.floor(math.log10(value)) - precision + 1)
    return abs(stated - value) <= 0.5 * step * (1 + 1e-9)


def is_same(one: Quantity, two: Quantity) -> bool:
    return bool(one.number.values & two.number.values) or bool(one.number.dates & two.number.dates)
