"""The line of a page that best shows why it was found, and where the question's words stand in a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from research.models import Item
from research.store.fulltext.analyzer import SIGNS, analyze
from research.text import UNSPACED

ELLIPSIS = "…"
_HIDDEN = "\u0300-\u036f\u0591-\u05c7\u00ad\u200c\u200d\u2060\ufeff"  # accents and joiners, part of their word

# Characters of scripts without spaces stand alone, so that a window can begin and end between any two.
_UNIT = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_WORD = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|\d+(?:,\d\d\d(?!\d))*(?:\.\d+)*|(?:[^\W\d_{UNSPACED}][{SIGNS}{_HIDDEN}]*)+"
)
# Blanks here never reach into the next line: a page of empty lines would be gone over again from each of them.
_MARKUP = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+|>[ \t]?|```\w*|(?=[^\n|]*\|)[ \t|:-]+$)", re.MULTILINE)
# A line of context before the first word found reads better than a passage that begins with it.
_LEAD = 0.25


@dataclass(frozen=True, slots=True)
class _Unit:
    start: int
    end: int
    found: frozenset[str]  # words of the question in it


def page_snippet(item: Item, query: str, width: int = 240) -> str:
    """The best passage of a page in one line, a row with its table's header; without passages, the best window."""
    best = next((passage for passage in item.passages if passage.end > passage.start), None)
    if best is None:
        return snippet(item.text, query, width)
    text = item.text[best.start : best.end]
    if "|" in text:
        rows = [unit for unit in item.units if unit.header is not None and unit.end > best.start]
        header = rows[0].header if rows and rows[0].start < best.end else None
        if header is not None and header[1] <= best.start:
            text = f"{item.text[header[0] : header[1]]}\n{text}"
    return snippet(text, query, width)


def matches(text: str, question: str) -> list[tuple[int, int]]:
    """Where words of the question stand in a text, as full-text search compares them: spans in order, apart."""
    wanted = frozenset(analyze(question))
    known: dict[str, bool] = {}

    def is_wanted(word: str) -> bool:
        if word not in known:
            known[word] = not wanted.isdisjoint(analyze(word))
        return known[word]

    found: list[tuple[int, int]] = []
    for match in _WORD.finditer(text) if wanted else ():
        start, end = match.span()
        if match.lastgroup != "unspaced":
            if is_wanted(match.group()):
                found.append((start, end))
            continue
        for at in range(start, max(start + 1, end - 1)):  # these scripts are searched by pairs of characters
            if is_wanted(text[at : min(end, at + 2)]):
                joins = found and found[-1][1] >= at
                found[-1:] = [(found[-1][0], min(end, at + 2))] if joins else [*found[-1:], (at, min(end, at + 2))]
    return found


def snippet(markdown: str, query: str, width: int = 240) -> str:
    """The window with most of the question's words: one line of at most `width` characters, cut between words."""
    text = " ".join(_MARKUP.sub(" ", markdown).replace("|", " ").split())
    if len(text) <= width:
        return text
    units = _units(text, frozenset(analyze(query)))
    room = max(1, width - 2 * len(ELLIPSIS) - 2)  # a mark and a blank on either side
    first, last = _best(units, room)
    first, last = _widen(units, first, last, room)
    start, end = units[first].start, min(units[last].end, units[first].start + room)
    before = f"{ELLIPSIS} " if first > 0 else ""
    after = f" {ELLIPSIS}" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"


def _units(text: str, wanted: frozenset[str]) -> list[_Unit]:
    known: dict[str, frozenset[str]] = {}
    units = []
    for match in _UNIT.finditer(text):
        start, end = match.span()
        # Unspaced scripts are indexed as pairs of characters.
        seen = text[start : start + 2].rstrip() if end - start == 1 else match.group()
        if seen not in known:
            known[seen] = wanted.intersection(analyze(seen))
        units.append(_Unit(start, end, known[seen]))
    return units


def _best(units: Sequence[_Unit], room: int) -> tuple[int, int]:
    """First and last unit of the window whose distinct question words are rarest on the page."""
    on_page = Counter(word for unit in units for word in unit.found)
    inside: Counter[str] = Counter()
    best, best_value, first = (0, 0), 0.0, 0
    for last, unit in enumerate(units):
        inside.update(unit.found)
        while first < last and unit.end - units[first].start > room:
            inside.subtract(units[first].found)
            first += 1
        # A word that stands everywhere says less; a second occurrence in the window a little more than none.
        value = sum((1 + 0.1 * (count - 1)) / on_page[word] ** 0.5 for word, count in inside.items() if count > 0)
        if value > best_value + 1e-9:
            best, best_value = (first, last), value
    return best


def _widen(units: Sequence[_Unit], first: int, last: int, room: int) -> tuple[int, int]:
    """Shrink to the words found, then fill the room: a quarter before them, the rest after, the remainder before."""
    hits = [i for i in range(first, last + 1) if units[i].found]
    if hits:
        first, last = hits[0], hits[-1]
    spare = room - (units[last].end - units[first].start)
    lead = units[first].start - int(spare * _LEAD)
    while first > 0 and units[first - 1].start >= lead:
        first -= 1
    while last + 1 < len(units) and units[last + 1].end - units[first].start <= room:
        last += 1
    while first > 0 and units[last].end - units[first - 1].start <= room:
        first -= 1
    return first, last
