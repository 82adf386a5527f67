"""Long output through the user's pager, as git and man do it: $PAGER, else less; plain where there is neither.

Only the environment decides which program runs, and no shell reads it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from contextlib import suppress

from cli.output import on_terminal, screen_size, write

_PLAIN: tuple[list[str], ...] = ([], ["cat"])


def page(text: str) -> None:
    """Show it: as it is where it fits the screen or is no terminal, else page by page. Leaving early is no error."""
    rows = screen_size()[1]
    command = _pager()
    if not on_terminal() or command in _PLAIN or text.count("\n") < rows:
        write(text)
        return
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": "R", **os.environ})
    except OSError:  # there is no such program
        write(text)
        return
    _feed(pager, text)


def _pager() -> list[str]:
    if os.environ.get("TERM", "dumb") == "dumb":
        return []
    try:
        return shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quote that is not closed
        return []


def _feed(pager: subprocess.Popen[bytes], text: str) -> None:
    """Ctrl-C belongs to the pager meanwhile: less takes it for the end of a search."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):  # q, before all was read
            pager.communicate(text.encode("utf-8", "backslashreplace"))
        pager.wait()
    finally:
        signal.signal(signal.SIGINT, before)
