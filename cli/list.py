"""ctx list: the documents in the index."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.options import common, index_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from research.records import DocumentInfo

DETAILS = "In a pipe each document is one line of tab-separated fields: id, file, pages, title, added."

EPILOG = """
\b
Examples:
  ctx list
  ctx list | cut -f2
  ctx list --json | jq '.documents | length'
"""


def command(ctx: typer.Context) -> int:
    from cli.output import on_terminal, paint, phrase, say, write_document, write_line

    given = common(ctx)
    opened = index_for(given)
    documents = opened.documents() if opened.exists else []
    if given.as_json:
        write_document("ctx.list/1", {"documents": [asdict(document) for document in documents]})
    elif on_terminal() and documents:
        paint([_table(documents)])
    else:
        for d in documents:
            write_line(d.doc_id, d.filename, d.num_pages, phrase(d.title), d.timestamp)
    if not documents and not given.quiet:
        nothing = opened.nothing_found()
        say(f"ctx: note: {nothing.message}; {nothing.hint}")
    return 0


def _table(documents: Iterable[DocumentInfo]) -> Table:
    from rich import box
    from rich.table import Table

    from cli.output import one_line, phrase
    from cli.views import plain

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("id", no_wrap=True, style="dim")
    table.add_column("file", overflow="fold")
    table.add_column("pages", justify="right", no_wrap=True)
    table.add_column("title", overflow="fold")
    table.add_column("added", no_wrap=True)
    for d in documents:
        table.add_row(
            plain(d.doc_id),
            plain(one_line(d.filename), "cyan"),
            plain(str(d.num_pages)),
            plain(phrase(d.title)),
            plain(d.timestamp[:10]),
        )
    return table
