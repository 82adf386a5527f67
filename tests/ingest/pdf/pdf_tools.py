"""Words and lines to draw test pages with."""

from __future__ import annotations

from typing import Any

PROSE = (
    "The river rises in the hills above the town and runs for forty miles before it meets the sea. "
    "Every spring the water climbs over the meadows, and every summer the farmers mow what it has fed. "
)


def add_lines(page: Any, x: float, y: float, lines: list[str], *, size: float = 11, font: str = "helv") -> float:
    """Write lines one under the other; returns where the next one would stand."""
    for line in lines:
        page.insert_text((x, y), line, fontsize=size, fontname=font)
        y += size * 1.3
    return y


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` characters."""
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) + 1 > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line]
