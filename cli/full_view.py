"""The whole context on a terminal, laid out for reading: through a pager where it is longer than the screen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cli.answer_notes import Note
from cli.answer_view import Screen, footer, note_lines, said
from cli.layout import cells, fits_in_columns, marked, passage_lines, row_lines, shorten_end, table_lines
from cli.views import plain
from research.markdown import Block, Marker, blocks
from research.visible_text import phrase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from research.models import ResearchContext

# A page's own text has no such line: it is escaped.
_CITATION = re.compile(r"^\[Document \d+: .*, Page \d+\]$", re.MULTILINE)
_MIXED = re.compile(
    r"^\[(?:Document \d+: .*, Page \d+|(?:Code|Commit|Memory|Experience|Value) \d+: .*)\]$", re.MULTILINE
)
_QUESTION = 500  # cells: a pasted page as a question need not be shown again in full
_QUOTES = 30  # lines
_LEAST_COLUMN = 9  # cells: in narrower columns a table is harder to read than its rows one by one


def full_rendering(
    context: ResearchContext, screen: Screen, mark: Marker, notes: Sequence[Note]
) -> Iterator[RenderableType]:
    """The question, what answers it, the pages, and the line that ends every answer."""
    yield plain(shorten_end(phrase(context.query), _QUESTION), "bold")
    yield from said(context, screen, _QUOTES, mark)
    yield plain("")
    yield from context_rendering(context.formatted_text, screen.width, mark, mixed=bool(context.types))
    yield from footer(context, screen.width)
    yield from note_lines(notes, screen.width)


def context_rendering(formatted: str, width: int, mark: Marker, *, mixed: bool = False) -> Iterator[RenderableType]:
    """The pages of a context, each under its citation header; `mixed`: also what is no page."""
    headers = list((_MIXED if mixed else _CITATION).finditer(formatted))
    ends = [*(header.start() for header in headers[1:]), len(formatted)]
    for header, end in zip(headers, ends, strict=False):  # without headers there is no page
        yield plain(phrase(header.group()), "bold cyan")
        yield from page_rendering(formatted[header.end() : end], width, mark)
        yield plain("")


def page_rendering(markdown: str, width: int, mark: Marker) -> Iterator[RenderableType]:
    """A page's text without its marks: headings stand out, tables have columns."""
    for number, found in enumerate(blocks(markdown)):
        if number and not found.close:
            yield plain("")
        yield from _rendering(found, width, mark)


def _rendering(found: Block, width: int, mark: Marker) -> Iterator[RenderableType]:
    if found.kind == "heading":
        yield plain(found.text, "bold underline")
    elif found.kind == "code":
        yield plain(found.text, "dim")
    elif found.kind == "table":
        yield from _table(found.rows, width, mark)
    else:
        yield from passage_lines([found], width, mark)


def _table(rows: Sequence[Sequence[str]], width: int, mark: Marker) -> Iterator[RenderableType]:
    columns = max(len(row) for row in rows)
    if fits_in_columns(rows, width):
        yield from table_lines(rows, width, mark)
        return
    if columns == 1 or columns * (_LEAST_COLUMN + 2) > width:
        for row in rows:
            if any(cells(cell) > width for cell in row):
                yield from (line for cell in row if cell for line in passage_lines([Block("text", cell)], width, mark))
            else:
                yield from (marked(line, mark) for line in row_lines(row, width))
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)  # long cells wrap inside their column
    for _ in range(columns):
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(marked(cell, mark) for cell in row), *[""] * (columns - len(row)))
    yield table
