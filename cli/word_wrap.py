"""A text that comes piece by piece, broken between words where a line of the terminal is full."""

from __future__ import annotations

import re

from cli.layout import cells

_PARTS = re.compile(r"\n| +|[^ \n]+")


class WordWrap:
    """Passes on what it can at once: a word is held back only until it is known whether it fits its line."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._at = 0  # cells of the line that are taken
        self._held = ""  # a gap, and the word after it as far as it has come

    def feed(self, text: str) -> str:
        """What may be shown now."""
        shown = []
        for part in _PARTS.findall(text):
            if part == "\n":
                shown += [self.end(), part]
                self._at = 0
            elif part.isspace():
                shown.append("" if self._held.isspace() else self.end())
                self._held += part
            elif self._held:
                self._held += part
            else:
                shown.append(part)
                self._at += cells(part)
        return "".join(shown)

    def end(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        if self._at and self._at + cells(held) > self._width:
            word = held.lstrip(" ")
            self._at = cells(word) or self._at
            return f"\n{word}" if word else ""
        self._at += cells(held)
        return held
