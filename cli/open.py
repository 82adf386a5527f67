"""ctx open: the PDF itself, at the cited page.

The setting `viewer` says which program shows it; else the desktop's own program for PDFs if it can be told the page;
else any that can; else a browser; else whatever the desktop opens files with, without the page. Programs get a list of
arguments, never a line that a shell reads, and every path is absolute, so no name is taken for an option.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call, complete_document, offers
from cli.output import write, write_document, write_line
from research.errors import CtxError, NothingFoundError, UsageError
from research.text import one_line

if TYPE_CHECKING:
    from research.index import Index
    from research.models import Item, PageView

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


@offers(acting=True)
def open_page(
    call: Call,
    what: Annotated[
        str,
        typer.Argument(
            metavar="N|DOC",
            help="A citation's number, or a document's name, path, title, id or ref.",
            autocompletion=complete_document,
        ),
    ],
    page: Annotated[
        int | None, typer.Argument(metavar="[PAGE]", help="The page, where DOC is a document. Default: 1.")
    ] = None,
    *,
    only_print: Annotated[bool, typer.Option("--print", help="Print the link and open nothing.")] = False,
) -> int:
    """N is a number of the last answer or search in this terminal. PAGE counts from 1 as a PDF viewer does. The program
    is the one your desktop has for PDFs, or the setting viewer (CTX_VIEWER), e.g. "okular --page {page} {path}".

    Examples:
      ctx open 1
      ctx open crisis.pdf 3
      ctx open 2 --print
    """
    settings = call.settings()
    with call.index_of(settings) as index:
        item, place = place_of(index, what, page)
    if not only_print:
        try:
            done = open_place(place, settings.viewer)
        except CtxError:
            if not call.as_json:
                write_line(place.path, place.page, place.link)  # so that it can be opened by hand
            raise
    if call.as_json:
        fields = {"doc_id": item.ref.key, "filename": item.metadata["filename"], "page": place.page}
        fields |= {"ref": str(item.ref), "source_path": place.path, "link": place.link, "opened": not only_print}
        write_document("ctx.open/1", fields)
    elif only_print:
        write(place.link + "\n")
    else:
        call.say(done)
    return 0


def open_place(place: Place, setting: str) -> str:
    """Show the page in the viewer; what to say of it."""
    viewer = find_viewer(place, setting, os.environ)
    start(viewer)
    told = "" if viewer.takes_page else f"; the program cannot be told the page: go to page {place.page}"
    return f"opened {one_line(place.path)} at page {place.page}{told}"


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
    from cli.session import kept_sources

    refs = kept_sources(index.root)
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
