"""Whether a text gives orders to a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

from research.context.injection.disguises import decoded, joined
from research.context.injection.folding import IGNORED, fold
from research.context.injection.lexicon import CLASSES
from research.context.injection.rules import DESCRIPTIONS, ENOUGH, RULES, STARTS, Rule
from research.context.injection.words import BREAK, LETTER, MARKS, symbols, symbols_of

BEGIN = "!"
_NEAR = 40  # words within which points add up
_IN_CAPITALS = ("AI", "A.I", "KI", "IA", "ИИ", "DAN")  # in small letters these are words of other languages
_NAMES = re.compile(r"\b(?:A\.?I|KI|IA|ИИ|DAN)\b\.?")
_UNSEEN = re.compile(rf"[{IGNORED}*`~\\\U0001f000-\U0001faff]+")
_CHOICE = re.compile(r"\((?:\?:|\?<?[!=])[^()]*\)\??|<[a-z ]+>\?")
_NAME = re.compile(r"<([a-z ]+)>")
_PLACEHOLDER = re.compile(r"<([a-z ]+)>|~(\d+)|@")


def gives_orders(text: str) -> bool:
    """Whether a text holds what reads as orders to a model."""
    return points(text) >= ENOUGH or any(points(inner) >= ENOUGH for inner in decoded(text))


def points(text: str) -> int:
    """The most points within a few sentences."""
    return max((total for total, _ in totals(text)), default=0)


def readable(text: str) -> str:
    """The text as a model would take it, without what keeps a word from being known."""
    if any(name in text for name in _IN_CAPITALS):
        text = _NAMES.sub("llm", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _UNSEEN.sub("", fold(text)).replace("n't ", " not ")


def totals(text: str) -> list[tuple[int, list[str]]]:
    """The points around every sign, and the rules that gave them."""
    text = readable(text)
    line = symbols(text)
    if LETTER * 4 in line:
        line = symbols(joined(text))
    hits = sorted(_hits(line))
    found = []
    for at, (place, _, _) in enumerate(hits):
        near = {rule: weight for start, weight, rule in hits[at:] if start - place <= _NEAR}
        found.append((sum(near.values()), sorted(near)))
    return found


def _hits(line: str) -> Iterator[tuple[int, int, str]]:
    """(place, weight, rule) of every sign."""
    bits = _bits()
    place = 0
    for sentence in line.split(BREAK):
        present = 0
        for symbol in set(sentence):
            present |= bits.get(symbol, 0)
        if tried := _rules_for(present):
            marked = _pattern(STARTS).sub(rf"\g<0>{BEGIN}", BREAK + sentence)
            matches = [(rule, match) for rule in tried if (match := _pattern(rule.pattern).search(marked)) is not None]
            less = any(_pattern(description).search(marked) for description in DESCRIPTIONS) if matches else 0
            for rule, match in matches:
                if rule.weight > less:
                    yield place + match.start(), rule.weight - less, rule.pattern
        place += len(sentence) + 1


@cache
def _bits() -> dict[str, int]:
    """symbol → the classes it stands for, a bit each."""
    found: dict[str, int] = {}
    for number, name in enumerate((*CLASSES, *MARKS)):
        for symbol in symbols_of(name):
            found[symbol] = found.get(symbol, 0) | 1 << number
    return found


@lru_cache(maxsize=1 << 14)
def _rules_for(present: int) -> list[Rule]:
    """The rules that can hold in a sentence with words of these classes."""
    return [rule for needed, rule in _needs() if needed & present == needed]


@cache
def _needs() -> list[tuple[int, Rule]]:
    """Every rule with the classes it cannot do without: those outside of choices and options."""
    number = {name: 1 << at for at, name in enumerate((*CLASSES, *MARKS))}
    found = []
    for rule in RULES:
        plain = rule.pattern
        while (shorter := _CHOICE.sub("", plain)) != plain:
            plain = shorter
        needed = 0
        for name in _NAME.findall(plain):
            needed |= number[name]
        found.append((needed, rule))
    return found


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(_expanded(pattern))


def _expanded(pattern: str) -> str:
    """A rule as a regular expression over symbols; where an order may begin, any word may stand."""

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            found = f"[{symbols_of(match[1])}]"
            return found if match.start() == 0 or pattern[match.start() - 1] in "@=!" else f"{BEGIN}?{found}"
        return f"(?:{BEGIN}?[^{BREAK}{BEGIN}]){{0,{match[2]}}}?" if match[2] else BEGIN

    return _PLACEHOLDER.sub(replace, pattern)
