"""The same for the headers of what is no page, where several sources are cited: found in any text, and made harmless.

    [Code 2: src/dates.py:10, parse_date]     [Experience 5: debugging, read-the-error, falsified]
    [Commit 3: 1a2b3c4, 2025-01-02]           [Value 6: root_cause, 12 experiences]
    [Memory 4: decision, 2025-01-02]

Their words are those of programs, too: `x[value - 2]` is no header, and a line `Code 404: not found` is none. So a
bracket counts with a blank between word and number, or where it goes on as a header does; and without a bracket a line
counts that names what such a header names, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from research.context.injection.folding import fold
from research.context.injection.headers import (
    GAP,
    SIGN,
    bracket_before,
    closes,
    is_number,
    neutralize_headers,
    neutralize_name,
    opens,
    spelt,
)

WORDS = ("code", "commit", "memory", "experience", "value")

_TAILS = {
    "code": r"[^\n,]{1,200}:\s*\d+\s*,[^\n,]{1,200}",
    "commit": r"[0-9a-f]{7,40}\s*,\s*\d{4}-\d\d-\d\d",
    "memory": r"[^\n,]{1,100},\s*\d{4}-\d\d-\d\d",
    "experience": r"[^\n,]{1,100},[^\n,]{1,100},\s*(?:confirmed|falsified|abandoned)",
    "value": r"[^\n,]{1,100},\s*\d+\s*experiences?",
}
_LEAD = re.compile(r"[\W_]*")
_BEFORE = 40  # characters of decoration before a header in a line
_GOES_ON = re.compile(r"[^\w\n]{0,8}?:[^\n\]]{1,200},[^\n]{1,200}\]")


def neutralize_all(text: str) -> str:
    """The text with a round bracket wherever a header of any source seems to begin; every other character stays."""
    text = neutralize_headers(text)
    parts, end = [], 0
    for place, bracket in _places(text):
        parts += [text[end:place], "("]
        end = place + bracket
    return "".join(parts) + text[end:]


def forges_item_header(text: str) -> bool:
    return next(_places(text), None) is not None


def safe_name(name: str) -> str:
    """A name inside a header: it opens no other one, and no bracket of it closes what it has not opened."""
    shown, depth = [], 0
    for character in neutralize_all(neutralize_name(name)):
        alone = depth == 0 and closes(character)
        if closes(character):
            depth = max(0, depth - 1)
        elif opens(character, character):
            depth += 1
        shown.append(")" if alone else character)
    return "".join(shown)


def _places(text: str) -> Iterator[tuple[int, bool]]:
    """Where a header seems to begin, in order, and whether a bracket stands there."""
    folded = fold(text)
    last = -1
    for match in _numbered().finditer(folded):
        start = match.start()
        if not is_number(match["number"]):
            continue
        bracket = bracket_before(text, folded, start)
        if bracket is not None and _LEAD.fullmatch(folded, bracket, start):
            found = (bracket, True) if _is_meant(match, folded) else None
        else:
            found = (start, False) if _is_line(match, folded) else None
        if found is not None and found[0] > last:
            last = found[0]
            yield found


def _is_meant(match: re.Match[str], folded: str) -> bool:
    """Whether a blank alone parts word and number, or it goes on as a header does: with a colon, a name and a comma."""
    gap = match["gap"]
    blank = bool(gap) and not gap.strip("\x00 \t\r\n\xa0#")
    return blank or _GOES_ON.match(folded, match.end()) is not None


def _is_line(match: re.Match[str], folded: str) -> bool:
    line = folded.rfind("\n", max(0, match.start() - _BEFORE), match.start()) + 1
    if match.start() - line > _BEFORE:
        return False
    before = folded[line : match.start()]
    if "(" in before or _LEAD.fullmatch(before) is None:
        return False
    word = next(word for word in WORDS if match[word])
    return _line_end(word).match(folded, match.end()) is not None


@cache
def _numbered() -> re.Pattern[str]:
    words = "|".join(f"(?P<{word}>{spelt(word)})" for word in WORDS)
    number = r"(?P<number>\d+|[^\W\d_]{1,9}(?![^\W\d_]))"
    return re.compile(rf"(?<![^\W_])(?:{words})(?P<gap>{GAP}){SIGN}{number}")


@cache
def _line_end(word: str) -> re.Pattern[str]:
    return re.compile(rf"[^\w\n]{{0,8}}?:\s*{_TAILS[word]}[\W_]*?(?:\n|$)")
