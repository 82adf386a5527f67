"""What a sentence says, as far as words tell: its content words, numbers, names, and where it says no.

A word is compared by its keys: its stem, and the lines of wording.toml that it stands in. So "purchased" and "bought" are
one word, "May" and "may" are two.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from research.answer.numbers import MONTHS, Number, numbers_in
from research.store.fulltext.analyzer import SIGNS, STOP_WORDS, normalize, stem as plain_stem
from research.text import UNSPACED

TABLE = Path(__file__).with_name("wording.toml")

# Function words that nevertheless decide what is said.
_TELLING = frozenset(
    "above after against all before below both few more most once only other over same under until".split()  # noqa: SIM905
)
_STOP = (STOP_WORDS - _TELLING) | frozenset(
    "shall much many one ones us whose whereby thereby therein upon per via among amongst toward towards since although though "
    "der die das des dem den ein eine einer eines einem einen und oder ist sind war waren im am zum zur von vom mit auf für bei "
    "als auch sich werden wird wurde wurden hat haben dass an aus nach über le la les un une des du de et ou est sont dans pour "
    "par sur avec que qui il elle au aux ce cette el los las y o es son en del con por para se su al lo gli e di da che per con "
    "i o os as um uma em het een van en voor op te zijn".split()  # noqa: SIM905
)
# Comparisons that are said in many ways; some of them with a "no" that is none.
_PHRASES = tuple(
    (re.compile(pattern, re.IGNORECASE), sign)
    for pattern, sign in (
        (r"\bnot only\b|\bwhether or not\b|\bno doubt\b|\bnot just\b|\bnot least\b|\bif not\b", " "),
        (r"\bfree of charge\b|\b(?:at no|without|no) (?:extra |additional )?(?:cost|charge)s?\b|\bfor free\b", " no cost "),
        (r"\b(\w+)-free\b", r" no \1 "),
        (r"\b(?:wen?t|go|goes|going|gone|is|are|was|were|been) up\b(?= (?:by )?\W?\d| from)", " increased "),
        (r"\b(?:wen?t|go|goes|going|gone|is|are|was|were|been) down\b(?= (?:by )?\W?\d| from)", " decreased "),
        (r"\b(?:can(?:not| not)|(?:may|must|shall|should|will|could) not) (?:be )?(?:more|longer|greater|higher|larger) than\b"
         r"|\b(?:can(?:not| not)|(?:may|must|shall|should|will|could) not) exceed\b"
         r"|\b(?:no|not) (?:more|longer|greater|higher|larger) than\b|\bnot (?:to )?exceed(?:ing)?\b|\bat (?:the )?most\b"
         r"|\bup to(?= (?:\S{1,3} )?\W?\w)|\bmaximum of\b|\bmax\.|\bno later than\b|\b(?:höchstens|maximal|au plus|como máximo)\b", " ≤ "),
        (r"\b(?:no|not) (?:less|fewer|shorter|lower|smaller|earlier) than\b|\bat (?:the )?(?:very )?least\b|\bminimum of\b"
         r"|\b(?:mindestens|wenigstens|au moins|al menos|como mínimo)\b", " ≥ "),
        (r"\bmore (\w+) than\b", r" > \1 "),
        (r"\bless (\w+) than\b", r" < \1 "),
        (r"\b(?:less|fewer|(?:short|low|small|earli|young|cool|cold|cheap|slow|weak|light)er) than\b|\b(?:under|below)(?= [$€£¥]?\s?\d)", " < "),
        (r"\b(?:more|\w+er) than\b|\bin excess of\b|\b(?:over|above|exceed(?:s|ed|ing)?)(?= (?:\w+ ){0,2}?[$€£¥]?\s?\d)", " > "),
        (r"\bno\.(?=\s?\d)|\bno(?=\.? ?\d)|\bnos?\.\s(?=\d)", "number "),
        (r"\bpercentage points?\b", " percentpoint "),
        (r"\bper ?cent\b|\bpct\b|%|％|\bprozent\b|\bpour ?cent\b|\bpor ciento\b|\bper cento\b", " percent "),
        (r"\b(?:can|wo|sha)(?:['’]t|n['’]t)\b|\bcan ?not\b", "can not"),
        (r"n['’]t\b", " not"),
        (r"['’]s\b|['’](?=\s)", " "),
    )
)  # fmt: skip
_SYMBOLS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "°": "degree", "µ": "micro", "Ω": "ohm"}
COMPARISONS = {"≤": ">≥", "≥": "<≤", ">": "<≤", "<": ">≥"}
_TOKEN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|(?P<word>(?:[^\W_{UNSPACED}][{SIGNS}]*)+(?:\.(?=[a-zA-Z]\b)[a-zA-Z])*)|(?P<sign>[$€£¥°µΩ≤≥<>])|(?P<end>[.;:!?。！？|—]|\n)|(?P<comma>[,()、，])"
)
_CLAUSE_WORDS = frozenset("but while whereas although though however yet".split())  # noqa: SIM905
_HAN_NEGATIONS = re.compile("[不没沒未無无非別勿]|ない|なかっ|ません|ぬ|지 않|없|아니")
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "mis")


@dataclass(frozen=True, slots=True)
class Word:
    """A content word. `place` counts all words of the text, `clause` its parts."""

    keys: frozenset[str]
    stem: str
    text: str
    place: int
    clause: int
    is_name: bool = False
    is_light: bool = False


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or date at its place among the words."""

    number: Number
    text: str
    place: int
    clause: int


@dataclass(frozen=True, slots=True)
class Reading:
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]
    negations: tuple[tuple[int, int], ...]  # place and clause
    comparisons: tuple[tuple[str, int], ...]  # "≤", "≥", "<", ">" and the place
    passives: tuple[int, ...]  # places of a "by" after a form of "be"
    links: frozenset[int]  # places of "and" and "or"
    joints: int  # commas and words that tie clauses together
    plans: tuple[tuple[int, int], ...]  # place and clause of "plan", "expect", "perhaps"
    has_pronoun: bool  # "it", "she" among the first words
    modals: frozenset[str]  # "must", "may"
    particles: frozenset[str]  # "on", "off", "up", "down"
    is_respective: bool  # "7 and 2, respectively": what is first belongs to what is first
    keys: frozenset[str]


def read(text: str) -> Reading:
    """A sentence, or a few. Text of more than some thousand characters is for whoever calls to cut."""
    for pattern, sign in _PHRASES:
        text = pattern.sub(sign, text)
    numbers = numbers_in(text)
    german = len(_GERMAN.findall(text)) >= 2
    return _Reader(text, numbers, german).reading()


_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|von|mit|den|dem|des|für|sind|wird|werden|zu)\b")
_MODALS = {"must": "must", "shall": "must", "required": "must", "may": "may", "can": "may", "could": "may", "might": "may"}
_JOINTS = frozenset("and but while whereas which who that because when if so as where since although though und aber et mais y pero".split())  # noqa: SIM905, E501
_PRONOUNS = frozenset("it they this these those she he her his its their both such".split())  # noqa: SIM905
_PLANS = frozenset("plan intend propos hope aim expect".split())  # noqa: SIM905
_UNSURE = frozenset("might perhaps possibly probably likely".split())  # noqa: SIM905
_LINKS = frozenset({"and", "or", "und", "oder", "et", "y"})
_PARTICLES = frozenset({"on", "off", "up", "down"})
_BE = frozenset("is are was were be been being gets got".split())  # noqa: SIM905


class _Reader:
    """Goes over a text once and gathers what it says."""

    def __init__(self, text: str, numbers: list[Number], german: bool) -> None:
        self._text = text
        self._numbers = numbers
        self._all_nouns_capital = german
        self._place = self._clause = 0
        self._words: list[Word] = []
        self._quantities: list[Quantity] = []
        self._negations: list[tuple[int, int]] = []
        self._comparisons: list[tuple[str, int]] = []
        self._passives: list[int] = []
        self._links: set[int] = set()
        self._joints = 0
        self._plans: list[tuple[int, int]] = []
        self._pronoun = False
        self._modals: set[str] = set()
        self._particles: set[str] = set()

    def reading(self) -> Reading:
        waiting = iter(self._numbers)
        number = next(waiting, None)
        first, passive = True, False
        for match in _TOKEN.finditer(self._text):
            while number is not None and number.end <= match.start():
                number = next(waiting, None)
            if number is not None and match.start() >= number.start:
                if match.start() == number.start:
                    self._place += 1
                    said = self._text[number.start : number.end].strip()
                    self._quantities.append(Quantity(number, said, self._place, self._clause))
                first = False
                continue
            kind, token = match.lastgroup, match.group()
            if kind == "end":
                self._clause += 1
                first = True
            elif kind == "comma":
                self._joints += 1
            elif kind == "unspaced":
                self._unspaced(token)
            elif kind == "sign":
                self._sign(token)
            else:
                self._place += 1
                lowered = normalize(token)
                if lowered in _BE:
                    passive = True
                elif lowered == "by" and passive:
                    self._passives.append(self._place)
                    passive = False
                elif lowered in _CLAUSE_WORDS:
                    self._clause += 1
                elif lowered in _LINKS:
                    self._links.add(self._place)
                self._joints += lowered in _JOINTS
                self._pronoun |= self._place <= 3 and lowered in _PRONOUNS
                if lowered in _UNSURE or stem(lowered) in _PLANS:
                    self._plans.append((self._place, self._clause))
                self._idiom(lowered)
                if lowered in _MODALS and not (lowered == "may" and token[0].isupper() and not first):
                    self._modals.add(_MODALS[lowered])
                self._word(token, lowered, match.end(), first)
                first = False
        keys = frozenset(key for word in self._words for key in word.keys)
        return Reading(
            tuple(self._words),
            tuple(self._quantities),
            tuple(self._negations),
            tuple(self._comparisons),
            tuple(self._passives),
            frozenset(self._links),
            self._joints,
            tuple(self._plans),
            self._pronoun,
            frozenset(self._modals),
            frozenset(self._particles),
            "respectively" in self._text,
            keys,
        )

    def _word(self, token: str, lowered: str, end: int, first: bool) -> None:
        month = token[0].isupper() and MONTHS.get(lowered)
        if month and not (first and lowered in {"may", "march", "mar", "sep", "dec", "mars"}):
            self._add(frozenset({f"month {month}"}), token)
            return
        if lowered in _table().negations:
            self._negations.append((self._place, self._clause))
            return
        follows = bool(self._quantities) and self._quantities[-1].place == self._place - 1
        unit = _table().units.get(lowered) if follows and (len(token) > 1 or token in "mglhstpVAWKC") else None
        if unit:
            self._add(keys_of(unit), token)
            return
        if lowered in _PARTICLES:
            self._particles.add(lowered)
        if lowered in _STOP or (len(lowered) == 1 and not token.isupper() and not token.isdigit()):
            return
        is_name = self._is_name(token, end, first)
        is_light = stem(lowered) in _table().light
        if is_name and is_light:  # "Table 1" says little, "States" is a name
            is_light = self._text[end : end + 2].strip().isdigit()
            is_name = not is_light
        self._add(keys_of(lowered), token, is_name, is_light)

    def _idiom(self, lowered: str) -> None:
        """A verb with its particle ("thrown away") also has the keys of the word for both."""
        if self._words and self._place - self._words[-1].place <= 3:
            last = self._words[-1]
            meant = _table().idioms.get((last.stem, lowered))
            if meant:
                self._words[-1] = replace(last, keys=last.keys | keys_of(meant))

    def _is_name(self, token: str, end: int, first: bool) -> bool:
        if any(map(str.isdigit, token)) or (len(token) > 1 and token.isupper()):
            return True
        if not token[0].isupper() or self._all_nouns_capital:
            return False
        following = self._text[end : end + 2]
        return not first or (following[:1] == " " and following[1:].isupper())

    def _unspaced(self, token: str) -> None:
        for match in _HAN_NEGATIONS.finditer(token):
            self._negations.append((self._place + match.start(), self._clause))
        for pair in [token] if len(token) == 1 else [token[i : i + 2] for i in range(len(token) - 1)]:
            self._place += 1
            self._add(frozenset({pair}), pair)

    def _sign(self, token: str) -> None:
        if token in COMPARISONS:
            self._comparisons.append((token, self._place))
        else:
            self._add(keys_of(_SYMBOLS[token]), token)

    def _add(self, keys: frozenset[str], text: str, is_name: bool = False, is_light: bool = False) -> None:
        stemmed = stem(normalize(text)) if text.isalnum() else min(keys)
        self._words.append(Word(keys, stemmed, text, self._place, self._clause, is_name, is_light))


@lru_cache(maxsize=50_000)
def stem(lowered: str) -> str:
    """As full-text search has it, and the plain form of a verb for those that change within: fell is fall."""
    stemmed = plain_stem(lowered)
    return _table().forms.get(lowered) or _table().forms.get(stemmed, stemmed)


@dataclass(frozen=True, slots=True)
class _Table:
    forms: dict[str, str]
    groups: dict[str, tuple[str, ...]]  # stem → names of the lines it stands in
    opposites: dict[str, frozenset[str]]  # stem → stems that say the contrary
    units: dict[str, str]
    idioms: dict[tuple[str, str], str]  # a verb's stem and its particle → the word for both
    negations: frozenset[str]
    light: frozenset[str]


@cache
def _table() -> _Table:
    data = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    forms: dict[str, str] = {}
    for line in data["forms"]:
        first, *others = line.split()
        for word in others:
            forms.setdefault(word, plain_stem(first))
            forms.setdefault(plain_stem(word), plain_stem(first))

    def stemmed(word: str) -> str:
        return forms.get(word) or forms.get(plain_stem(normalize(word)), plain_stem(normalize(word)))

    groups: dict[str, list[str]] = {}
    for number, line in enumerate(data["same"]):
        for word in line.split():
            groups.setdefault(stemmed(word), []).append(f"={number}")
    opposites: dict[str, set[str]] = {}
    for line in data["opposite"]:
        sides = [{stemmed(word) for word in side.split()} for side in line.split("/")]
        for side, other in (sides, sides[::-1]):
            for word in side:
                opposites.setdefault(word, set()).update(other)
    light = frozenset(data["light"].split())
    return _Table(
        forms,
        {word: tuple(names) for word, names in groups.items()},
        {word: frozenset(words) for word, words in opposites.items()},
        dict(line.split() for line in data["units"]),
        {(stemmed(verb), particle): meant for verb, particle, meant in map(str.split, data["idioms"])},
        frozenset(normalize(word) for word in data["negations"].split()),
        frozenset(map(stemmed, light)),
    )


@lru_cache(maxsize=50_000)
def keys_of(lowered: str) -> frozenset[str]:
    """What a word is compared by. A footnote's mark on a name (Brask1) is none of it."""
    stemmed = stem(lowered)
    keys = {stemmed, *_table().groups.get(stemmed, ())}
    letters = lowered.rstrip("0123456789")
    if letters != lowered and len(letters) >= 4 and letters.isalpha():
        keys.add(stem(letters))
    return frozenset(keys)


def are_opposite(one: str, other: str) -> bool:
    """Whether one stem says the contrary of the other: by the table, or by its first syllable (safe, unsafe)."""
    if other in _table().opposites.get(one, ()):
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= 3 and any(long == prefix + short for prefix in _PREFIXES)
