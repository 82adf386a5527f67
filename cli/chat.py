"""ctx chat: one question after the other, each understood with those before it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from cli.model_options import AnswerOption, AnswerTokensOption, ModelOption, ModelUrlOption, Wanted
from cli.options import ExplainOption, common, settings_for
from research.errors import CtxError, NothingFoundError

if TYPE_CHECKING:
    from cli.chat_session import Chat
    from research.index import Index

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
    from cli.chat_session import Chat
    from cli.options import asked_for, opened, tell
    from cli.output import on_terminal
    from research.conversation.sessions import session_name

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
    taken = {each.name for each in index.sessions()}
    numbered = (f"{name}-{number}" for number in range(2, 10_000))
    return name if name not in taken else next(each for each in numbered if each not in taken)
