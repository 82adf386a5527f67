"""What a sentence says, as far as words tell: its content words, numbers and names, and where it says no.

A word is compared by its keys (`thesaurus`): "purchased" and "bought" share one, "May" and "may" do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from research.answer.claims.numbers import MONTHS, Number, numbers_in
from research.answer.claims.phrases import CONTRARY, in_one_way
from research.answer.claims.thesaurus import keys_of, stem, thesaurus, words
from research.store.fulltext.analyzer import SIGNS, STOP_WORDS, normalize
from research.text import UNSPACED


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


@dataclass(frozen=True, slots=True)
class Reading:
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]
    keys: frozenset[str]  # of all words
    negations: tuple[Cue, ...]
    plans: tuple[Cue, ...]  # "plan", "expect", "perhaps"
    bounds: tuple[tuple[str, int], ...]  # "≤", "≥", "<", ">" and the place
    passives: tuple[int, ...]  # places of a "by" after a form of "be"
    is_passive: bool  # some form of "be" stands in it
    links: frozenset[int]  # places of "and" and "or"
    joints: tuple[int, ...]  # places of commas and of words that tie clauses together
    modals: frozenset[str]  # "must", "may"
    particles: frozenset[str]  # "on", "off", "up", "down"
    has_pronoun: bool  # "it", "she" among the first words

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
    text = in_one_way(text)
    return _Reader(text).reading(numbers_in(text))


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


class _Reader:
    """Goes over a text once and gathers what it says."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._all_nouns_capital = len(_GERMAN.findall(text)) >= 2
        self._place = self._clause = 0
        self._begins = True  # a sentence
        self._after_be = self._is_passive = self._after_article = False
        self._words: list[Word] = []
        self._quantities: list[Quantity] = []
        self._negations: list[Cue] = []
        self._plans: list[Cue] = []
        self._bounds: list[tuple[str, int]] = []
        self._passives: list[int] = []
        self._links: set[int] = set()
        self._joints: list[int] = []
        self._modals: dict[int, str] = {}
        self._particles: set[str] = set()
        self._pronoun = False

    def reading(self, numbers: list[Number]) -> Reading:
        waiting = iter(numbers)
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
                self._quantities.append(
                    Quantity(number, said, self._place, self._clause, way[1].lower() if way else "")
                )
                self._begins = False
        return Reading(
            words=tuple(self._words),
            quantities=tuple(self._quantities),
            keys=frozenset(key for word in self._words for key in word.keys),
            negations=tuple(self._negations[:_MOST_CUES]),
            plans=tuple(self._plans[:_MOST_CUES]),
            bounds=tuple(self._bounds),
            passives=tuple(self._passives),
            is_passive=self._is_passive,
            links=frozenset(self._links),
            joints=tuple(self._joints),
            modals=frozenset(self._modals.values()),
            particles=frozenset(self._particles),
            has_pronoun=self._pronoun,
        )

    def _token(self, match: re.Match[str]) -> None:
        kind, token = match.lastgroup, match.group()
        if kind == "end":
            self._clause += 1
            self._begins = True
            if token in ";:|":
                self._joints.append(self._place)
        elif kind == "comma":
            self._joints.append(self._place)
        elif kind == "wide":
            self._wide(token)
        elif kind == "sign":
            if token in CONTRARY:
                self._bounds.append((token, self._place))
            else:
                self._add(keys_of(_SYMBOLS[token]), token)
        else:
            self._place += 1
            lowered = normalize(token)
            self._function(token, lowered)
            self._content(token, lowered, match.end())
            self._after_article = lowered in _TABLE["articles"]
            self._begins = False

    def _wide(self, token: str) -> None:
        """Scripts without blanks: pairs of characters, as full-text search has them."""
        for match in _WIDE_NEGATIONS.finditer(token):
            self._negations.append(Cue(self._place + match.start(), self._clause))
        for pair in [token] if len(token) == 1 else [token[i : i + 2] for i in range(len(token) - 1)]:
            self._place += 1
            self._add(frozenset({pair}), pair)

    def _function(self, token: str, lowered: str) -> None:
        """What a word does to the sentence, whatever it means itself."""
        if lowered in _TABLE["be"]:
            self._after_be = self._is_passive = True
        elif lowered == "by" and self._after_be:
            self._passives.append(self._place)
            self._after_be = False
        elif lowered in _TABLE["links"]:
            self._links.add(self._place)
        if lowered in _CLAUSE_WORDS:
            self._clause += 1
        if lowered in _JOINTS:
            self._joints.append(self._place)
        if lowered in _MODALS and (self._begins or not token[0].isupper()):
            self._modals[self._place] = _MODALS[lowered]
        if lowered in _TABLE["unsure"] or stem(lowered) in _TABLE["plans"]:
            self._plans.append(Cue(self._place, self._clause))
        if lowered in _TABLE["particles"]:
            self._particles.add(lowered)
        if self._place <= 2 and lowered in _TABLE["pronouns"]:
            self._pronoun = True
        if self._words and self._place - self._words[-1].place <= 3:
            last = self._words[-1]
            meant = thesaurus().idioms.get((last.stem, lowered))
            if meant:  # "thrown away" also has the keys of "discarded"
                self._words[-1] = replace(last, keys=last.keys | keys_of(meant))

    def _content(self, token: str, lowered: str, end: int) -> None:
        month = MONTHS.get(lowered) if token[0].isupper() else None
        if month and not (self._begins and lowered in _TABLE["months_too"]):
            self._add(frozenset({f"month {month}"}), token)
        elif lowered in thesaurus().negations or stem(lowered) in thesaurus().denying:
            self._negations.append(Cue(self._place, self._clause))
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
                and not self._after_article
                and (stem(lowered) in thesaurus().verbs or (len(lowered) > 4 and lowered.endswith(_VERBAL)))
            )
            self._add(keys_of(lowered), token, is_name=is_name, is_light=is_light, is_common=is_common, is_verb=is_verb)

    def _unit(self, token: str, lowered: str) -> str | None:
        """What "m" stands for right after a number."""
        if not self._quantities or self._quantities[-1].place != self._place - 1:
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
        self._words.append(Word(keys, stemmed, text, self._place, self._clause, is_name, is_light, is_common, is_verb))
