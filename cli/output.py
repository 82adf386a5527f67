"""The only code that writes to the terminal: data to stdout, talk to stderr.

Text from documents, file names and error reasons is somebody else's: all that is shown passes through `one_line`,
`phrase` or `block` of `research.text`. JSON keeps the text as it is, escaped.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from research.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console, RenderableType

    from research.errors import CtxError


_USUAL = (["less"], ["more"])
_DID_NOT_RUN = (126, 127)  # what env, sh and the like say of a program that is not there


def prepare_streams() -> None:
    """Any character can be printed, whatever the locale: what it cannot show comes out escaped.

    A stream that came closed (`>&-`) leads nowhere. In order, so that each takes its own number again: the next file
    to be opened, the index's perhaps, would otherwise become stdout.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def on_terminal() -> bool:
    return sys.stdout.isatty()


def write(text: str) -> bool:
    """Data. A reader that has gone away (`| head`) is no error: the rest goes nowhere, the command goes on. False for
    whoever would have more to write and need not."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _mute_stdout()
        return False
    return True


def version_line() -> str:
    from research import __version__

    return f"ctx {__version__}\n"


def write_line(*fields: object) -> None:
    """One line of tab-separated fields, each made safe."""
    write("\t".join(one_line(str(field)) for field in fields) + "\n")


def write_document(schema: str, fields: Mapping[str, Any]) -> None:
    """The one JSON document of a command. ASCII only, so that no encoding and no terminal can spoil it."""
    import json

    indent = 2 if on_terminal() else None
    write(json.dumps({"schema": schema, **fields}, ensure_ascii=True, indent=indent) + "\n")


def say(message: str) -> None:
    """One line of talk."""
    sys.stderr.write(one_line(message) + "\n")
    sys.stderr.flush()


def complain(error: CtxError, *, as_json: bool) -> None:
    """An error in two lines: what and why, and the next command. With `as_json` also as the document."""
    if as_json:
        fields: dict[str, Any] = {"error": error.message, "hint": error.hint, "exit_code": error.exit_code}
        fields |= {"trace_id": error.trace_id} if error.trace_id else {}
        write_document("ctx.error/1", fields)
    say(f"ctx: error: {error.message}")
    if error.hint:
        say(f"hint: {error.hint}")
    if error.trace_id:
        say(f"trace: {error.trace_id}")


def console(*, stderr: bool = False) -> Console:
    """Rich, with everything off that would read meaning into text: markup, emoji codes, highlighting."""
    from rich.console import Console

    if not stderr and on_terminal():
        width, height = screen_size()  # Rich takes a dumb terminal for 80 × 25, however wide it is
        return Console(width=width, height=height, markup=False, emoji=False, highlight=False)
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def screen_size() -> tuple[int, int]:
    """Columns and rows of the terminal, or what COLUMNS and LINES say; 80 × 24 where nobody knows."""
    from shutil import get_terminal_size

    return get_terminal_size()


def painted(renderables: Iterable[RenderableType]) -> str:
    """Rich output as text, escapes and all."""
    screen = console()
    with screen.capture() as captured:
        for renderable in renderables:
            screen.print(renderable)
    return captured.get()


def paint(renderables: Iterable[RenderableType]) -> None:
    """Rich output as data, through the same writer as all other data."""
    write(painted(renderables))


def _mute_stdout() -> None:
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # not a real file, as in tests
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def terminal_name() -> str:
    """The terminal's device and whose it is now, for devices are given anew; empty without one."""
    for stream in (sys.stderr, sys.stdin, sys.stdout):
        with suppress(OSError, ValueError, AttributeError):
            return f"{os.ttyname(stream.fileno())} {os.getsid(0)}"
    return ""


def page(text: str) -> None:
    """Show long output through the user's pager, as git and man do it: $PAGER, else less, else more. Only the
    environment decides which program runs, and no shell reads it. As it is where it fits the screen or is no terminal,
    else page by page. Leaving early is no error."""
    if on_terminal() and text.count("\n") >= screen_size()[1]:
        for command in pagers(os.environ):
            if _shown_by(command, text):
                return
    write(text)


def pagers(environment: Mapping[str, str]) -> list[list[str]]:
    """The commands to try, in order; none where a pager could not draw or is not wanted."""
    if environment.get("TERM", "dumb") == "dumb":
        return []
    chosen = environment.get("PAGER")
    if chosen is None:
        return list(_USUAL)
    try:
        words = shlex.split(chosen)
    except ValueError:  # a quote that is not closed
        return []
    return [] if words in ([], ["cat"]) else [words]


def _shown_by(command: list[str], text: str) -> bool:
    """Whether the program could be started. It may end before it has read all."""
    import signal
    import subprocess

    # Ctrl-C is the pager's, in which it ends a search. Handled by doing nothing: what is ignored, a child ignores too.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": "R", **os.environ}) as pager:
            pager.communicate(text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError):  # there is no such program, or it has no name that could be one
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return pager.returncode not in _DID_NOT_RUN
