"""ctx tag: give documents tags, take them away, list them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, complete_document, complete_tag, index_for
from research.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from research.index import Index
    from research.records import DocumentInfo

DETAILS = """
Without DOC it lists all tags and how many documents have each; with DOC alone that document's. A pattern tags all that
it means. Tags stay when a file changes, and ask and search take --tag. In a pipe the fields of a line are separated by
tabs.
"""

EPILOG = """
\b
Examples:
  ctx tag invoice-17.pdf tax 2025
  ctx tag 'papers/*' biology
  ctx tag --remove invoice-17.pdf 2025
  ctx tag
  ctx ask "Which deductions apply?" --tag tax
"""


def command(
    ctx: typer.Context,
    *,
    doc: Annotated[
        str | None,
        typer.Argument(
            metavar="[DOC",
            help="A document's name, path, pattern, title or id.",
            autocompletion=complete_document,
        ),
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="TAG...]", help="Its tags.", autocompletion=complete_tag)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take these tags away.")] = False,
) -> int:
    given = common(ctx)
    index = index_for(given)
    if remove and not (doc and tags):
        raise UsageError("--remove needs a document and its tags", hint="ctx tag --remove DOC TAG...")
    if doc is None:
        _list_tags(index.documents.all_tags() if index.exists else {}, as_json=given.as_json)
        return 0
    change = index.documents.untag if remove else index.documents.tag
    chosen = change(doc, *tags) if tags else index.documents.list(doc)
    _list_documents(index, chosen, as_json=given.as_json)
    return 0


def _list_tags(tags: Mapping[str, Sequence[DocumentInfo]], *, as_json: bool) -> None:
    from cli.output import write_document, write_line

    if as_json:
        listed = [
            {"tag": tag, "documents": [{"doc_id": d.doc_id, "filename": d.filename} for d in documents]}
            for tag, documents in tags.items()
        ]
        write_document("ctx.tag/1", {"tags": listed})
        return
    for tag, documents in tags.items():
        write_line(tag, len(documents))


def _list_documents(index: Index, documents: Sequence[DocumentInfo], *, as_json: bool) -> None:
    from cli.output import write_document, write_line

    tagged = [(document, index.documents.tags(document.doc_id)) for document in documents]
    if as_json:
        listed = [{"doc_id": d.doc_id, "filename": d.filename, "tags": tags} for d, tags in tagged]
        write_document("ctx.tag/1", {"documents": listed})
        return
    for document, tags in tagged:
        write_line(document.filename, *tags)
