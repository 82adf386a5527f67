"""`ctx ask` on a terminal: the answer as quotes, the sources, and what else can be typed, on one screen.

Room is given in the order in which it is missed: every source has its line, then the quotes have theirs, then the
passages of the first sources, two lines each and a third where there is room.

The whole context on a terminal, laid out for reading: through a pager where it is longer than the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cli.layout import (
    BETWEEN,
    ELLIPSIS,
    cells,
    excerpt,
    fits_in_columns,
    head_lines,
    link,
    marked,
    packed,
    passage_lines,
    row_lines,
    shorten_end,
    shorten_middle,
    shorten_path,
    table_lines,
    wrapped,
)
from cli.views import Note, documents_note, page_name, plain
from research.markdown import Block, Marker, blocks
from research.text import one_line, phrase

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from research.models import Quote, ResearchContext, SourceDocument

_PROMPT = 2  # rows for the shell's prompt: what scrolls away for it would be the answer's first line
_WITH_PASSAGE = 5  # sources
_FURTHER = 0.5  # of the first source's score, below which one that is not quoted is only counted
_LEAST_SOURCES = 3
_PASSAGE = (2, 1)  # lines each gets in turn
_QUOTE = 3  # lines of one quote, where several are shown
_LEAST_SECTION = 12  # cells: less of a heading says nothing
_LEAST_LABEL = 8  # cells of a page and its printed label that are always there
_LEAST_NAME = 40  # cells that a file's name keeps before its section gives way
_VALUE_AT_END = re.compile(r"\d[^\n]{0,12}$")
_NOTE = 2  # lines of a note
_NOTES = 3


@dataclass(frozen=True, slots=True)
class Screen:
    """What there is to draw on."""

    width: int
    height: int
    links: bool = False

    @property
    def room(self) -> int:
        return max(1, self.height - _PROMPT)


def answer_lines(context: ResearchContext, screen: Screen, mark: Marker, notes: Sequence[Note] = ()) -> list[Text]:
    """The lines of the screen, none wider than it."""
    sources = context.get_citation_map()
    indent = len(f"[{len(sources)}] ")
    lines = [source_line(f"[{number}]".rjust(indent - 1), source, screen) for number, source in sources.items()]
    more = len(lines) - _worth_listing(context)
    del lines[len(lines) - more :]
    ending = [*footer(context, screen.width), *note_lines(notes, screen.width)]
    spare = screen.room - len(lines) - bool(more) - len(ending) - 2  # two blank lines
    answer = said(context, screen, max(1, spare if spare < 3 else spare // 2), mark)
    passages = _passages(context, screen, spare - len(answer), mark, indent)
    gaps = spare >= 0
    shown = [*answer, *([plain("")] if answer and gaps else [])]
    for line, passage in zip(lines, passages, strict=False):
        shown += [line, *passage]
    if more:
        further = f"… and {more} further {'page' if more == 1 else 'pages'} that fit less: --full"
        shown.append(plain(shorten_end(" " * indent + further, screen.width), "dim"))
    return [*shown, *([plain("")] if gaps else []), *ending]


def _worth_listing(context: ResearchContext) -> int:
    """How many sources have a line: those that are quoted, and those not far behind the first."""
    first = context.sources[0].relevance_score if context.sources else 0.0
    near = [number for number, source in enumerate(context.sources, 1) if source.relevance_score >= _FURTHER * first]
    return min(len(context.sources), max(_LEAST_SOURCES, *near, *(quote.citation for quote in context.quotes), 0))


def source_line(number: str, source: SourceDocument, screen: Screen) -> Text:
    """`[2] crisis.pdf p. 3 (iv) · Causes > Banks`, on one line; what is no page by its name and what it is."""
    return page_line(
        screen,
        number,
        source.filename,
        page_name(source.page, source.page_label) if source.page else "",
        section=_WITHHELD.get(source.withheld) or (best_section(source) if source.page else source.kind),
        uri=source.link,
    )


# What stands in the place of a source's headings, where the policy has a say in it.
_WITHHELD = {"redacted": "masked by the policy", "reference_only": "not shown, by the policy"}


def best_section(source: SourceDocument) -> str:
    """The headings that its best passage stands under, outermost first."""
    return next(
        (passage.section_path for passage in source.passages if passage.section_path), source.section_path or ""
    )


def page_line(
    screen: Screen,
    number: str,
    filename: str,
    page: str,
    *,
    section: str,
    uri: str,
    score: str = "",
) -> Text:
    """A page on one line, as a link where the terminal has them. Where there is not room for all, a long name gives its
    middle, then the section goes, then more of the name."""
    if cells(page) > max(_LEAST_LABEL, screen.width // 3):
        page = page.partition(" ")[0]  # without the printed label
    page, section = f" p. {page}" if page else "", phrase(section)
    fixed = cells(f"{number} {page}{score}")
    room = max(1, screen.width - fixed)
    wanted = min(_LEAST_SECTION, cells(section.rpartition(" > ")[2])) + len(BETWEEN)
    name = one_line(filename)
    if section and room - wanted >= min(_LEAST_NAME, cells(name)):
        name = shorten_middle(name, room - wanted)
        left = room - cells(name) - len(BETWEEN)
    else:
        name, left = shorten_middle(name, room), 0
    shown = plain("").append(f"{number} ", "bold")
    shown.append_text(link(plain(f"{name}{page}", "cyan"), uri, links=screen.links))
    shown.append(score, "dim")
    return shown.append(BETWEEN + shorten_path(section, left), "dim") if left else shown


def is_unanswered(context: ResearchContext) -> bool:
    return context.confidence is not None and context.confidence.level == "none"


def nothing_answers(context: ResearchContext) -> str:
    pages = f"{context.coverage.pages:,} pages were" if context.coverage.pages != 1 else "1 page was"
    if context.types:
        pages = f"{', '.join(context.types)} were"
    nearest = ", and these are the nearest" if context.sources else ""
    return f"Nothing seems to answer this: {pages} searched{nearest}."


def said(context: ResearchContext, screen: Screen, room: int, mark: Marker) -> list[Text]:
    """The quotes, best first, within `room` lines; a long one loses its end and says so."""
    if is_unanswered(context):
        return wrapped(plain(nothing_answers(context), "bold yellow"), screen.width)[:room]
    lines: list[Text] = []
    sources = context.get_citation_map()
    names = {number: source.label for number, source in sources.items()}
    compete = len({names.get(quote.citation) for quote in context.quotes}) > 1
    for left, quote in zip(range(len(context.quotes), 0, -1), context.quotes, strict=True):
        spare = room - len(lines)
        if spare < 1:
            break
        count = spare if left == 1 else max(1, min(_QUOTE, spare - (left - 1)))
        name = names.get(quote.citation, "") if compete or not quote.page else ""
        lines += quote_lines(quote, screen.width, count, mark, name)
    return lines


def quote_lines(quote: Quote, width: int, count: int, mark: Marker, name: str = "") -> list[Text]:
    """The sentence as it stands on its page with what follows it, and its citation; or the row, under the header of its
    table. Of a long sentence the end is left out; of a long row that ends with a value, what comes before.
    `name`: of its file, where documents compete."""
    citation = f" [{quote.citation}]{f' {shorten_middle(one_line(name), width // 3)}' if name else ''}"
    found = blocks(quote.text[quote.marked[0] :] if quote.page else quote.in_table)
    is_table = bool(found) and found[0].kind == "table"
    if is_table:
        row = quote.text[slice(*quote.marked)] or quote.text
        found = blocks(replace(quote, text=row).in_table if count > 1 else row)
    before, after = ("", "") if is_table else ("“", "”")
    lines = passage_lines(found, width - cells(f"{before}{ELLIPSIS}{after}{citation}"), mark) or [plain("")]
    missing = len(lines) > count
    ends = is_table and bool(_VALUE_AT_END.search(quote.text[slice(*quote.marked)] or quote.text))
    shown = [plain(" " * len(before)).append_text(line) for line in (lines[-count:] if ends else lines[:count])]
    shown[0] = plain(ELLIPSIS if ends and missing else before).append_text(shown[0][len(before) :])
    shown[-1].append((ELLIPSIS if missing and not ends else "") + after)
    return [*shown[:-1], shown[-1].append(citation, "bold cyan")]


def _passages(context: ResearchContext, screen: Screen, spare: int, mark: Marker, indent: int) -> list[list[Text]]:
    """For each source the lines of its passage, the first sources first."""
    width = screen.width - indent
    found = [_passage(source) for source in context.sources[:_WITH_PASSAGE]]
    whole = [passage_lines(each, width, mark) for each in found]
    given = [0] * len(whole)
    for more in _PASSAGE:
        for number, lines in enumerate(whole):
            wanted = min(more, len(lines) - given[number])
            if 0 < wanted <= spare:
                given[number] += wanted
                spare -= wanted
    shown = [
        excerpt(lines, count, width, indent=indent, head=head_lines(each, width)) if count else []
        for each, lines, count in zip(found, whole, given, strict=True)
    ]
    return shown + [[] for _ in context.sources[_WITH_PASSAGE:]]


def _passage(source: SourceDocument) -> list[Block]:
    """The best passage, without headings that the source's own line has already."""
    text = next((passage.text for passage in source.passages if passage.text), source.markdown_content)
    found = blocks(text)
    section = phrase(best_section(source)).casefold()
    while len(found) > 1 and found[0].kind == "heading" and section.endswith(found[0].text.casefold()):
        del found[0]
    return found


def footer(context: ResearchContext, width: int) -> list[Text]:
    parts = [
        *filter(None, [context.sure]),
        *([documents_note(sum(bool(each.page) for each in context.sources))] * (context.answered_by == "documents")),
        *([f"{context.total_tokens:,} of {context.max_tokens:,} tokens"] if context.truncated else []),
        *(["ctx open 1", "--full"] if context.sources else []),
        "--json",
    ]
    return [plain(line, "dim") for line in packed(parts, width)]


def note_lines(notes: Sequence[Note], width: int) -> list[Text]:
    lines: list[Text] = []
    for note in notes[:_NOTES]:
        lines += excerpt(wrapped(plain(phrase(note.text), note.style), width), _NOTE, width)
    if len(notes) > _NOTES:
        lines.append(plain(shorten_end(f"… and {len(notes) - _NOTES} more notes: --json", width), "dim"))
    return lines


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
