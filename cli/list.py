"""ctx list: the documents in the index."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.options import common, index_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from research.records import DocumentInfo

DETAILS = "In a pipe each document is one line of tab-separated fields: id, file, pages, title, added."

EPILOG = """
\b
Examples:
  ctx list
  ctx list | cut -f2
  ctx list --json | jq '.documents | length'
"""

_ID = 8  # characters of an id, unless two documents share them
_LEAST_TITLE = 14
# Cells that names keep, or their longest, before a column goes; the last go first.
_LEAST_NAME = {"pages": 12, "id": 20, "added": 32, "title": 32}


def command(ctx: typer.Context) -> int:
    from cli.layout import has_links
    from cli.output import on_terminal, paint, say, screen_size, write_document, write_line
    from research.reports import amount
    from research.text import one_line, phrase

    given = common(ctx)
    opened = index_for(given)
    documents = opened.documents.list() if opened.exists else []
    repositories, trees = opened.documents.repositories(), opened.documents.code_trees()
    if given.as_json:
        history = {"repositories": [asdict(each) for each in repositories]} if repositories else {}
        code = {"code": [asdict(each) for each in trees]} if trees else {}
        write_document("ctx.list/1", {"documents": [asdict(document) for document in documents], **history, **code})
    elif on_terminal() and documents:
        paint(document_lines(documents, screen_size()[0], links=has_links(opened.settings.links)))
    else:
        for d in documents:
            write_line(d.doc_id, d.filename, d.num_pages, phrase(d.title), d.timestamp)
    if not given.quiet and not given.as_json:
        for tree in trees:
            held = f"{amount(tree.units, 'piece')} of code from {amount(tree.files, 'file')}"
            say(f"ctx: note: {held} of {one_line(tree.root)} in the index, too")
        for each in repositories:
            say(f"ctx: note: {amount(each.commits, 'commit')} of {one_line(each.repository)} in the index, too")
    if not documents and not repositories and not trees and not given.quiet:
        nothing = opened.nothing_found()
        say(f"ctx: note: {nothing.message}; {nothing.hint}")
    return 0


def document_lines(documents: Sequence[DocumentInfo], width: int, *, links: bool) -> Iterator[Text]:
    """A document a line, its file first. On a narrow terminal the columns at the end go, then the name's middle."""
    from cli.layout import cells, link, shorten_end, shorten_middle
    from cli.views import plain
    from research.models import page_link
    from research.text import one_line, phrase

    digits = _id_digits(documents)
    longest = max(len("file"), *(cells(one_line(d.filename)) for d in documents))
    columns, room = _columns(width, longest, digits)
    yield plain(
        "  ".join(
            ["file".ljust(room), *(name.rjust(w) if name == "pages" else name.ljust(w) for name, w in columns)]
        ).rstrip(),
        "dim",
    )
    for d in documents:
        name = shorten_middle(one_line(d.filename), room)
        line = plain("").append_text(link(plain(name, "cyan"), page_link(d.source_path, 1), links=links))
        line.append(" " * (room - cells(name)))
        values = {
            "pages": str(d.num_pages),
            "id": d.doc_id[:digits],
            "added": d.timestamp[:10],
            "title": phrase(d.title),
        }
        for column, cell_width in columns:
            cell = shorten_end(values[column], cell_width)
            padding = " " * (cell_width - cells(cell))
            line.append(
                f"  {padding}{cell}" if column == "pages" else f"  {cell}{padding}", "dim" if column == "id" else ""
            )
        line.rstrip()
        yield line


def _columns(width: int, longest: int, digits: int) -> tuple[list[tuple[str, int]], int]:
    """The columns after the file's that there is room for, and the room that is left for names."""
    columns: list[tuple[str, int]] = []
    room = width
    for name, cell_width in (("pages", 5), ("id", digits), ("added", 10), ("title", _LEAST_TITLE)):
        if room - cell_width - 2 < min(longest, _LEAST_NAME[name]):
            break
        columns.append((name, cell_width))
        room -= cell_width + 2
    spare = max(0, room - longest)
    if columns and columns[-1][0] == "title":
        columns[-1] = ("title", _LEAST_TITLE + spare)
    return columns, room - spare


def _id_digits(documents: Sequence[DocumentInfo]) -> int:
    """How much of an id is enough to tell the documents apart."""
    return next(n for n in range(_ID, 65) if n == 64 or len({d.doc_id[:n] for d in documents}) == len(documents))
