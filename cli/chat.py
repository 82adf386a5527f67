"""ctx chat: one question after the other, each understood with those before it.

A conversation of `ctx chat` under way: questions, and what else can be typed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from cli.options import (
    AnswerOption,
    AnswerTokensOption,
    ExplainOption,
    ModelOption,
    ModelUrlOption,
    Wanted,
    common,
    settings_for,
)
from research.errors import CtxError, NothingFoundError, UsageError
from research.settings import FLOOR

if TYPE_CHECKING:
    from cli.options import Common
    from research.answer import AnswerWriter, CheckedAnswer
    from research.index import Index
    from research.memories import Recalled
    from research.models import ResearchContext, SourceDocument
    from research.request import AskRequest

_RECALLED = 3


class Chat:
    """A conversation under way: its session, and the answer that /sources and /open are about."""

    def __init__(
        self,
        index: Index,
        request: AskRequest,
        given: Common,
        writer: AnswerWriter | None,
        *,
        drawn: bool,
        explain: bool,
    ) -> None:
        self._index = index
        self._request = request  # what holds for every question
        self._session = request.session or ""
        self._given = given
        self._writer = writer
        self._drawn = drawn
        self._explain = explain
        self._last: ResearchContext | None = None
        self._remembered = ""  # whose lines are under the arrow keys
        self.unanswered = False  # a question had no answer

    def say(self, message: str) -> None:
        if not self._given.quiet:
            from cli.output import say

            say(message)

    def welcome(self) -> None:
        documents, pages = self._index.documents.totals()
        turns = self._turns()
        where = f", {turns} questions so far" if turns else ""
        self.say(f"ctx: {documents:,} documents, {pages:,} pages; session {self._session}{where}. /help, Ctrl-D ends.")

    def farewell(self) -> None:
        if self._turns():
            import shlex

            self.say(f"ctx: go on with: ctx chat --session {shlex.quote(self._session)}")

    def take(self, line: str) -> bool:
        """A question or a command. False: it is over."""
        if not line.startswith("/"):
            if self._drawn:
                from cli.kept import add_history

                add_history(self._index.root, self._session, line)
            self._ask(line)
            return True
        word, _, rest = line.partition(" ")
        commands = {
            "/sources": self._sources,
            "/show": lambda: self._show(rest),
            "/open": lambda: self._open(rest),
            "/session": lambda: self._change(rest),
            "/forget": self._forget,
            "/help": self._help,
        }
        if word in ("/quit", "/exit", "/q"):
            return False
        if word not in commands:
            raise UsageError(f"there is no {word[:40]}", hint="/help tells what there is")
        commands[word]()
        return True

    def load_history(self) -> None:
        """Of another session than before, another history."""
        if self._remembered == self._session:
            return
        with suppress(ImportError):
            import readline

            from cli.kept import load_history

            readline.clear_history()
            readline.set_auto_history(True)
            for line in load_history(self._index.root, self._session):
                readline.add_history(line)
        self._remembered = self._session

    def _ask(self, question: str) -> None:
        from cli.options import check_legs

        context = self._index.ask(replace(self._request, question=question, session=self._session))
        check_legs(context.coverage)
        self._last = context
        self.unanswered = self.unanswered or not context.sources or _is_unsure(context)
        self._keep_numbers(context)
        memories = self._recalled(context)
        answer = None if self._writer is None else self._written(self._writer, context)
        if self._drawn:
            from cli.chat_view import show_answer

            mark = partial(self._index.documents.matches, question=context.searched or question)
            show_answer(context, mark, memories, answer, explain=self._explain)
        else:
            from cli.chat_view import write_answer

            write_answer(context, memories, answer, explain=self._explain)
            if context.follows and not self._given.quiet:
                from cli.views import follow_note

                self.say(f"ctx: note: {follow_note(context)}")

    def _written(self, writer: AnswerWriter, context: ResearchContext) -> CheckedAnswer:
        from cli.output import screen_size
        from cli.written_answer import paint_marks, streamed, tell_marks, tell_trouble

        answer = streamed(writer, context, screen_size()[0] if self._drawn else 0)
        if context.turn:
            self._index.keep_answer(context, answer)
        if self._drawn:
            paint_marks(answer)
        elif not self._given.quiet:
            tell_marks(answer)
        if answer.written.text or not _is_unsure(context):
            tell_trouble(answer, quiet=self._given.quiet)
        return answer

    def _recalled(self, context: ResearchContext) -> list[Recalled]:
        """What was told and may answer; what goes wrong with it costs itself alone."""
        try:
            found = self._index.memories.recall(context.searched or context.query, top_k=_RECALLED, threshold=FLOOR)
        except CtxError as error:
            self.say(f"ctx: note: nothing was recalled: {error.message}")
            return []
        return found.memories

    def _keep_numbers(self, context: ResearchContext) -> None:
        """`ctx open 2` knows them, too."""
        from cli.kept import remember

        remember(self._index.root, [source.ref for source in context.sources])

    def _source(self, number: str) -> SourceDocument:
        if self._last is None or not self._last.sources:
            raise NothingFoundError("there is no answer yet that a number could belong to", hint="ask something first")
        given = number.strip() or "1"
        count = len(self._last.sources)
        if not given.isdecimal() or len(given) > 4 or not 1 <= int(given) <= count:
            raise UsageError(f"the last answer has no source {given[:20]}", hint=f"its sources are 1 to {count}")
        return self._last.sources[int(given) - 1]

    def _sources(self) -> None:
        self._source("1")
        assert self._last is not None
        from cli.chat_view import show_sources

        mark = partial(self._index.documents.matches, question=self._last.searched or self._last.query)
        show_sources(self._last, mark, drawn=self._drawn)

    def _show(self, number: str) -> None:
        from cli.programs import page
        from research.text import block, one_line

        source = self._source(number)
        view = self._index.documents.page(source.doc_id, source.page)
        page(f"{one_line(source.filename)}, page {source.page}\n\n{block(view.item.text)}\n")

    def _open(self, number: str) -> None:
        from cli.programs import find_viewer, opened_words, place_of, start

        source = self._source(number)
        _, place = place_of(self._index, source.doc_id, source.page)
        viewer = find_viewer(place, self._index.settings.viewer, os.environ)
        start(viewer)
        self.say(opened_words(place, viewer))

    def _change(self, name: str) -> None:
        from research.conversation import session_name

        if name.strip():
            self._session, self._last = session_name(name), None
        turns = self._turns()
        self.say(f"ctx: session {self._session}, {f'{turns} questions so far' if turns else 'new'}")

    def _forget(self) -> None:
        from cli.kept import forget_history

        turns = self._turns()
        if self._drawn and turns and not typer.confirm(f"Forget the {turns} questions of {self._session}?", err=True):
            return
        removed = self._index.sessions.remove(self._session)
        forget_history(self._index.root, self._session)
        self._last, self._remembered = None, ""
        told = f" and {len(removed.memories)} memories" if removed.memories else ""
        self.say(f"ctx: forgot {removed.turns} questions{told}")

    def _help(self) -> None:
        from cli.chat_view import HELP
        from cli.output import write

        write(f"{HELP}\n")

    def _turns(self) -> int:
        return next((each.turns for each in self._index.sessions.list() if each.name == self._session), 0)


def _is_unsure(context: ResearchContext) -> bool:
    return context.confidence is not None and context.confidence.level == "none"


DETAILS = """
Answers as ctx ask does: sentences of your documents with their pages, or with a model of yours an answer written from
them and checked. A follow-up is searched with what the conversation is about ("and in 2024?", "what are its
limitations?"). What you told with ctx remember is recalled beside the documents, and said to be.

The conversation is kept in the index as a session: --session NAME goes on with it, ctx sessions lists them. /help tells
what else can be typed. Ctrl-C ends the answer under way; at the prompt it clears the line, and twice it ends. In a pipe
it answers a question a line, plainly and without a prompt.
"""

EPILOG = """
\b
Examples:
  ctx chat
  ctx chat --session thesis
  ctx chat --doc manual.pdf --no-answer
  printf 'How long is the guarantee?\\nAnd for the wind vane?\\n' | ctx chat
"""

WITHOUT = ("as_json",)  # a conversation is no document

DOOR = "ctx chat"

PROMPT = "> "


def command(
    ctx: typer.Context,
    *,
    explain: ExplainOption = False,
    answer: AnswerOption = None,
    model: ModelOption = None,
    model_url: ModelUrlOption = None,
    max_answer_tokens: AnswerTokensOption = None,
) -> int:
    from cli.options import asked_for, opened, tell
    from cli.output import on_terminal
    from research.conversation import session_name

    given = common(ctx)
    wanted = Wanted(answer)
    request = asked_for(ctx, DOOR, "")
    name = None if request.session is None else session_name(request.session)
    settings = settings_for(given, model=model, model_url=model_url, max_answer_tokens=max_answer_tokens)
    with opened(settings) as index, ExitStack() as stack:
        tell(index.prepare(), given)
        writer = None
        if wanted.written(settings):
            from cli.written_answer import writer_for

            writer = stack.enter_context(writer_for(index, wanted))
        drawn = sys.stdin.isatty() and on_terminal()
        request = replace(request, session=name or _new_name(index))
        chat = Chat(index, request, given, writer, drawn=drawn, explain=explain)
        return _typed(chat) if drawn else _piped(chat)


def _typed(chat: Chat) -> int:
    """At a terminal, until somebody has enough."""
    chat.welcome()
    for line in _lines_typed(chat):
        try:
            if not chat.take(line):
                break
        except KeyboardInterrupt:
            chat.say("ctx: interrupted")
        except CtxError as error:
            from cli.output import complain

            complain(error, as_json=False)
    chat.farewell()
    return 0


def _piped(chat: Chat) -> int:
    """A question a line; the exit code is that of a batch."""
    from cli.output import complain

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
    return 4 if failed else NothingFoundError("").exit_code if chat.unanswered else 0


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
            chat.say("ctx: Ctrl-C once more ends; /help tells what can be typed")
            continue
        interrupted = False
        text = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
        if text:
            yield text


def _new_name(index: Index) -> str:
    """By the time, which tells one from another in a list."""
    from datetime import datetime

    name = f"chat-{datetime.now():%Y-%m-%d-%H%M}"
    taken = {each.name for each in index.sessions.list()}
    numbered = (f"{name}-{number}" for number in range(2, 10_000))
    return name if name not in taken else next(each for each in numbered if each not in taken)
