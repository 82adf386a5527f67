"""Text put into the cells of a terminal: shortened where it may be, wrapped between words, tables in columns.

Widths are cells, not characters: a Chinese one takes two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from cli.markdown import BULLET, Block
from cli.views import plain

if TYPE_CHECKING:
    from rich.text import Text

ELLIPSIS = "…"
GAP = "  "  # between the columns of a table
BETWEEN = " · "  # the cells of a row that does not fit in columns

# Of a text, where the words stand that fit the question.
Marker = Callable[[str], Sequence[tuple[int, int]]]

MARK = "bold"


def cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def shorten_end(text: str, width: int) -> str:
    """The beginning of a text, and an ellipsis where something is missing."""
    if cells(text) <= width:
        return text
    return _beginning(text, width - 1) + ELLIPSIS if width > 0 else ""


def shorten_middle(text: str, width: int) -> str:
    """The beginning and the end of a name: the one tells what it is, the other which."""
    if cells(text) <= width:
        return text
    if width < 3:
        return shorten_end(text, width)
    end = _beginning(text[::-1], (width - 1) // 2)[::-1]
    return _beginning(text, width - 1 - cells(end)) + ELLIPSIS + end


def shorten_path(path: str, width: int, between: str = " > ") -> str:
    """Headings, outermost first: those in the middle go before the last one is touched."""
    parts = path.split(between)
    if cells(path) <= width or len(parts) == 1:
        return shorten_middle(path, width)
    for shown in (
        *(between.join([parts[0], ELLIPSIS, *parts[i:]]) for i in range(2, len(parts))),
        between.join([ELLIPSIS, parts[-1]]),
    ):
        if cells(shown) <= width:
            return shown
    return shorten_middle(parts[-1], width)


def _beginning(text: str, width: int) -> str:
    """As many characters as fit into the width."""
    end = used = 0
    for end, character in enumerate(text):
        used += cells(character)
        if used > width:
            return text[:end]
    return text[: end + 1] if text else ""


def packed(parts: Sequence[str], width: int, between: str = BETWEEN) -> list[str]:
    """Short parts on as few lines as they need, broken only between them."""
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]}{between}{part}" if lines else ""
        if lines and cells(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return [shorten_end(line, width) for line in lines]


def marked(text: str, mark: Marker, style: str = "") -> Text:
    shown = plain(text, style)
    for start, end in mark(text):
        shown.stylize(MARK, start, end)
    return shown


def wrapped(text: Text, width: int) -> list[Text]:
    """Lines of at most `width` cells, broken between words where there are any."""
    from rich.console import Console

    lines = text.wrap(Console(width=max(1, width)), max(1, width), overflow="fold")
    for line in lines:
        line.rstrip()
    return list(lines)


def passage_lines(found: Sequence[Block], width: int, mark: Marker) -> list[Text]:
    """A passage for a glance: marks on the words that fit, tables in columns where they fit."""
    return [line for each in found for line in _passage_lines(each, width, mark)]


def _passage_lines(found: Block, width: int, mark: Marker) -> Iterator[Text]:
    if found.kind == "table":
        yield from table_lines(found.rows, width, mark)
    elif found.kind == "code":
        yield from (marked(shorten_end(line, width), mark) for line in found.text.split("\n") if line.strip())
    elif found.kind == "item" and found.text.startswith(BULLET):
        lines = wrapped(marked(found.text.removeprefix(BULLET), mark), width - len(BULLET))
        for number, line in enumerate(lines):
            yield plain(" " * len(BULLET) if number else BULLET).append_text(line)
    else:
        yield from wrapped(marked(found.text, mark, "dim" if found.kind == "heading" else ""), width)


def table_lines(rows: Sequence[Sequence[str]], width: int, mark: Marker) -> Iterator[Text]:
    """The rows in columns; as text, broken between cells, where they are too wide for that."""
    columns = max(len(row) for row in rows)
    widths = [max((cells(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]
    if sum(widths) + len(GAP) * (columns - 1) <= width:
        for row in rows:
            line = plain("")
            for cell, room in zip(row, widths, strict=False):
                line.append_text(marked(cell, mark)).append(" " * (room - cells(cell)) + GAP)
            line.rstrip()
            yield line
        return
    for row in rows:
        yield from (marked(line, mark) for line in packed([cell for cell in row if cell], width))


def window(lines: Sequence[Text], count: int, width: int) -> list[Text]:
    """The `count` lines that hold most of the marks, the first of such; an ellipsis where lines are missing."""
    if len(lines) <= count:
        return [line.copy() for line in lines]
    held = [sum(span.style == MARK for span in line.spans) for line in lines]
    best = max(range(len(lines) - count + 1), key=lambda i: (sum(held[i : i + count]), -i))
    chosen = [line.copy() for line in lines[best : best + count]]
    if chosen and best + count < len(lines):
        last = chosen[-1]
        last.truncate(max(1, width - 2))
        last.append(f" {ELLIPSIS}")
    return chosen
