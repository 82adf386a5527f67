"""ctx open: the PDF itself, at the cited page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from cli.completion import complete_document
from cli.options import common, index_of, settings_for
from research.errors import CtxError, NothingFoundError, UsageError

if TYPE_CHECKING:
    from cli.viewer import Place, Viewer
    from research.index import Index
    from research.models import Item, PageView

DETAILS = """
N is a number of the last answer or search in this terminal. PAGE counts from 1 as a PDF viewer does. The program is the
one your desktop has for PDFs, or the setting viewer (CTX_VIEWER), e.g. "okular --page {page} {path}".
"""

EPILOG = """
\b
Examples:
  ctx open 1
  ctx open crisis.pdf 3
  ctx open 2 --print
"""


def command(
    ctx: typer.Context,
    *,
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
    only_print: Annotated[bool, typer.Option("--print", help="Print the link and open nothing.")] = False,
) -> int:
    from cli.output import say, write, write_document, write_line
    from cli.viewer import find_viewer, start

    given = common(ctx)
    settings = settings_for(given)
    with index_of(settings) as opened:
        item, place = place_of(opened, what, page)
    fields = {
        "doc_id": item.ref.key,
        "filename": item.metadata["filename"],
        "page": place.page,
        "ref": str(item.ref),
        "source_path": place.path,
        "link": place.link,
    }
    if only_print:
        if given.as_json:
            write_document("ctx.open/1", {**fields, "opened": False})
        else:
            write(place.link + "\n")
        return 0
    try:
        viewer = find_viewer(place, settings.viewer, os.environ)
        start(viewer)
    except CtxError:
        if not given.as_json:
            write_line(place.path, place.page, place.link)  # so that it can be opened by hand
        raise
    if given.as_json:
        write_document("ctx.open/1", {**fields, "opened": True})
    elif not given.quiet:
        say(opened_words(place, viewer))
    return 0


def opened_words(place: Place, viewer: Viewer) -> str:
    from research.visible_text import one_line

    told = "" if viewer.takes_page else f"; the program cannot be told the page: go to page {place.page}"
    return f"ctx: opened {one_line(place.path)} at page {place.page}{told}"


def place_of(index: Index, what: str, page: int | None) -> tuple[Item, Place]:
    """The page that is meant, and its file, which must be there."""
    from cli.viewer import Place
    from research.models import page_link

    cited = page is None and what.isdecimal()
    view = _cited(index, what) if cited else index.page(what, page)
    number, facts = int(view.item.ref.part), view.item.metadata
    path = index.file_of(view.item.ref.key)
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
    from cli.last_answer import remembered

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
        return index.page(ref.key, int(ref.part))
    except NothingFoundError as error:
        raise NothingFoundError(
            f"source {number} of the last answer is no longer in the index ({error.message})",
            hint='ask again: ctx ask "…"; or see: ctx list',
        ) from error
