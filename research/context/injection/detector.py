"""Whether a text gives orders to a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from research.context.injection.disguises import decoded, joined
from research.context.injection.folding import IGNORED, fold
from research.context.injection.rules import DESCRIPTIONS, RULES, STARTS, Rule
from research.context.injection.words import BREAK, LETTER, class_pattern, symbols

BEGIN = "!"
ENOUGH = 2  # points that make a mark
_NEAR = 45  # words within which points add up
_IN_CAPITALS = ("AI", "A.I", "KI", "IA", "ИИ", "DAN")  # in small letters these are words of other languages
_NAMES = re.compile(r"\b(?:A\.?I|KI|IA|ИИ|DAN)\b\.?")
_UNSEEN = re.compile(rf"[{IGNORED}*`~\\\U0001f000-\U0001faff]+")
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
    rules = _compiled()
    for sentence in rules.sentence.finditer(line):
        present = set(sentence[0])
        marked, discount = "", 0
        for keys, rule, pattern in rules.patterns:
            if keys.isdisjoint(present):
                continue
            if not marked:
                marked = rules.start.sub(rf"\g<0>{BEGIN}", sentence[0])
                discount = any(description.search(marked) for description in rules.descriptions)
            if rule.weight > discount and (match := pattern.search(marked)) is not None:
                yield sentence.start() + match.start(), rule.weight - discount, rule.pattern


class _Compiled(NamedTuple):
    sentence: re.Pattern[str]  # with a word that some rule asks for
    start: re.Pattern[str]
    descriptions: list[re.Pattern[str]]
    patterns: list[tuple[frozenset[str], Rule, re.Pattern[str]]]


@cache
def _compiled() -> _Compiled:
    keys = "".join({symbol for rule in RULES for symbol in class_pattern(rule.key).strip("[]")})
    return _Compiled(
        re.compile(rf"\{BREAK}[^{BREAK}]*[{keys}][^{BREAK}]*"),
        re.compile(_expanded(STARTS)),
        [re.compile(_expanded(description)) for description in DESCRIPTIONS],
        [
            (frozenset(class_pattern(rule.key).strip("[]")), rule, re.compile(_expanded(rule.pattern)))
            for rule in RULES
        ],
    )


def _expanded(pattern: str) -> str:
    """A rule as a regular expression over symbols; where an order may begin, any word may stand."""

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            found = class_pattern(match[1])
            return found if match.start() == 0 or pattern[match.start() - 1] in "@=!" else f"{BEGIN}?{found}"
        return f"(?:{BEGIN}?[^{BREAK}{BEGIN}]){{0,{match[2]}}}?" if match[2] else BEGIN

    return _PLACEHOLDER.sub(replace, pattern)
