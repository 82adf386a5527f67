"""ctx session: the conversations that are kept in the index.

What was typed in one, for the arrow keys, is one small file in the user's state folder; beside it, which pages the last
answer of a terminal cited, so that `ctx open 2` knows what 2 is: names of pages alone, neither questions nor text. Only
their owner can read these files. Where they cannot be written nothing is remembered, and what runs without a terminal
(a job, an agent) leaves no answer: nobody will type a number after it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import typer

from cli.call import Call, Verbs, offers
from cli.options import NameArgument, YesOption
from cli.output import say, terminal_name, write, write_document
from research.files import user_state
from research.models import Ref
from research.text import block, one_line, phrase

_SHOWN = 72  # characters of a question in the list
_TERMINALS = 8  # whose last answers are kept
_MOST_LINES = 1_000
_MOST_BYTES = 1 << 20


@offers(acting=True)
def list_sessions(call: Call) -> int:
    """List them. In a pipe the fields are separated by tabs: name, questions, last asked, first question.

    Examples:
      ctx session
      ctx session list --json | jq -r '.sessions[].name'
    """
    with call.index() as index:
        found = index.sessions.list()
    lines = (
        (
            each.name,
            each.turns,
            each.last_at[:16].replace("T", " "),
            each.question if len(each.question) <= _SHOWN else f"{each.question[: _SHOWN - 1]}…",
        )
        for each in found
    )
    call.show("ctx.sessions/1", {"sessions": [asdict(each) for each in found]}, lines)
    if not found and not call.as_json:
        call.note("there are no sessions yet; begin one with: ctx chat")
    return 0


@offers(acting=True)
def show_session(call: Call, name: NameArgument) -> int:
    """Print the questions of one, and what answered them.

    Examples:
      ctx session show thesis
      ctx session show thesis --json | jq -r '.turns[].question'
    """
    with call.index() as index:
        turns = index.sessions.get(name)
    if call.as_json:
        write_document("ctx.sessions/1", {"session": name, "turns": [turn.to_dict() for turn in turns]})
        return 0
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
    return 0


def remove_session(call: Call, name: NameArgument, *, yes: YesOption = False) -> int:
    """Take one away, with the memories that were told in it and what was made from them.

    Examples:
      ctx session remove thesis
    """
    with call.index() as index:
        if not yes and sys.stdin.isatty() and not typer.confirm(f"Remove the session {name}?", err=True):
            say("ctx: nothing was removed")
            return 1
        removed = index.sessions.remove(name)
    forget_history(index.root, removed.name)
    call.show(
        "ctx.sessions/1",
        {"removed": {"name": removed.name, "turns": removed.turns, "memories": len(removed.memories)}},
        [("removed", removed.name, f"{removed.turns} questions")],
    )
    if removed.memories:
        call.say(f"{len(removed.memories)} memories of the session were forgotten with it")
    return 0


SESSION = Verbs(
    """What is asked with ctx chat or ctx ask --session is kept in the index: the question, what was searched, the pages
    cited with what was quoted of them, and what a model wrote. A document that is removed takes its quotes out of every
    session.""",
    {"list": list_sessions, "show": show_session, "remove": remove_session},
)


def keep_sources(index: Path, refs: Sequence[str]) -> None:
    """Keep what the numbers of an answer mean. Where that cannot be written, `ctx open N` says there is no answer."""
    here = terminal_name()
    file = _answer_file(index)
    answers = [answer for answer in _answers(file) if answer[0] != here][: _TERMINALS - 1]
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as written:
            json.dump([[here, list(refs)], *answers], written)
        new.replace(file)


def kept_sources(index: Path) -> list[Ref]:
    """The sources of the last answer on this terminal, else of the last one anywhere; empty if there is none."""
    answers = _answers(_answer_file(index))
    here = terminal_name()
    refs = next((refs for terminal, refs in answers if terminal == here), answers[0][1] if answers else [])
    try:
        pages = [Ref.parse(ref) for ref in refs]
    except ValueError:
        return []
    return pages if all(page.kind != "page" or page.part.isdecimal() for page in pages) else []


def _answer_file(index: Path) -> Path:
    name = sha256(os.fsencode(os.path.realpath(index))).hexdigest()[:16]
    return user_state() / "answers" / f"{name}.json"


def _answers(file: Path) -> list[tuple[str, list[str]]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return [(str(terminal), [str(ref) for ref in refs]) for terminal, refs in found]
    except (OSError, ValueError, TypeError, RecursionError):  # none, or not as we wrote it: nothing is remembered
        return []


def load_history(index: Path, session: str) -> list[str]:
    """The lines typed in a session, oldest first."""
    try:
        with _opened(_history_file(index, session), os.O_RDONLY) as descriptor:
            content = os.read(descriptor, _MOST_BYTES)
    except OSError:
        return []
    return [line for line in content.decode("utf-8", "replace").splitlines() if line][-_MOST_LINES:]


def add_history(index: Path, session: str, line: str) -> None:
    file = _history_file(index, session)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines, how = [line], os.O_APPEND
        if file.exists() and file.stat().st_size > _MOST_BYTES // 2:
            lines, how = [*load_history(index, session)[-_MOST_LINES // 2 :], line], os.O_TRUNC
        text = "".join(" ".join(each.split()) + "\n" for each in lines)
        with _opened(file, os.O_WRONLY | os.O_CREAT | how) as descriptor:
            os.write(descriptor, text.encode("utf-8", "replace"))


def forget_history(index: Path, session: str) -> None:
    with suppress(OSError):
        _history_file(index, session).unlink()


@contextmanager
def _opened(file: Path, flags: int) -> Iterator[int]:
    """A file of ours by its descriptor; a link in its place is not followed."""
    descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _history_file(index: Path, session: str) -> Path:
    """By a hash of both: a session's name may hold anything, and says what somebody works on."""
    key = os.fsencode(os.path.realpath(index)) + b"\0" + session.encode("utf-8", "surrogatepass")
    return user_state() / "chat" / f"{sha256(key).hexdigest()[:24]}.history"
