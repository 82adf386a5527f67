"""ctx open: the PDF itself, at the cited page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, complete_document, index_of, settings_for
from research.errors import CtxError

if TYPE_CHECKING:
    pass

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
    from cli.programs import find_viewer, opened_words, place_of, start

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
