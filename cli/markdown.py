"""A page's markdown as blocks to be shown: what the marks say, without the marks.

Pages are somebody else's text, so it is one pass over the lines, whatever they hold. Only what the readers of `ingest`
write is known: headings, lists, quotes, fences, tables. Asterisks and underscores inside a line are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cli.output import block

Kind = Literal["heading", "text", "item", "code", "table"]

BULLET = "• "
_TAB = 4

_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)")
_BULLET = re.compile(r"\s*[-*+•][ \t]+")
_NUMBER = re.compile(r"\s*\d{1,4}[.)][ \t]+")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_ESCAPED = re.compile(r"\\([#>*+`~-])")
_LINE = re.compile(r"[-_=*~.\s]{3,}")  # drawn, or left of dots to a page number
_RULE = re.compile(r"[ \t|:-]+")
_CELL_END = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading or list item on one line; code with its lines; or the rows of a table."""

    kind: Kind
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def blocks(markdown: str) -> list[Block]:
    """The blocks of a text, made safe for a terminal."""
    return list(_blocks(block(markdown).split("\n")))


def _blocks(lines: list[str]) -> Iterator[Block]:
    open_lines: list[str] = []  # of the block that is not at its end
    kind: Kind = "text"
    for line in [*lines, ""]:
        if kind == "code":
            if _FENCE.match(line):
                yield from _closed(kind, open_lines)
                kind, open_lines = "text", []
            else:
                open_lines.append(line)
            continue
        begins, text = _kind_of(line)
        goes_on = begins == kind in ("text", "table") or (begins == "text" and kind == "item")
        if not goes_on or not text:
            yield from _closed(kind, open_lines)
            kind, open_lines = begins, []
        if text:
            open_lines.append(text)
    yield from _closed(kind, open_lines)


def _kind_of(line: str) -> tuple[Kind, str]:
    """What a line belongs to, and what of it is text."""
    bare = _QUOTE.sub("", line, count=1).strip()
    kind: Kind = "text"
    if _FENCE.match(line):
        kind, bare = "code", ""
    elif bare.startswith("|") and bare.endswith("|") and len(bare) > 1:
        kind = "table"
    elif match := _HEADING.match(line):
        kind, bare = "heading", line[match.end() :].strip().rstrip("#").rstrip()
    elif match := _BULLET.match(line):
        kind, bare = "item", f"{BULLET}{line[match.end() :].strip()}"
    elif _NUMBER.match(line):
        kind = "item"
    elif _LINE.fullmatch(bare):
        bare = ""
    elif bare.startswith("\\"):
        bare = _ESCAPED.sub(r"\1", bare, count=1)
    return kind, bare


def _closed(kind: Kind, lines: list[str]) -> Iterator[Block]:
    if not lines:
        return
    if kind == "table":
        rows = tuple(_cells(line) for line in lines if not _RULE.fullmatch(line))
        if rows:
            yield Block("table", rows=rows)
    elif kind == "code":
        yield Block("code", "\n".join(line.expandtabs(_TAB) for line in lines).rstrip("\n"))
    else:
        yield Block(kind, " ".join(" ".join(lines).split()))


def _cells(row: str) -> tuple[str, ...]:
    parts = _CELL_END.split(row[1:-1])
    return tuple(" ".join(part.replace("\\|", "|").split()) for part in parts)
