"""Links on a terminal (OSC 8): which terminals are given them, and text that carries one.

A terminal that does not know them shows the text alone, so they are left out only where they are known to do harm: on
consoles and in Emacs, which print the escapes, and in a VTE before 0.50, which crashed over them. `links` in the
settings, or CTX_LINKS, says it otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cli.output import on_terminal

if TYPE_CHECKING:
    from rich.text import Text

_WITHOUT = ("dumb", "unknown", "linux", "cons", "vt", "eterm", "emacs", "ansi", "sun", "bsdos")
_FIRST_VTE = 5000  # 0.50.0


def has_links(setting: str, environment: Mapping[str, str] | None = None) -> bool:
    """Whether what is printed may carry links: never in a pipe or a file."""
    if setting == "off" or not on_terminal():
        return False
    return setting == "on" or knows_links(os.environ if environment is None else environment)


def knows_links(environment: Mapping[str, str]) -> bool:
    term = environment.get("TERM", "")
    vte = environment.get("VTE_VERSION", "")
    if not term or term.startswith(_WITHOUT) or "INSIDE_EMACS" in environment:
        return False
    return not (vte.isdecimal() and int(vte) < _FIRST_VTE)


def link(text: Text, uri: str, *, links: bool) -> Text:
    """The text, which opens the URI when it is clicked. The URI is percent-encoded, so it cannot end the escape."""
    if links and uri.isascii() and uri.isprintable():
        from rich.style import Style

        text.stylize(Style(link=uri))
    return text
