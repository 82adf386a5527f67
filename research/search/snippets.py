"""The line of a page that best shows why it was found, and where the question's words stand in a text."""

from __future__ import annotations

import re
from collections import Counter

from research.models import Item
from research.store.fulltext.analyzer import SIGNS, analyze
from research.text import UNSPACED

ELLIPSIS = "…"
_HIDDEN = "\u0300-\u036f\u0591-\u05c7\u00ad\u200c\u200d\u2060\ufeff"  # accents and joiners, part of their word

_WORD = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|\d+(?:,\d\d\d(?!\d))*(?:\.\d+)*|(?:[^\W\d_{UNSPACED}][{SIGNS}{_HIDDEN}]*)+"
)
# Blanks here never reach into the next line: a page of empty lines would be gone over again from each of them.
_MARKUP = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+|>[ \t]?|```\w*|(?=[^\n|]*\|)[ \t|:-]+$)", re.MULTILINE)
# A line of context before the first word found reads better than a passage that begins with it.
_LEAD = 0.25


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
    """One line of at most `width` characters around the question's rarest word in a text, cut between words."""
    text = " ".join(_MARKUP.sub(" ", markdown).replace("|", " ").split())
    if len(text) <= width:
        return text
    room = max(1, width - 2 * len(ELLIPSIS) - 2)  # a mark and a blank on either side
    spans = matches(text, query)
    on_page = Counter(text[start:end].casefold() for start, end in spans)
    first = min((on_page[text[start:end].casefold()], start, end) for start, end in spans)[1:] if spans else (0, 0)
    start = max(0, min(first[0] - int(room * _LEAD), len(text) - room))
    if start and (blank := text.find(" ", start - 1, first[0])) >= 0:
        start = blank + 1
    end = min(len(text), start + room)
    if end < len(text) and (blank := text.rfind(" ", max(start, first[1]), end + 1)) > start:
        end = blank
    before, after = f"{ELLIPSIS} " if start else "", f" {ELLIPSIS}" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"
