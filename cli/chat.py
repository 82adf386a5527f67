"""ctx chat: one question after the other, each understood with those before it; and what else can be typed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from cli.answer import (
    Screen,
    chat_answer,
    explain,
    paint_check,
    screen_view,
    source_lines,
    streamed,
    tell_check,
    tell_trouble,
    write_quotes,
    write_sources,
    writer_for,
)
from cli.ask import keep_numbers
from cli.call import Call, offers, plain_words
from cli.options import AnswerOption, ExplainOption, ModelOption
from cli.output import check_legs, complain, on_terminal, page, paint, painted, screen_size, write
from cli.session import add_history, forget_history, load_history
from research.errors import CtxError, NothingFoundError, SomeFilesFailedError, UsageError
from research.settings import FLOOR
from research.text import block, one_line

if TYPE_CHECKING:
    from research.answer import AnswerWriter, CheckedAnswer
    from research.context import AnswerView
    from research.index import Index
    from research.memories import Recalled
    from research.models import ResearchContext, SourceDocument
    from research.request import AskRequest

_RECALLED = 3
_SOURCES = 5  # that are named in a pipe
_PASSAGE = 2  # lines of each of /sources
PROMPT = "> "

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


@offers(door="ctx chat", acting=True, without=("as_json",))  # a conversation is no document
def chat(call: Call, *, explain: ExplainOption = False, answer: AnswerOption = None, model: ModelOption = None) -> int:
    """Answers as ctx ask does: sentences of your documents with their pages, or with a model of yours an answer written
    from them and checked. A follow-up is searched with what the conversation is about ("and in 2024?", "what are its
    limitations?"). What you told with ctx remember is recalled beside the documents, and said to be.

    The conversation is kept in the index as a session: --session NAME goes on with it, ctx session lists them. /help
    tells what else can be typed. Ctrl-C ends the answer under way; at the prompt it clears the line, and twice it ends.
    In a pipe it answers a question a line, plainly and without a prompt.

    Examples:
      ctx chat
      ctx chat --session thesis
      ctx chat --doc manual.pdf --no-answer
      printf 'How long is the guarantee?\\nAnd for the wind vane?\\n' | ctx chat
    """
    from research.conversation import session_name

    request = call.request("ctx chat", "")
    name = None if request.session is None else session_name(request.session)
    settings = call.settings(model=model)
    with call.opened(settings) as index:
        call.prepare(index)
        written = bool(settings.model) if answer is None else answer
        with writer_for(index) if written else nullcontext() as writer:
            drawn = sys.stdin.isatty() and on_terminal()
            request = replace(request, session=name or _new_name(index))
            under_way = Chat(call, index, request, writer, drawn=drawn, explained=explain)
            return _typed(under_way) if drawn else _piped(under_way)


class Chat:
    """A conversation under way: its session, and the answer that /sources and /open are about."""

    def __init__(
        self,
        call: Call,
        index: Index,
        request: AskRequest,
        writer: AnswerWriter | None,
        *,
        drawn: bool,
        explained: bool,
    ) -> None:
        self.call = call
        self._index = index
        self._request = request  # what holds for every question
        self._session = request.session or ""
        self._writer = writer
        self._drawn = drawn
        self._explained = explained
        self._last: ResearchContext | None = None
        self._remembered = ""  # whose lines are under the arrow keys
        self.unanswered = False  # a question had no answer

    def welcome(self) -> None:
        documents, pages = self._index.documents.totals()
        turns = self._turns()
        where = f", {turns} questions so far" if turns else ""
        self.call.say(f"{documents:,} documents, {pages:,} pages; session {self._session}{where}. /help, Ctrl-D ends.")

    def farewell(self) -> None:
        if self._turns():
            import shlex

            self.call.say(f"go on with: ctx chat --session {shlex.quote(self._session)}")

    def take(self, line: str) -> bool:
        """Answer a question or do a command. False: it is over."""
        if not line.startswith("/"):
            if self._drawn:
                add_history(self._index.root, self._session, line)
            self._ask(line)
            return True
        word, _, rest = line.partition(" ")
        commands: dict[str, Callable[[], object]] = {
            "/sources": self._sources,
            "/show": lambda: self._show(rest),
            "/open": lambda: self._open(rest),
            "/session": lambda: self._change(rest),
            "/forget": self._forget,
            "/help": lambda: write(f"{HELP}\n"),
        }
        if word in ("/quit", "/exit", "/q"):
            return False
        if word not in commands:
            raise UsageError(f"there is no {word[:40]}", hint="/help tells what there is")
        commands[word]()
        return True

    def load_history(self) -> None:
        """Put the lines of the session under the arrow keys."""
        if self._remembered == self._session:
            return
        with suppress(ImportError):
            import readline

            readline.clear_history()
            readline.set_auto_history(True)
            for line in load_history(self._index.root, self._session):
                readline.add_history(line)
        self._remembered = self._session

    def _ask(self, question: str) -> None:
        context = self._index.ask(replace(self._request, question=question, session=self._session))
        check_legs(context.coverage)
        self._last = context
        view = screen_view(context)
        self.unanswered = self.unanswered or not context.sources or bool(view.unanswered)
        keep_numbers(self._index.root, [source.ref for source in context.sources])
        memories = self._recalled(context)
        answer = None if self._writer is None else self._written(self._writer, context, view)
        quoted = answer is None or not answer.written.finished
        if self._drawn:
            mark = partial(self._index.documents.matches, question=context.searched or question)
            paint(chat_answer(view, Screen(*screen_size()), mark, memories, quoted=quoted))
        else:
            if quoted:
                write_quotes(view)
            write_sources(view, memories, _SOURCES)
            write("\n")
            for note in view.notes:
                if note.kind == "follows":
                    self.call.note(note.text)
        if self._explained:
            explain(context.searched, context.rewrites, {})

    def _written(self, writer: AnswerWriter, context: ResearchContext, view: AnswerView) -> CheckedAnswer:
        width = screen_size()[0] if self._drawn else 0
        answer = streamed(writer, context, width)
        if context.turn:
            self._index.keep_answer(context, answer)
        if self._drawn:
            paint_check(answer, width)
        elif not self.call.quiet:
            tell_check(answer)
        if answer.written.text or not view.unanswered:
            tell_trouble(answer, quiet=self.call.quiet)
        return answer

    def _recalled(self, context: ResearchContext) -> list[Recalled]:
        """What was told and may answer; what goes wrong with it costs itself alone."""
        try:
            found = self._index.memories.recall(context.searched or context.query, top_k=_RECALLED, threshold=FLOOR)
        except CtxError as error:
            self.call.note(f"nothing was recalled: {error.message}")
            return []
        return found.memories

    def _source(self, number: str) -> SourceDocument:
        if self._last is None or not self._last.sources:
            raise NothingFoundError("there is no answer yet that a number could belong to", hint="ask something first")
        given = number.strip() or "1"
        count = len(self._last.sources)
        if not given.isdecimal() or len(given) > 4 or not 1 <= int(given) <= count:
            raise UsageError(f"the last answer has no source {given[:20]}", hint=f"its sources are 1 to {count}")
        return self._last.sources[int(given) - 1]

    def _sources(self) -> None:
        """All of them, with what of each page fits the question."""
        self._source("1")
        assert self._last is not None
        if not self._drawn:
            write_sources(screen_view(self._last))
            return
        from cli.layout import excerpt, passage_lines
        from research.markdown import blocks

        mark = partial(self._index.documents.matches, question=self._last.searched or self._last.query)
        screen, shown = Screen(*screen_size()), []
        lines = source_lines(screen_view(self._last), screen, len(self._last.sources))
        for line, source in zip(lines, self._last.sources, strict=True):
            text = next((passage.text for passage in source.passages if passage.text), "")
            found = passage_lines(blocks(text), screen.width - 4, mark)
            shown += [line, *excerpt(found, _PASSAGE, screen.width - 4, indent=4)]
        page(painted(shown))

    def _show(self, number: str) -> None:
        source = self._source(number)
        view = self._index.documents.page(source.doc_id, source.page)
        page(f"{one_line(source.filename)}, page {source.page}\n\n{block(view.item.text)}\n")

    def _open(self, number: str) -> None:
        from cli.open import open_place, place_of

        source = self._source(number)
        _, place = place_of(self._index, source.doc_id, source.page)
        self.call.say(open_place(place, self._index.settings.viewer))

    def _change(self, name: str) -> None:
        from research.conversation import session_name

        if name.strip():
            self._session, self._last = session_name(name), None
        turns = self._turns()
        self.call.say(f"session {self._session}, {f'{turns} questions so far' if turns else 'new'}")

    def _forget(self) -> None:
        turns = self._turns()
        if self._drawn and turns and not typer.confirm(f"Forget the {turns} questions of {self._session}?", err=True):
            return
        removed = self._index.sessions.remove(self._session)
        forget_history(self._index.root, self._session)
        self._last, self._remembered = None, ""
        told = f" and {len(removed.memories)} memories" if removed.memories else ""
        self.call.say(f"forgot {removed.turns} questions{told}")

    def _turns(self) -> int:
        return next((each.turns for each in self._index.sessions.list() if each.name == self._session), 0)


def _typed(chat: Chat) -> int:
    """At a terminal, until somebody has enough."""
    chat.welcome()
    for line in _lines_typed(chat):
        try:
            if not chat.take(line):
                break
        except KeyboardInterrupt:
            chat.call.say("interrupted")
        except CtxError as error:
            complain(error, as_json=False)
    chat.farewell()
    return 0


def _piped(chat: Chat) -> int:
    """A question a line; the exit code is that of a batch."""
    failed = False
    stream = getattr(sys.stdin, "buffer", None)
    for raw in stream if stream is not None else sys.stdin:
        line = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
        try:
            if line.strip() and not chat.take(line.strip()):
                break
        except CtxError as error:
            complain(error, as_json=False)
            failed = True
    if failed:
        return SomeFilesFailedError.exit_code
    return NothingFoundError.exit_code if chat.unanswered else 0


def _lines_typed(chat: Chat) -> Iterator[str]:
    """What is typed, with the history of the session under the arrow keys."""
    interrupted = False
    while True:
        chat.load_history()
        try:
            line = input(PROMPT)
        except EOFError:
            sys.stdout.write("\n")
            return
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            if interrupted:
                return
            interrupted = True
            chat.call.say("Ctrl-C once more ends; /help tells what can be typed")
            continue
        interrupted = False
        text = plain_words(line).strip()
        if text:
            yield text


def _new_name(index: Index) -> str:
    """By the time, which tells one from another in a list."""
    from datetime import datetime

    name = f"chat-{datetime.now():%Y-%m-%d-%H%M}"
    taken = {each.name for each in index.sessions.list()}
    numbered = (f"{name}-{number}" for number in range(2, 10_000))
    return name if name not in taken else next(each for each in numbered if each not in taken)
