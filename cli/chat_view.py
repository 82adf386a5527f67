"""How `ctx chat` shows an answer: on a terminal quotes and sources with room for the next question, in a pipe plain.

What was remembered stands apart: it is what somebody told, and no source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.output import paint, say, screen_size, write
from research.text import one_line, phrase

if TYPE_CHECKING:
    from rich.text import Text

    from research.answer import CheckedAnswer
    from research.markdown import Marker
    from research.memories import Recalled
    from research.models import ResearchContext

SOURCES = 5  # that are named with an answer; /sources has all
_QUOTED = 10  # lines at most
_AROUND = 4  # lines for the question itself, and the next prompt
_MEMORY = 160  # characters of one

HELP = """\
Ask anything. A follow-up ("and in 2024?", "what are its limitations?") is
searched with what came before.
  /sources       all sources of the last answer, with their passages
  /show 2        the page of source 2
  /open 2        its PDF in your viewer
  /session NAME  go on with another conversation, or begin one
  /forget        forget this conversation
  /help          this
  /quit          end; Ctrl-D does, too
Ctrl-C ends the answer under way, and clears the line at the prompt; twice it
ends."""


def show_answer(
    context: ResearchContext, mark: Marker, memories: Sequence[Recalled], answer: CheckedAnswer | None, *, explain: bool
) -> None:
    """On a terminal. A written answer stands above already."""
    from cli.answer_view import Screen, note_lines, said, source_line
    from cli.views import plain, screen_notes

    screen = Screen(*screen_size())
    lines: list[Text] = []
    if answer is None or not answer.written.finished:
        room = max(1, min(_QUOTED, screen.height - _AROUND - SOURCES))
        lines += [*said(context, screen, room, mark), plain("")]
    shown = list(context.get_citation_map().items())[:SOURCES]
    indent = len(f"[{len(shown)}] ")
    lines += [source_line(f"[{number}]".rjust(indent - 1), source, screen) for number, source in shown]
    lines += [*memory_lines(memories, screen.width), *_footer(context, screen.width)]
    lines += note_lines(screen_notes(context), screen.width)
    paint(lines)
    if explain:
        from cli.views import rewrite_lines

        paint(plain(line, "dim") for line in rewrite_lines(context.searched, context.rewrites))


def memory_lines(memories: Sequence[Recalled], width: int) -> list[Text]:
    from cli.layout import wrapped
    from cli.views import plain

    if not memories:
        return []
    lines = [plain("Remembered, and from no document:", "bold")]
    for each in memories:
        lines += wrapped(plain(f"- {_told(each)}"), width)[:2]
    return lines


def write_answer(
    context: ResearchContext, memories: Sequence[Recalled], answer: CheckedAnswer | None, *, explain: bool
) -> None:
    """In a pipe: the quotes, unless a model wrote the answer above, and what the numbers stand for."""
    from cli.answer_view import is_unanswered, nothing_answers

    if answer is None or not answer.written.finished:
        if is_unanswered(context):
            write(f"{nothing_answers(context)}\n")
        else:
            for quote in context.quotes:
                write(f"“{phrase(quote.text)}” [{quote.citation}]\n")
    for number, source in list(context.get_citation_map().items())[:SOURCES]:
        write(f"[{number}] {one_line(source.filename)}, page {source.page}\n")
    if memories:
        write("Remembered, and from no document:\n")
        for each in memories:
            write(f"- {_told(each)}\n")
    write("\n")
    if explain:
        from cli.views import rewrite_lines

        for line in rewrite_lines(context.searched, context.rewrites):
            say(line)


def show_sources(context: ResearchContext, mark: Marker, *, drawn: bool) -> None:
    """All of them, with what of each page fits the question."""
    if not drawn:
        for number, source in context.get_citation_map().items():
            write(f"[{number}] {one_line(source.filename)}, page {source.page}\n")
        return
    from cli.answer_view import Screen, source_line
    from cli.layout import excerpt, passage_lines
    from cli.output import painted
    from cli.programs import page
    from research.markdown import blocks

    screen = Screen(*screen_size())
    lines: list[Text] = []
    for number, source in context.get_citation_map().items():
        lines.append(source_line(f"[{number}]", source, screen))
        text = next((passage.text for passage in source.passages if passage.text), "")
        found = passage_lines(blocks(text), screen.width - 4, mark)
        lines += excerpt(found, 2, screen.width - 4, indent=4)
    page(painted(lines))


def _footer(context: ResearchContext, width: int) -> list[Text]:
    from cli.layout import packed
    from cli.views import plain

    more = len(context.sources) - SOURCES
    parts = [
        *([context.confidence.words] if context.confidence else []),
        *([f"{more} more: /sources"] if more > 0 else []),
        *(["/show 1", "/open 1"] if context.sources else []),
        "/help",
    ]
    return [plain(line, "dim") for line in packed(parts, width)]


def _told(each: Recalled) -> str:
    text = phrase(each.memory.text)
    shown = text if len(text) <= _MEMORY else f"{text[: _MEMORY - 1]}…"
    who = (
        f"{one_line(each.memory.speaker)}: " if each.memory.speaker and not text.startswith(each.memory.speaker) else ""
    )
    return f"{who}{shown} ({each.memory.told_at[:10]})"
