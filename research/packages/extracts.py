"""Extractive summaries: the sentences, rows and entries of a text that are nearest to an intent, in their order.

Nothing is composed. What may try to steer a model is left out; what is left out is marked.
"""

from __future__ import annotations

import math

from research.context.fit import CUT_MARK
from research.context.injection.detector import signals_of
from research.context.tokens import TokenCounter
from research.store.fulltext.analyzer import analyze
from research.units import Unit, split

_LOOKED_AT = 200_000  # characters of a text
_MOST_UNITS = 2_000
_FIRST = 0.15  # what the beginning of a text counts: it often says what it is about


def extract(text: str, words: frozenset[str], most: int, counter: TokenCounter) -> str:
    """As much as has `most` tokens; empty if not one sentence has so few."""
    looked = text[:_LOOKED_AT]
    units = [unit for unit in split(looked)[:_MOST_UNITS] if looked[unit.start : unit.end].strip()]
    mark = counter.count(f"\n{CUT_MARK}\n")
    chosen: set[int] = set()
    left = most
    for index in sorted(range(len(units)), key=lambda at: (-_worth(looked, units[at], at, words), at)):
        if left <= mark:
            break
        said = looked[units[index].start : units[index].end]
        tokens = counter.count(said) + mark if len(said) <= 64 * left else left + 1
        if tokens <= left and units[index].kind != "heading" and not signals_of(said):
            chosen.add(index)
            left -= tokens
    joined = _joined(looked, units, sorted(chosen))
    while chosen and counter.count(joined) > most:
        chosen.discard(max(chosen))
        joined = _joined(looked, units, sorted(chosen))
    return joined


def words_of(intent: str) -> frozenset[str]:
    return frozenset(analyze(intent))


def overlap(text: str, words: frozenset[str]) -> float:
    """How much of an intent's words a text has, 0 to 1."""
    return len(words & set(analyze(text[:_LOOKED_AT]))) / max(1, len(words))


def _worth(text: str, unit: Unit, at: int, words: frozenset[str]) -> float:
    said = set(analyze(text[unit.start : unit.end]))
    return len(words & said) / math.sqrt(len(said) + 4) + (_FIRST if at == 0 else 0.0)


def _joined(text: str, units: list[Unit], chosen: list[int]) -> str:
    """In order, and what is left out between them marked."""
    parts: list[str] = []
    last = -1
    for index in chosen:
        if index != last + 1:
            parts.append(CUT_MARK)
        parts.append(text[units[index].start : units[index].end].strip())
        last = index
    if parts and last < len(units) - 1:
        parts.append(CUT_MARK)
    return "\n".join(parts)
