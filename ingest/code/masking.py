"""Secrets that stand in code are masked before anything of it is kept.

In a language that is taken apart, a value is one if it is written out, in a string or a comment: `password = typed` is
code. Keys by their makers' marks are masked wherever they stand. What cannot be looked through is not kept: whoever
calls this lets its error end the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from research.governance.keys import keys
from research.governance.redaction import BaseRedactor


@cache
def _redactor() -> BaseRedactor:
    return BaseRedactor("secrets")


def mask(text: str, quoted: Sequence[tuple[int, int]] | None = None) -> tuple[str, int]:
    """The text with `<KIND>` for each secret, in as many lines, and how many there were. `quoted`: where strings and
    comments are, as characters; None: anything may be a value."""
    found = _redactor().find(text)
    if quoted is not None and found:
        marked = [(start, end) for start, end, _ in keys(text)]
        found = [
            each
            for each in found
            if _stands_in(each.start, each.end, quoted) or _stands_in(each.start, each.end, marked)
        ]
    parts, at = [], 0
    for start, end, kind in found:
        parts += [text[at:start], f"<{kind.upper()}>", "\n" * text.count("\n", start, end)]
        at = end
    return "".join([*parts, text[at:]]), len(found)


def _stands_in(start: int, end: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first < end and start < last for first, last in ranges)
