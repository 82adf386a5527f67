"""Drafts to `Block`s: the markdown of each, and its box as fractions of the page."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import median

from ingest.pdf.hyphens import Vocabulary, join_lines
from ingest.pdf.paragraphs import Draft, Row, marker_of
from research.boxes import Box, union
from research.records import Block

_LEADERS = re.compile(r"([._\-–—=*·…])(?: ?\1){4,}")
_LIKE_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_BACKTICKS = re.compile(r"`{3,}")


def box_of(drafts: list[Draft]) -> Box:
    """The box around drafts, in points."""
    return union([(row.x0, row.y0, row.x1, row.y1) for draft in drafts for row in draft.rows])


def heading_text(draft: Draft, vocabulary: Vocabulary | None) -> str:
    return shrink_leaders(join_lines((row.text for row in draft.rows), vocabulary))


def shrink_leaders(text: str) -> str:
    """Dot leaders and rules made of characters, cut to three: they say nothing and cost tokens."""
    return _LEADERS.sub(r"\1\1\1", text)


def prose_block(draft: Draft, box: Box, vocabulary: Vocabulary | None) -> Block:
    text = heading_text(draft, vocabulary)
    # What is no heading on the page must not turn into one here.
    return Block("paragraph", f"\\{text}" if _LIKE_HEADING.match(text) else text, box)


def rows_block(draft: Draft, box: Box) -> Block:
    """Unruled rows: each visual row a line, so that a label and its figures stay together."""
    return Block("table", "\n".join(shrink_leaders(row.text) for row in draft.rows), box)


def list_block(drafts: list[Draft], box: Box, vocabulary: Vocabulary | None) -> Block:
    """A run of list items, indented by where they stand."""
    size = max(drafts[0].rows[0].size, 1.0)
    edges: list[float] = []
    for x0 in sorted({draft.rows[0].x0 for draft in drafts}):
        if not edges or x0 > edges[-1] + 0.8 * size:
            edges.append(x0)
    items = []
    for draft in drafts:
        depth = max(index for index, edge in enumerate(edges) if edge <= draft.rows[0].x0)
        items.append("  " * min(depth, 3) + _item(heading_text(draft, vocabulary)))
    return Block("list", "\n".join(items), box)


def _item(text: str) -> str:
    marker = marker_of(text)
    if marker[:1].isdigit():
        return text
    if marker[:1].isalpha() or marker[:1] == "(":
        return f"- {text}"
    return f"- {text[len(marker) :]}"


def code_block(draft: Draft, box: Box) -> Block:
    """Monospaced rows, fenced, with the indentation they have on the page."""
    rows = draft.rows
    widths = [(line.x1 - line.x0) / len(line.text) for row in rows for line in row.lines if line.x1 > line.x0]
    advance = max(median(widths), 0.5) if widths else 5.0
    left = min(row.x0 for row in rows)
    steps = [b.middle - a.middle for a, b in pairwise(rows)]
    usual = median(steps) if steps else 0.0
    lines: list[str] = []
    for index, row in enumerate(rows):
        if index and steps[index - 1] > 1.7 * usual > 0:
            lines.append("")
        lines.append(_code_line(row, left, advance))
    text = "\n".join(lines)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return Block("code", f"{fence}\n{text}\n{fence}", box)


def _code_line(row: Row, left: float, advance: float) -> str:
    text = ""
    for line in row.lines:
        column = min(round((line.x0 - left) / advance), 200)
        text += " " * max(column - len(text), 1 if text else 0) + line.text
    return text


def picture_block(box: Box) -> Block:
    return Block("picture", "", box)
