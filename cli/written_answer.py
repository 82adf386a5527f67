"""A written answer on its way to the reader: streamed, with the marks of its check, its sources, and what went wrong.

Every sentence is marked: ✓ carried by what it cites, ? doubtful, ✗ not found there or without a citation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cli.output import say, write, write_document
from research.text import block, one_line, phrase

if TYPE_CHECKING:
    from cli.options import Common, Wanted
    from cli.views import Note
    from research.answer import AnswerWriter, CheckedAnswer
    from research.index import Index
    from research.models import ResearchContext

UNFINISHED = "[…]"
INTERRUPTED = 130

_MARKS = {"carried": "✓", "doubtful": "?", "not found": "✗", "uncited": "✗"}
_STYLES = {"carried": "green", "doubtful": "yellow", "not found": "bold red", "uncited": "bold red"}
_NAMED = 5  # sentences; JSON has them all
_SENTENCE = 80  # characters of one in a note


@contextmanager
def writer_for(index: Index, wanted: Wanted) -> Iterator[AnswerWriter | None]:
    """The writer of this call's answer, made ready beside the search; None where none is wanted."""
    if not wanted.written(index.settings):
        yield None
        return
    with index.writer(with_pictures=wanted.pictures) as writer:
        writer.prepare()
        yield writer


def show_prompt(index: Index, wanted: Wanted, context: ResearchContext, given: Common) -> int:
    """Exactly what would be sent; nobody is contacted."""
    prompt = index.prompt(context, with_pictures=wanted.pictures)
    messages = [message.to_dict() for message in prompt.messages]
    if given.as_json:
        document: dict[str, Any] = {
            "messages": messages,
            "tokens": prompt.tokens,
            "sources": prompt.sources,
            "shortened": prompt.shortened,
            "dropped": prompt.dropped,
        }
        write_document("ctx.prompt/1", document)
    else:
        for message in prompt.messages:
            pictures = f"\n[{len(message.pictures)} pictures of pages]\n" if message.pictures else ""
            write(f"--- {message.role} ---\n{block(message.text)}\n{pictures}\n")
    if prompt.note and not given.quiet:
        say(f"ctx: note: {prompt.note}")
    return 0


def streamed(writer: AnswerWriter, context: ResearchContext, width: int = 0) -> CheckedAnswer:
    """The answer, shown while it is written; broken between words for a terminal of this width. One that is not whole
    ends in a mark."""
    from cli.layout import WordWrap

    wrap = WordWrap(width)
    answer = writer.write(context, lambda piece: write(wrap.feed(block(piece)) if width else block(piece)))
    if answer.written.text:
        mark = "" if answer.written.finished else f" {UNFINISHED}"
        write((wrap.feed(mark) + wrap.end() if width else mark) + "\n")
    return answer


def rows(answer: CheckedAnswer, width: int) -> int:
    """How much of a screen it has taken."""
    from cli.layout import WordWrap, cells

    if not answer.written.text:
        return 0
    wrap = WordWrap(width)
    text = wrap.feed(block(answer.written.text)) + wrap.end()
    return sum(max(1, -(-cells(line) // width)) for line in text.split("\n"))


def mark_notes(answer: CheckedAnswer) -> list[Note]:
    """What the check found: how many sentences are carried, and those that are not or lack their citation."""
    from cli.views import Note

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


def paint_marks(answer: CheckedAnswer) -> int:
    """On a terminal, under the answer. The number of lines."""
    from cli.layout import wrapped
    from cli.output import paint, screen_size
    from cli.views import plain

    width = screen_size()[0]
    lines = [line for note in mark_notes(answer) for line in wrapped(plain(phrase(note.text), note.style), width)]
    paint([*lines, plain("")] if lines or answer.written.text else [])
    return len(lines) + bool(lines or answer.written.text)


def write_sources(context: ResearchContext, answer: CheckedAnswer) -> None:
    """In a pipe, after the answer: the quotes where it is not whole, and what the numbers stand for."""
    if answer.written.text:
        write("\n")
    if not answer.written.finished:
        for quote in context.quotes:
            write(f"“{phrase(quote.text)}” [{quote.citation}]\n")
        write("\n" if context.quotes else "")
    if context.sources:
        write("Sources:\n")
    for number, source in context.get_citation_map().items():
        page = f", page {source.page}" if source.page else ""
        write(f"[{number}] {one_line(source.label)}{page}\n")


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


def tell_marks(answer: CheckedAnswer) -> None:
    """On stderr, for a reader who does not see them drawn: only if something is to be said."""
    if any(sentence.verdict != "carried" for sentence in answer.claims):
        for note in mark_notes(answer):
            say(f"ctx: note: {note.text}")
