"""A page's markdown as blocks to be shown: what the marks say, without the marks.

Pages are somebody else's text, so it is one pass over the lines, whatever they hold. Only what the readers of `ingest`
write is known: headings, lists, quotes, fences, tables, and rows without a frame (`Footwear | 11,644 | 6,970`), which
have columns only as long as they have the same number of cells. Readers have joined the lines of a paragraph, so what
stands on lines of its own are labels, addresses, entries. Asterisks and underscores inside a line are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from research.text import block

Kind = Literal["heading", "text", "item", "code", "table"]

# Of a text, where the words stand that fit the question.
Marker = Callable[[str], Sequence[tuple[int, int]]]

BULLET = "• "
_TAB = 4
_LONG, _WRAPPED = 60, 30  # characters of a line that the next one goes on with: any, or one that begins small

_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)")
_BULLET = re.compile(r"\s*[-*+•][ \t]+")
_NUMBER = re.compile(r"\s*\d{1,4}[.)][ \t]+")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_ESCAPED = re.compile(r"\\([#>*+`~-])")
_DRAWN = re.compile(r"[-_=*~.\s]{3,}")  # lines, or dots to a page number
_RULE = re.compile(r"[ \t|:-]+")
_CELL_END = re.compile(r"(?<!\\)\|")
_CELL_MARK = " | "  # in a row without a frame


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, line or list item on one line; code with its lines; or the rows of a table, the first of
    which is its `header` where it has one. `close`: no empty line stands before it."""

    kind: Kind
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    header: bool = False
    close: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """What a line is and what of it is text. `group` tells fences of code apart, and rows by their cells."""

    kind: Kind
    text: str
    number: int
    group: int = 0


def blocks(markdown: str) -> list[Block]:
    """The blocks of a text, made safe for a terminal."""
    found: list[Block] = []
    last = -1  # line of the block before
    for lines in _grouped(_lines(block(markdown).split("\n"))):
        made = _made(lines)
        if made is not None:
            found.append(replace(made, close=lines[0].number == last + 1 and last >= 0))
            last = lines[-1].number
    return found


def _grouped(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    held: list[_Line] = []
    for line in lines:
        if held and not (line.number == held[-1].number + 1 and _goes_on(held[-1], line)):
            yield held
            held = []
        held.append(line)
    if held:
        yield held


def _lines(texts: Sequence[str]) -> Iterator[_Line]:
    """Those with something to show; fences only say what stands between them."""
    fence = 0  # the line that opened one
    for number, text in enumerate(texts, start=1):
        if _FENCE.match(text):
            fence = 0 if fence else number
        elif fence:
            yield _Line("code", text, number, fence)
        elif (line := _line(text, number)).text:
            yield line


def _goes_on(before: _Line, line: _Line) -> bool:
    """Whether a line belongs to the block of the one before it."""
    if line.kind != before.kind:
        return line.kind == "text" and before.kind == "item"
    if line.kind != "text":
        return line.kind in ("table", "code") and line.group == before.group
    if before.text[-1] in ".!?:;":
        return False
    return len(before.text) >= _LONG or (len(before.text) >= _WRAPPED and line.text[0].islower())


def _line(line: str, number: int) -> _Line:
    bare = _QUOTE.sub("", line, count=1).strip()
    if bare.startswith("|") and bare.endswith("|") and len(bare) > 1:
        return _Line("table", bare, number)
    if match := _HEADING.match(line):
        return _Line("heading", line[match.end() :].strip().rstrip("#").rstrip(), number)
    bullet = _BULLET.match(line)
    marks = bare.count(_CELL_MARK)
    if marks > (bullet is not None):  # "- loss (dict | None)" is an entry
        return _Line("table", bare, number, marks)
    if bullet or _NUMBER.match(line):
        return _Line("item", f"{BULLET}{line[bullet.end() :].strip()}" if bullet else bare, number)
    if _DRAWN.fullmatch(bare):
        bare = ""
    return _Line("text", _ESCAPED.sub(r"\1", bare, count=1) if bare.startswith("\\") else bare, number)


def _made(lines: Sequence[_Line]) -> Block | None:
    kind = lines[0].kind
    if kind == "table":
        rows = tuple(_cells(line) for line in lines if not _RULE.fullmatch(line.text))
        header = len(lines) > 1 and _RULE.fullmatch(lines[1].text) is not None
        return Block("table", rows=rows, header=header) if rows else None
    if kind == "code":
        code = "\n".join(line.text.expandtabs(_TAB) for line in lines).rstrip("\n")
        return Block("code", code) if code else None
    return Block(kind, " ".join(" ".join(line.text for line in lines).split()))


def _cells(row: _Line) -> tuple[str, ...]:
    parts = row.text.split(_CELL_MARK) if row.group else _CELL_END.split(row.text[1:-1])
    return tuple(" ".join(part.replace("\\|", "|").split()) for part in parts)
