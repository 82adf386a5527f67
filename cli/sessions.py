"""ctx sessions: the conversations that are kept in the index."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_for
from research.errors import UsageError

if TYPE_CHECKING:
    from cli.options import Common
    from research.index import Index
    from research.sessions import AskedTurn

DETAILS = """
What is asked with ctx chat or ctx ask --session is kept in the index: the question, what was searched, the pages cited
with what was quoted of them, and what a model wrote. `remove` takes all of it away, with the memories that were told in
the session and what was made from them. A document that is removed takes its quotes out of every session.
In a pipe the fields of `list` are separated by tabs: name, questions, last asked, first question.
"""

EPILOG = """
\b
Examples:
  ctx sessions
  ctx sessions show thesis
  ctx sessions show thesis --json | jq -r '.turns[].question'
  ctx sessions remove thesis
"""

_SHOWN = 72  # characters of a question in the list


class Action(StrEnum):
    list = "list"
    show = "show"
    remove = "remove"


def command(
    ctx: typer.Context,
    *,
    action: Annotated[
        Action, typer.Argument(metavar="list|show|remove", help="What to do. Default: list.")
    ] = Action.list,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Of the session, for show and remove.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="remove: do not ask.")] = False,
) -> int:
    given = common(ctx)
    if action is Action.list:
        if name is not None:
            raise UsageError(f"list takes no {name!r}", hint=f"to see it: ctx sessions show {name}")
        _list(index_for(given), given)
        return 0
    if name is None:
        raise UsageError(f"{action} needs the name of a session", hint="see them with: ctx sessions")
    with index_for(given) as index:
        if action is Action.show:
            _show(index.sessions.get(name), name, given)
            return 0
        return _remove(index, name, given, yes=yes)


def _list(index: Index, given: Common) -> None:
    from cli.output import say, write_document, write_line

    with index:
        found = index.sessions.list()
    if given.as_json:
        write_document("ctx.sessions/1", {"sessions": [asdict(each) for each in found]})
        return
    for each in found:
        first = each.question if len(each.question) <= _SHOWN else f"{each.question[: _SHOWN - 1]}…"
        write_line(each.name, each.turns, each.last_at[:16].replace("T", " "), first)
    if not found and not given.quiet:
        say("ctx: note: there are no sessions yet; begin one with: ctx chat")


def _show(turns: list[AskedTurn], name: str, given: Common) -> None:
    from cli.output import write, write_document
    from research.text import block, one_line, phrase

    if given.as_json:
        write_document("ctx.sessions/1", {"session": name, "turns": [turn.to_dict() for turn in turns]})
        return
    for turn in turns:
        write(f"{'' if turn.number == turns[0].number else chr(10)}{turn.number}. {phrase(turn.question)}\n")
        if turn.searched != turn.question:
            write(f"   searched: {phrase(turn.searched)}\n")
        if turn.answer:
            write(block(turn.answer) + "\n")
        for source in turn.sources:
            for quote in () if turn.answer else source.quotes:
                write(f"“{phrase(quote)}” [{source.citation}]\n")
        for source in turn.sources:
            write(f"[{source.citation}] {one_line(source.filename)}, page {source.page}\n")


def _remove(index: Index, name: str, given: Common, *, yes: bool) -> int:
    from cli.output import say, write_document, write_line

    if not yes and sys.stdin.isatty() and not typer.confirm(f"Remove the session {name}?", err=True):
        say("ctx: nothing was removed")
        return 1
    removed = index.sessions.remove(name)
    from cli.kept import forget_history

    forget_history(index.root, removed.name)
    if given.as_json:
        fields = {"name": removed.name, "turns": removed.turns, "memories": len(removed.memories)}
        write_document("ctx.sessions/1", {"removed": fields})
    else:
        write_line("removed", removed.name, f"{removed.turns} questions")
    if removed.memories and not given.quiet:
        say(f"ctx: {len(removed.memories)} memories of the session were forgotten with it")
    return 0
