"""An answer for people: quotes, sources, and what else can be typed; written while a model writes; explained.

On a terminal it fits one screen. Room is given in the order in which it is missed: every source has its line, then the
quotes have theirs, then the passages of the first sources, two lines each and a third where there is room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from cli.layout import (
    BETWEEN,
    ELLIPSIS,
    WordWrap,
    cells,
    excerpt,
    head_lines,
    link,
    marked,
    packed,
    passage_lines,
    plain,
    shorten_end,
    shorten_middle,
    shorten_path,
    wrapped,
)
from cli.output import on_terminal, paint, say, write
from research.context import answer_view
from research.errors import StoppedError
from research.markdown import Block, Marker, blocks
from research.models import LegScore, Rewrite
from research.text import block, one_line, phrase

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from research.answer import AnswerWriter, CheckedAnswer
    from research.context import AnswerView, SourceView
    from research.index import Index
    from research.memories import Recalled
    from research.models import PageResult, Quote, ResearchContext, SourceDocument

_PROMPT = 2  # rows for the shell's prompt: what scrolls away for it would be the answer's first line
_WITH_PASSAGE = 5  # sources
_PASSAGE = (2, 1)  # lines each gets in turn
_LABEL = 12  # cells of what a row is called, where it stands in one line with its values
_QUOTE = 3  # lines of one quote, where several are shown
_LEAST_SECTION = 12  # cells: less of a heading says nothing
_LEAST_LABEL = 8  # cells of a page and its printed label that are always there
_LEAST_NAME = 40  # cells that a file's name keeps before its section gives way
_VALUE_AT_END = re.compile(r"\d[^\n]{0,12}$")
_NOTE = 2  # lines of a note
_NOTES = 3
_NOTE_NAME = 24  # cells of a name in a note: a long one must not hide what is said of it
_QUESTION = 500  # cells: a pasted page as a question need not be shown again in full
_QUOTES = 30  # lines before whole pages
_CHAT_SOURCES, _CHAT_QUOTES = 5, 10  # named with an answer; lines
_AROUND = 4  # lines for the question itself, and the next prompt
_TEXT = 160  # characters of a memory

UNFINISHED = "[…]"
INTERRUPTED = StoppedError.exit_code
_MARKS = {"carried": "✓", "doubtful": "?", "not found": "✗", "uncited": "✗"}
_STYLES = {"carried": "green", "doubtful": "yellow", "not found": "bold red", "uncited": "bold red"}
_NAMED = 5  # sentences; JSON has them all
_SENTENCE = 80  # characters of one in a note


class Note(NamedTuple):
    text: str
    style: str


@dataclass(frozen=True, slots=True)
class Screen:
    """What there is to draw on."""

    width: int
    height: int
    links: bool = False

    @property
    def room(self) -> int:
        return max(1, self.height - _PROMPT)


def answer_lines(view: AnswerView, screen: Screen, mark: Marker) -> list[Text]:
    """The lines of the screen, none wider than it."""
    lines = source_lines(view, screen, len(view.sources))
    indent = len(f"[{len(lines)}] ")
    more = len(lines) - view.listed
    del lines[view.listed :]
    ending = [*footer(view, screen.width), *note_lines(screen_notes(view), screen.width)]
    spare = screen.room - len(lines) - bool(more) - len(ending) - 2  # two blank lines
    answer = quotes(view, screen, max(1, spare if spare < 3 else spare // 2), mark)
    passages = _passages(view, screen, spare - len(answer), mark, indent)
    gaps = spare >= 0
    shown = [*answer, *([plain("")] if answer and gaps else [])]
    for line, passage in zip(lines, passages, strict=False):
        shown += [line, *passage]
    if more:
        further = f"… and {more} further {'page' if more == 1 else 'pages'} that fit less: --full"
        shown.append(plain(shorten_end(" " * indent + further, screen.width), "dim"))
    return [*shown, *([plain("")] if gaps else []), *ending]


def full_answer(view: AnswerView, screen: Screen, mark: Marker) -> Iterator[Text]:
    """The question, what answers it, the whole sources, and the line that ends every answer."""
    yield plain(shorten_end(view.question, _QUESTION), "bold")
    yield from quotes(view, screen, _QUOTES, mark)
    for line, each in zip(source_lines(view, screen, len(view.sources)), view.sources, strict=True):
        yield from (plain(""), line)
        for number, found in enumerate(blocks(each.source.markdown_content)):
            if number and not found.close:
                yield plain("")
            yield from passage_lines([found], screen.width, mark)
    yield plain("")
    yield from footer(view, screen.width)
    yield from note_lines(screen_notes(view), screen.width)


def chat_answer(
    view: AnswerView, screen: Screen, mark: Marker, memories: Sequence[Recalled], *, quoted: bool
) -> list[Text]:
    """An answer with room for the next question. What was remembered stands apart: somebody told it."""
    lines: list[Text] = []
    if quoted:
        room = max(1, min(_CHAT_QUOTES, screen.height - _AROUND - _CHAT_SOURCES))
        lines += [*quotes(view, screen, room, mark), plain("")]
    lines += source_lines(view, screen, _CHAT_SOURCES)
    if memories:
        lines.append(plain("Remembered, and from no document:", "bold"))
        lines += [line for each in memories for line in wrapped(plain(f"- {_memory(each)}"), screen.width)[:2]]
    more = len(view.sources) - _CHAT_SOURCES
    parts = [
        *filter(None, [view.sure]),
        *([f"{more} more: /sources"] if more > 0 else []),
        *(["/show 1", "/open 1"] if view.sources else []),
        "/help",
    ]
    lines += [plain(line, "dim") for line in packed(parts, screen.width)]
    return lines + note_lines(screen_notes(view), screen.width)


def write_quotes(view: AnswerView) -> None:
    """In a pipe, unless a model wrote an answer above."""
    write(f"{_unanswered(view)}\n" if view.unanswered else "")
    for each in view.quotes:
        write(f"“{phrase(each.quote.text)}” [{each.quote.citation}]\n")


def write_sources(view: AnswerView, memories: Sequence[Recalled] = (), most: int | None = None) -> None:
    """In a pipe: what the numbers stand for, and what was remembered."""
    for each in view.sources[:most]:
        page = each.source.page
        write(f"[{each.number}] {one_line(each.source.label)}{f', page {page}' * bool(page)}\n")
    if memories:
        write("Remembered, and from no document:\n")
        for memory in memories:
            write(f"- {_memory(memory)}\n")


def _memory(each: Recalled) -> str:
    text, speaker = phrase(each.memory.text), each.memory.speaker
    shown = text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"
    who = f"{one_line(speaker)}: " if speaker and not text.startswith(speaker) else ""
    return f"{who}{shown} ({each.standing or each.memory.told_at[:10]})"


def source_lines(view: AnswerView, screen: Screen, most: int) -> list[Text]:
    """`[2] crisis.pdf p. 3 (iv) · Causes > Banks`, a line each; what is no page by its name and what it is."""
    shown = view.sources[:most]
    return [
        page_line(
            screen,
            f"[{each.number}]".rjust(len(f"[{len(shown)}]")),
            each.source.filename,
            each.page,
            section=each.section,
            uri=each.source.link,
        )
        for each in shown
    ]


def page_line(
    screen: Screen, number: str, filename: str, page: str, *, section: str, uri: str, score: str = ""
) -> Text:
    """A page on one line, as a link where the terminal has them. Where there is not room for all, a long name gives its
    middle, then the section goes, then more of the name."""
    if cells(page) > max(_LEAST_LABEL, screen.width // 3):
        page = page.partition(" ")[0]  # without the printed label
    page, section = f" p. {page}" if page else "", phrase(section)
    room = max(1, screen.width - cells(f"{number} {page}{score}"))
    wanted = min(_LEAST_SECTION, cells(section.rpartition(" > ")[2])) + len(BETWEEN)
    name, left = one_line(filename), 0
    if section and room - wanted >= min(_LEAST_NAME, cells(name)):
        name = shorten_middle(name, room - wanted)
        left = room - cells(name) - len(BETWEEN)
    else:
        name = shorten_middle(name, room)
    shown = plain("").append(f"{number} ", "bold")
    shown.append_text(link(plain(f"{name}{page}", "cyan"), uri, links=screen.links))
    shown.append(score, "dim")
    return shown.append(BETWEEN + shorten_path(section, left), "dim") if left else shown


def _unanswered(view: AnswerView) -> str:
    return f"{view.sure}: {view.unanswered}."


def quotes(view: AnswerView, screen: Screen, room: int, mark: Marker) -> list[Text]:
    """The quotes, best first, within `room` lines; a long one loses its end and says so."""
    if view.unanswered:
        return wrapped(plain(_unanswered(view), "bold yellow"), screen.width)[:room]
    lines: list[Text] = []
    compete = len({each.name for each in view.quotes}) > 1
    for left, each in zip(range(len(view.quotes), 0, -1), view.quotes, strict=True):
        spare = room - len(lines)
        if spare < 1:
            break
        count = spare if left == 1 else max(1, min(_QUOTE, spare - (left - 1)))
        name = each.name if compete or not each.quote.page else ""
        lines += quote_lines(each.quote, screen.width, count, mark, name)
    return lines


def quote_lines(quote: Quote, width: int, count: int, mark: Marker, name: str = "") -> list[Text]:
    """The sentence as it stands on its page with what follows it, and its citation; or the row, under the header of its
    table. Of a long sentence the end is left out; of a long row that ends with a value, what comes before.
    `name`: of its file, where documents compete."""
    citation = f" [{quote.citation}]{f' {shorten_middle(one_line(name), width // 3)}' if name else ''}"
    found = blocks(quote.text[quote.marked[0] :] if quote.page else quote.in_table)
    is_table = bool(found) and found[0].kind == "table"
    row = quote.text[slice(*quote.marked)] or quote.text
    if is_table:
        found = blocks(replace(quote, text=row).in_table if count > 1 else row)
    before, after = ("", "") if is_table else ("“", "”")
    lines = passage_lines(found, width - cells(f"{before}{ELLIPSIS}{after}{citation}"), mark) or [plain("")]
    missing = len(lines) > count
    if missing and is_table and count == 1 and len(found[0].rows) == 1:  # the beginning of a label, and its values
        label, *values = found[0].rows[0]
        told = "  ".join(("", *values))
        if (room := width - cells(f"{citation}{told}")) > _LABEL:
            lines, missing = [marked(f"{shorten_end(label, room)}{told}", mark)], False
    ends = is_table and bool(_VALUE_AT_END.search(row))
    shown = [plain(" " * len(before)).append_text(line) for line in (lines[-count:] if ends else lines[:count])]
    shown[0] = plain(ELLIPSIS if ends and missing else before).append_text(shown[0][len(before) :])
    shown[-1].append((ELLIPSIS if missing and not ends else "") + after)
    return [*shown[:-1], shown[-1].append(citation, "bold cyan")]


def _passages(view: AnswerView, screen: Screen, spare: int, mark: Marker, indent: int) -> list[list[Text]]:
    """For each source the lines of its passage, the first sources first."""
    width = screen.width - indent
    found = [_passage(each) for each in view.sources[:_WITH_PASSAGE]]
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
    return shown + [[] for _ in view.sources[_WITH_PASSAGE:]]


def _passage(source: SourceView) -> list[Block]:
    """The best passage, without headings that the source's own line has already."""
    found = blocks(source.passages[0])
    section = source.section.casefold()
    while len(found) > 1 and found[0].kind == "heading" and section.endswith(found[0].text.casefold()):
        del found[0]
    return found


def footer(view: AnswerView, width: int) -> list[Text]:
    parts = [
        *filter(None, [view.sure]),
        *(note.text for note in view.notes if note.kind == "documents"),
        *filter(None, [view.fitted]),
        *(["ctx open 1", "--full"] if view.sources else []),
        "--json",
    ]
    return [plain(line, "dim") for line in packed(parts, width)]


def screen_view(context: ResearchContext) -> AnswerView:
    """What is to be seen, with names that leave room for what is said of them."""
    return answer_view(context, named=lambda name: shorten_middle(one_line(name), _NOTE_NAME))


def screen_notes(view: AnswerView) -> list[Note]:
    """What there is to say beside the footer, which says how documents answer."""
    styles = {"follows": ("↪", "dim"), "budget": ("✂", "bold yellow"), "coverage": ("!", "yellow")}
    shown = [(*styles[note.kind], note.text) for note in view.notes if note.kind in styles]
    shown.sort(key=lambda each: each[0] == "!")  # the budget's, which the reader can change, before those
    return [Note(f"{sign} {text}", style) for sign, style, text in shown]


def note_lines(notes: Sequence[Note], width: int) -> list[Text]:
    lines: list[Text] = []
    for note in notes[:_NOTES]:
        lines += excerpt(wrapped(plain(phrase(note.text), note.style), width), _NOTE, width)
    if len(notes) > _NOTES:
        lines.append(plain(shorten_end(f"… and {len(notes) - _NOTES} more notes: --json", width), "dim"))
    return lines


# How scores arose.


def explain(searched: str, rewrites: Iterable[Rewrite], found: Mapping[int, SourceDocument | PageResult]) -> None:
    """What was searched, what each rewriter did, and how each leg saw each page: painted, or for stderr in lines."""
    lines = [f"searched: {phrase(searched)}"]
    for rewrite in rewrites:
        lines.append(f"rewritten by {rewrite.name}: {phrase(rewrite.why)}")
        if rewrite.documents:
            lines.append(f"  ranked inside {len(rewrite.documents)} of the documents by: {phrase(rewrite.after)}")
    if on_terminal():
        paint([*(plain(line, "dim") for line in lines), *([_score_table(found)] if found else [])])
        return
    for number, page in found.items():
        place = f"{one_line(page.filename)}:{page.page}" if page.page else one_line(page.filename)
        for name, leg in page.legs.items():
            rank = "-" if leg.rank is None else str(leg.rank)
            scores = f"score {page.relevance_score:.3f} {name} rank {rank} score {leg.score:.3f} {_parts(leg)}"
            lines.append(f"[{number}] {place} {scores}".rstrip())
    for line in lines:
        say(line)


def _score_table(found: Mapping[int, SourceDocument | PageResult]) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="How the scores arose", title_justify="left")
    for name in ("#", "leg", "rank", "score", "parts"):
        table.add_column(name, justify="right" if name in {"#", "rank", "score"} else "left")
    for number, page in found.items():
        for name, leg in page.legs.items():
            rank = "–" if leg.rank is None else str(leg.rank)
            table.add_row(str(number), name, rank, f"{leg.score:.3f}", plain(_parts(leg)))
    return table


def _parts(leg: LegScore) -> str:
    return "  ".join(f"{name} {value:.3f}" for name, value in leg.parts.items())


# What a model writes.


@contextmanager
def writer_for(index: Index) -> Iterator[AnswerWriter]:
    """The writer of an answer, made ready beside the search."""
    with index.writer(with_pictures=index.settings.model_images) as writer:
        writer.prepare()
        yield writer


def streamed(writer: AnswerWriter, context: ResearchContext, width: int = 0) -> CheckedAnswer:
    """The answer, shown while it is written; broken between words for a terminal of this width. One that is not whole
    ends in a mark."""
    wrap = WordWrap(width)
    answer = writer.write(context, lambda piece: write(wrap.feed(block(piece)) if width else block(piece)))
    if answer.written.text:
        mark = "" if answer.written.finished else f" {UNFINISHED}"
        write((wrap.feed(mark) + wrap.end() if width else mark) + "\n")
    return answer


def rows(answer: CheckedAnswer, width: int) -> int:
    """How much of a screen it has taken."""
    if not answer.written.text:
        return 0
    wrap = WordWrap(width)
    text = wrap.feed(block(answer.written.text)) + wrap.end()
    return sum(max(1, -(-cells(line) // width)) for line in text.split("\n"))


def check_notes(answer: CheckedAnswer) -> list[Note]:
    """What the check found: how many sentences are carried by what they cite (✓), doubtful (?), not found there or
    uncited (✗), and those that are not carried or lack their citation."""
    claims = answer.claims
    if not claims:
        return []
    counts = Counter[str](sentence.verdict for sentence in claims)
    told = ", ".join(f"{_MARKS[verdict]} {counts[verdict]} {verdict}" for verdict in _MARKS if counts[verdict])
    noted = [sentence for sentence in claims if sentence.verdict != "carried" or not sentence.citations]
    notes = [Note(f"checked beside what it cites: {told}", "dim" if noted else "green")]
    for sentence in noted[:_NAMED]:
        text = phrase(sentence.text)
        shown = text if len(text) <= _SENTENCE else f"{text[: _SENTENCE - 1]}…"
        reason = f": {sentence.reason}" if sentence.reason else ""
        notes.append(
            Note(f"{_MARKS[sentence.verdict]} “{shown}” {sentence.verdict}{reason}", _STYLES[sentence.verdict])
        )
    if len(noted) > _NAMED:
        notes.append(Note(f"… and {len(noted) - _NAMED} more: --json", "dim"))
    return notes


def paint_check(answer: CheckedAnswer, width: int) -> int:
    """On a terminal, under the answer. The number of lines."""
    lines = [line for note in check_notes(answer) for line in wrapped(plain(phrase(note.text), note.style), width)]
    lines += [plain("")] * bool(lines or answer.written.text)
    paint(lines)
    return len(lines)


def tell_check(answer: CheckedAnswer) -> None:
    """On stderr, for a reader who does not see it drawn: only if something is to be said."""
    if any(sentence.verdict != "carried" for sentence in answer.claims):
        for note in check_notes(answer):
            say(f"ctx: note: {note.text}")


def tell_trouble(answer: CheckedAnswer, *, quiet: bool) -> None:
    """On stderr: why there is no answer, or not all of it; and what else is to be known, unless `quiet`."""
    written = answer.written
    if written.problem:
        what = "the answer is unfinished" if written.text else "no answer was written"
        say(f"ctx: note: {what}: {written.problem}")
        if written.hint:
            say(f"hint: {written.hint}")
    for note in () if quiet else written.notes:
        say(f"ctx: note: {note}")
