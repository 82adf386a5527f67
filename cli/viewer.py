"""Which program shows a PDF at a page, and how it is told.

The setting `viewer` first; else the desktop's own program for PDFs if it can be told the page; else any that can; else
a browser; else whatever the desktop opens files with, without the page. Programs get a list of arguments, never a line
that a shell reads, and every path is absolute, so no name is taken for an option.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from research.errors import CtxError, UsageError

# Programs that take a page, by the name of the program; {path}, {page} and {link} are put in.
VIEWERS: dict[str, Sequence[str]] = {
    "evince": ("--page-index={page}", "{path}"),
    "papers": ("--page-index={page}", "{path}"),
    "okular": ("--page", "{page}", "{path}"),
    "zathura": ("--page={page}", "{path}"),
    "atril": ("--page-index={page}", "{path}"),
    "xreader": ("--page-index={page}", "{path}"),
    "qpdfview": ("{path}#{page}",),
    "sioyek": ("--page", "{page}", "{path}"),
    "mupdf": ("{path}", "{page}"),
    "chromium": ("{link}",),
    "google-chrome": ("{link}",),
    "brave-browser": ("{link}",),
    "microsoft-edge": ("{link}",),
    "firefox": ("{link}",),
}
_WITHOUT_PAGE = ("xdg-open", "wslview")  # the desktop's own choice
INSTALL = "install one that takes a page (evince, okular, zathura, mupdf, firefox), or set viewer, e.g."
EXAMPLE = 'CTX_VIEWER="okular --page {page} {path}"'

_AT_ONCE = 1.0  # seconds in which a program that cannot start has ended


@dataclass(frozen=True, slots=True)
class Place:
    """A page of a file."""

    path: str
    page: int
    link: str


@dataclass(frozen=True, slots=True)
class Viewer:
    """A program with its arguments; `takes_page`: whether it goes to the page by itself."""

    command: list[str]
    takes_page: bool = True


def find_viewer(place: Place, setting: str, environment: Mapping[str, str], platform: str = sys.platform) -> Viewer:
    """What opens it here. Raises CtxError with what to install where there is nothing."""
    if setting:
        return from_template(setting, place)
    path = environment.get("PATH", os.defpath)
    if platform == "darwin":
        return Viewer(["open", place.path], takes_page=False)
    if not any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")):
        raise CtxError(f"there is no screen to show {place.path} on", hint=f"copy the link; or set viewer: {EXAMPLE}")
    preferred = _desktops_own(path, environment)
    for name in sorted(VIEWERS, key=lambda name: name not in preferred):
        program = shutil.which(name, path=path)
        if program:
            return Viewer([program, *(_filled(part, place) for part in VIEWERS[name])])
    for name in _WITHOUT_PAGE:
        program = shutil.which(name, path=path)
        if program:
            return Viewer([program, place.path], takes_page=False)
    raise CtxError("no program was found that shows PDF files", hint=f"{INSTALL} {EXAMPLE}")


def from_template(template: str, place: Place) -> Viewer:
    """`okular --page {page} {path}`, cut into words before anything is put in. Without {path} or {link} the path comes
    last."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError(f"viewer cannot be read: {error}", hint=f"for example: {EXAMPLE}") from error
    if not words:
        raise UsageError("viewer names no program", hint=f"for example: {EXAMPLE}")
    if not any("{path}" in word or "{link}" in word for word in words):
        words.append("{path}")
    takes_page = any("{page}" in word or "{link}" in word for word in words)
    return Viewer([_filled(word, place) for word in words], takes_page)


def start(viewer: Viewer) -> None:
    """Let it run by itself. Raises CtxError if it cannot, or ends at once with a failure."""
    name = viewer.command[0]
    try:
        process = subprocess.Popen(
            viewer.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it outlives this terminal, and Ctrl-C is not meant for it
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CtxError(f"the viewer {name} cannot run: {reason}", hint=f"{INSTALL} {EXAMPLE}") from error
    try:
        code = process.wait(timeout=_AT_ONCE)
    except subprocess.TimeoutExpired:
        process.returncode = 0  # it runs; nobody waits for it any more
        return
    if code:
        raise CtxError(f"the viewer {name} ended with exit code {code}", hint=f"{INSTALL} {EXAMPLE}")


def _filled(word: str, place: Place) -> str:
    """In one pass, so that a file called {page}.pdf stays one."""
    import re

    values = {"path": place.path, "page": str(place.page), "link": place.link}
    return re.sub(r"\{(path|page|link)\}", lambda match: values[match[1]], word)


def _desktops_own(path: str, environment: Mapping[str, str]) -> str:
    """The name of the desktop's entry for PDFs, as `org.gnome.Evince.desktop`; empty if nobody says."""
    program = shutil.which("xdg-mime", path=path)
    if not program:
        return ""
    try:
        asked = subprocess.run(
            [program, "query", "default", "application/pdf"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(environment),
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.decode("utf-8", "replace").strip().lower()
