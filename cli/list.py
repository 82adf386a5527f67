"""ctx list: the documents in the index."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.options import Common, DebugOption, IndexOption, JsonOption, QuietOption, common, index_for

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


def command(
    ctx: typer.Context,
    *,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.output import complain, on_terminal, paint, write_document, write_line
    from cli.terminal import phrase
    from research.errors import NothingFoundError

    documents = _documents(common(ctx, index, quiet))
    if as_json:
        write_document("ctx.list/1", {"documents": [asdict(document) for document in documents]})
    elif on_terminal() and documents:
        paint([_table(documents)])
    else:
        for d in documents:
            write_line(d.doc_id, d.filename, d.num_pages, phrase(d.title), d.timestamp)
    if documents:
        return 0
    nothing = NothingFoundError("the index has no documents", hint="add some: ctx ingest PATH")
    complain(nothing, as_json=False)
    return nothing.exit_code


def _documents(given: Common) -> list[DocumentInfo]:
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.documents import all_documents

    paths = index_for(given)
    if not paths.exists:
        return []
    with Catalog(paths) as catalog:
        return all_documents(catalog)


def _table(documents: Iterable[DocumentInfo]) -> Table:
    from rich import box
    from rich.table import Table

    from cli.terminal import one_line, phrase
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
