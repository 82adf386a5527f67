"""ctx outline: a document's table of contents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, complete_document, index_of, settings_for

if TYPE_CHECKING:
    from rich.text import Text

    from cli.answer_view import Screen
    from research.models import DocumentOutline

DETAILS = """
Shows the headings with their pages, counted from 1 as a PDF viewer does; a document without headings, by how its pages
begin. In a pipe each is one line of tab-separated fields: level, page, title. Print what you find with ctx show.
"""

EPILOG = """
\b
Examples:
  ctx outline handbook.pdf
  ctx outline RAPTOR --depth 1
  ctx outline handbook.pdf --json | jq -r '.entries[] | "\\(.page) \\(.title)"'
  ctx show handbook.pdf 12-14
"""


def command(
    ctx: typer.Context,
    *,
    doc: Annotated[
        str,
        typer.Argument(metavar="DOC", help="A document's name, path, title or id.", autocompletion=complete_document),
    ],
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", min=1, help="Only headings down to this level.")
    ] = None,
) -> int:
    from cli.answer_view import Screen
    from cli.layout import has_links
    from cli.output import on_terminal, painted, say, screen_size, write_document, write_line
    from cli.programs import page
    from research.text import phrase

    given = common(ctx)
    settings = settings_for(given)
    with index_of(settings) as opened:
        found = opened.documents.outline(doc).down_to(depth)
    if given.as_json:
        write_document("ctx.outline/1", found.to_dict())
    elif on_terminal():
        width, height = screen_size()
        fits = len(found.entries) + len(found.pages) + 2 < height  # an older less shows the escapes of links
        page(painted(_lines(found, Screen(width, height, links=fits and has_links(settings.links)))))
    else:
        for entry in found.entries:
            write_line(entry.level, entry.page, phrase(entry.title))
        for beginning in found.pages:
            write_line(1, beginning.page, phrase(beginning.text))
    if found.pages and not given.quiet:
        say("ctx: note: this document has no headings; its pages are listed by what they begin with")
    return 0


def _lines(found: DocumentOutline, screen: Screen) -> Iterator[Text]:
    """The page, then the title, further in the deeper it stands."""
    from cli.layout import link, shorten_end
    from cli.views import plain
    from research.models import page_link
    from research.text import one_line, phrase

    info = found.document
    entries = [(entry.level, entry.page, entry.title) for entry in found.entries]
    entries += [(1, beginning.page, beginning.text) for beginning in found.pages]
    name = shorten_end(one_line(info.filename), screen.width)
    yield link(plain(name, "bold cyan"), page_link(info.source_path, 1), links=screen.links)
    if info.title:
        yield plain(shorten_end(phrase(info.title), screen.width), "dim")
    digits = len(str(info.num_pages))
    for level, page, title in entries:
        indent = min(2 * (level - 1), screen.width // 3)
        shown = shorten_end(phrase(title), max(1, screen.width - digits - 2 - indent))
        line = plain(f"{page:>{digits}}  ", "dim")
        line.append(" " * indent)
        yield line.append_text(link(plain(shown), page_link(info.source_path, page), links=screen.links))
