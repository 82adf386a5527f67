"""Long output through the user's pager, as git and man do it: $PAGER, else less, else more; plain where there is none.

Only the environment decides which program runs, and no shell reads it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping

from cli.output import on_terminal, screen_size, write

_USUAL = (["less"], ["more"])
_DID_NOT_RUN = (126, 127)  # what env, sh and the like say of a program that is not there


def page(text: str) -> None:
    """Show it: as it is where it fits the screen or is no terminal, else page by page. Leaving early is no error."""
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
