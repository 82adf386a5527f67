"""Long output through the user's pager, as git and man do it: $PAGER, else less, else more; plain where there is none.

Only the environment decides which program runs, and no shell reads it.

Which program shows a PDF at a page, and how it is told.

The setting `viewer` first; else the desktop's own program for PDFs if it can be told the page; else any that can; else
a browser; else whatever the desktop opens files with, without the page. Programs get a list of arguments, never a line
that a shell reads, and every path is absolute, so no name is taken for an option.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.output import on_terminal, screen_size, write
from research.errors import CtxError, NothingFoundError, UsageError

if TYPE_CHECKING:
    from research.index import Index
    from research.models import Item, PageView

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


def opened_words(place: Place, viewer: Viewer) -> str:
    from research.text import one_line

    told = "" if viewer.takes_page else f"; the program cannot be told the page: go to page {place.page}"
    return f"ctx: opened {one_line(place.path)} at page {place.page}{told}"


def place_of(index: Index, what: str, page: int | None) -> tuple[Item, Place]:
    """The page that is meant, and its file, which must be there."""
    from research.models import page_link

    cited = page is None and what.isdecimal()
    view = _cited(index, what) if cited else index.documents.page(what, page)
    number, facts = int(view.item.ref.part), view.item.metadata
    path = index.documents.file_of(view.item.ref.key)
    if path is None:
        image = " --image page.png" if facts["image_path"] else ""
        raise CtxError(
            f"the file is gone: {facts['source_path']}",
            hint="moved? ctx ingest NEWPLACE (it keeps its id); the page as it was:"
            f" ctx show {view.item.ref.key} {number}{image}",
        )
    path = os.path.abspath(path)  # noqa: PTH100  a name that begins with a dash must not be an option
    return view.item, Place(path, number, page_link(path, number))


def _cited(index: Index, number: str) -> PageView:
    """The page that a number of the last answer means."""
    from cli.kept import remembered

    refs = remembered(index.root)
    if not refs:
        raise NothingFoundError(
            "there is no answer yet that a number could belong to", hint='ask first: ctx ask "…"; or: ctx open DOC PAGE'
        )
    if not 1 <= int(number[-9:]) <= len(refs) or len(number) > 9:
        raise UsageError(
            f"the last answer has no source {number[:9]}{'…' * (len(number) > 9)}",
            hint=f"its sources are 1 to {len(refs)}; for a document of that name: ctx open DOC PAGE",
        )
    ref = refs[int(number) - 1]
    if ref.kind != "page":
        raise UsageError(
            f"source {number} of the last answer is no page: {ref}", hint="ctx open opens pages of documents"
        )
    try:
        return index.documents.page(ref.key, int(ref.part))
    except NothingFoundError as error:
        raise NothingFoundError(
            f"source {number} of the last answer is no longer in the index ({error.message})",
            hint='ask again: ctx ask "…"; or see: ctx list',
        ) from error
