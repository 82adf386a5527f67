"""`ctx ask` on a terminal: the answer as quotes, the sources, and what else can be typed, on one screen.

Room is given in the order in which it is missed: every source has its line, then the quotes have theirs, then the
passages of the first sources, two lines each and a third where there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.layout import (
    BETWEEN,
    Marker,
    cells,
    packed,
    passage_lines,
    shorten_end,
    shorten_middle,
    shorten_path,
    window,
    wrapped,
)
from cli.links import link
from cli.markdown import blocks
from cli.output import one_line, phrase
from cli.views import documents_note, page_name, plain

if TYPE_CHECKING:
    from rich.text import Text

    from research.models import Quote, ResearchContext, SourceDocument

_PROMPT = 2  # rows for the shell's prompt: what scrolls away for it would be the answer's first line
_WITH_PASSAGE = 5  # sources
_PASSAGE = (2, 1)  # lines each gets in turn
_QUOTE = 3  # lines of one quote, where several are shown
_INDENT = 4
_LEAST_SECTION = 12  # cells: less of a heading says nothing
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


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    style: str


def answer_lines(context: ResearchContext, screen: Screen, mark: Marker, notes: Sequence[Note] = ()) -> list[Text]:
    """The lines of the screen, none wider than it."""
    sources = context.get_citation_map()
    digits = len(str(len(sources)))
    lines = [source_line(f"[{number}]".rjust(digits + 2), source, screen) for number, source in sources.items()]
    ending = [*footer(context, screen.width), *note_lines(notes, screen.width)]
    spare = screen.room - len(lines) - len(ending) - 2  # two blank lines
    answer = said(context, screen, max(1, spare if spare < 3 else spare // 2), mark)
    passages = _passages(context, screen, spare - len(answer), mark)
    gaps = spare >= 0
    shown = [*answer, *([plain("")] if answer and gaps else [])]
    for line, passage in zip(lines, passages, strict=True):
        shown += [line, *passage]
    return [*shown, *([plain("")] if gaps else []), *ending]


def source_line(number: str, source: SourceDocument, screen: Screen) -> Text:
    """`[2] crisis.pdf p. 3 (iv) · Causes > Banks`, on one line: the section gives way first, then the name's middle."""
    best = next((passage.section_path for passage in source.passages if passage.section_path), "")
    return page_line(
        screen,
        number,
        source.filename,
        page_name(source.page, source.page_label),
        section=best or source.section_path or "",
        uri=source.link,
        suspicious=bool(source.suspicious),
    )


def page_line(
    screen: Screen,
    number: str,
    filename: str,
    page: str,
    *,
    section: str,
    uri: str,
    suspicious: bool,
    score: str = "",
) -> Text:
    """A page on one line, as a link where the terminal has them."""
    page = shorten_end(f" p. {page}", max(6, screen.width // 3))
    fixed = cells(f"{number} {page}{score}") + 2 * suspicious
    name = shorten_middle(one_line(filename), max(1, screen.width - fixed))
    left = screen.width - fixed - cells(name) - len(BETWEEN)
    shown = plain("").append(f"{number} ", "bold")
    shown.append_text(link(plain(f"{name}{page}", "cyan"), uri, links=screen.links))
    shown.append(" !" if suspicious else "", "bold red").append(score, "dim")
    section = phrase(section)
    if section and left >= min(_LEAST_SECTION, cells(section)):
        shown.append(BETWEEN + shorten_path(section, left), "dim")
    return shown


def said(context: ResearchContext, screen: Screen, room: int, mark: Marker) -> list[Text]:
    """The quotes, best first, within `room` lines; a long one loses its end and says so."""
    if context.confidence is not None and context.confidence.level == "none":
        pages = f"{context.coverage.pages:,} pages were" if context.coverage.pages != 1 else "1 page was"
        none = f"None of them seems to answer this: {pages} searched, and these are the nearest."
        return wrapped(plain(none, "bold yellow"), screen.width)[:room]
    lines: list[Text] = []
    for left, quote in zip(range(len(context.quotes), 0, -1), context.quotes, strict=True):
        spare = room - len(lines)
        if spare < 1:
            break
        count = spare if left == 1 else max(1, min(_QUOTE, spare - (left - 1)))
        lines += quote_lines(quote, screen.width, count, mark)
    return lines


def quote_lines(quote: Quote, width: int, count: int, mark: Marker) -> list[Text]:
    """The sentence as it stands on its page, and its citation."""
    citation = f" [{quote.citation}]"
    found = blocks(quote.text)
    framed = len(found) == 1 and found[0].kind != "table"
    lines = passage_lines(found, width - len(citation) - 2 * framed, mark)
    shown = [line.copy() for line in lines[:count]] or [plain("")]
    for number, line in enumerate(shown):
        shown[number] = plain("“" if framed and number == 0 else " " * framed).append_text(line)
    shown[-1].append(("" if len(lines) <= count else "…") + "”" * framed)
    shown[-1].append(citation, "bold cyan")
    return shown


def _passages(context: ResearchContext, screen: Screen, spare: int, mark: Marker) -> list[list[Text]]:
    """For each source the lines of its passage, the first sources first."""
    width = screen.width - _INDENT
    whole = [passage_lines(blocks(_passage(source)), width, mark) for source in context.sources[:_WITH_PASSAGE]]
    given = [0] * len(whole)
    for more in _PASSAGE:
        for number, lines in enumerate(whole):
            wanted = min(more, len(lines) - given[number])
            if 0 < wanted <= spare:
                given[number] += wanted
                spare -= wanted
    shown = [
        [plain(" " * _INDENT).append_text(line) for line in window(lines, count, width)] if count else []
        for lines, count in zip(whole, given, strict=True)
    ]
    return shown + [[] for _ in context.sources[_WITH_PASSAGE:]]


def _passage(source: SourceDocument) -> str:
    return next((passage.text for passage in source.passages if passage.text), source.markdown_content)


def footer(context: ResearchContext, width: int) -> list[Text]:
    known = context.confidence
    parts = [
        *([f"{known.level if known.level != 'none' else 'no'} confidence"] if known else []),
        *([documents_note(len(context.sources))] if context.answered_by == "documents" else []),
        f"{context.total_tokens:,} of {context.max_tokens:,} tokens",
        *(["ctx open 1", "--full"] if context.sources else []),
        "--json",
    ]
    return [plain(line, "dim") for line in packed(parts, width)]


def note_lines(notes: Sequence[Note], width: int) -> list[Text]:
    lines: list[Text] = []
    for note in notes[:_NOTES]:
        lines += window(wrapped(plain(phrase(note.text), note.style), width), _NOTE, width)
    if len(notes) > _NOTES:
        lines.append(plain(shorten_end(f"… and {len(notes) - _NOTES} more notes: --json", width), "dim"))
    return lines
