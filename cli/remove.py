"""ctx remove: take documents out of the index. The files themselves are never touched."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, common, index_for
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from research.records import DocumentInfo
    from research.store.catalog.catalog import Catalog
    from research.store.files.paths import IndexPaths

DETAILS = "Only the index forgets them; the files stay where they are. On a terminal it asks first."

EPILOG = """
\b
Examples:
  ctx remove old-report.pdf
  ctx remove 'draft-*.pdf' --yes
"""


def command(
    ctx: typer.Context,
    *,
    doc: Annotated[list[str], typer.Argument(metavar="DOC...", help="Names, patterns or ids.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.output import say, write_document, write_line
    from research.store.catalog.catalog import Catalog

    given = common(ctx, index, quiet)
    paths = index_for(given)
    with Catalog(paths) as catalog:
        documents = _documents(catalog, doc)
    if not yes and sys.stdin.isatty() and not _confirmed(documents):
        say("ctx: nothing was removed")
        return 1
    _remove(paths, documents)
    if as_json:
        removed = [{"doc_id": d.doc_id, "filename": d.filename, "pages": d.num_pages} for d in documents]
        write_document("ctx.remove/1", {"removed": removed})
    else:
        for document in documents:
            write_line("removed", document.filename, document.doc_id)
    return 0


def _documents(catalog: Catalog, names: list[str]) -> list[DocumentInfo]:
    """What the names mean. Only a pattern may mean several, so that a short name cannot take a shelf with it."""
    from research.store.catalog.documents import find_documents

    chosen: dict[str, DocumentInfo] = {}
    for name in names:
        if not name.strip():
            raise UsageError("a document's name is empty", hint="see them all with: ctx list")
        found = find_documents(catalog, name)
        if len(found) > 1 and not any(mark in name for mark in "*?["):
            known = ", ".join(f"{document.filename} ({document.doc_id})" for document in found)
            raise UsageError(f"{name!r} matches {len(found)} documents: {known}", hint="name one by its id")
        chosen.update((document.doc_id, document) for document in found)
    return list(chosen.values())


def _confirmed(documents: list[DocumentInfo]) -> bool:
    from cli.output import say

    for document in documents:
        say(f"  {document.filename}  ({document.num_pages} pages, {document.doc_id})")
    return typer.confirm(f"Remove {len(documents)} from the index?", err=True)


def _remove(paths: IndexPaths, documents: list[DocumentInfo]) -> None:
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.documents import get_document, remove_document
    from research.store.files.lock import write_lock
    from research.store.vectors import sync_state
    from research.store.vectors.process import publish_apart

    with write_lock(paths), Catalog(paths, writable=True) as catalog:
        gone = [d.filename for d in documents if get_document(catalog, d.doc_id) is None]
        if gone:  # another process was quicker
            raise NothingFoundError(f"{', '.join(gone)} is no longer in the index", hint="see: ctx list")
        for document in documents:
            remove_document(catalog, document.doc_id)
        # Collections that were never built have nothing to forget.
        if sync_state.state_of(catalog).generation is not None:
            publish_apart(paths)
