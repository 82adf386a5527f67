"""ctx show: one page, as it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, common, index_for
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from research.store.catalog import Catalog
    from research.store.pages import StoredPage
    from research.store.records import DocumentInfo

DETAILS = "PAGE counts from 1 as a PDF viewer does, whatever number is printed on it."

EPILOG = """
\b
Examples:
  ctx show crisis.pdf 3
  ctx show crisis.pdf 3 --json | jq -r .section_path
"""


def command(
    ctx: typer.Context,
    *,
    doc: Annotated[str, typer.Argument(metavar="DOC", help="A document's name, pattern or id.")],
    page: Annotated[int, typer.Argument(metavar="PAGE", help="The page, counted from 1.")],
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.output import on_terminal, paint, write, write_document
    from cli.terminal import block
    from research.store.catalog import Catalog
    from research.store.pages import page_markdown

    with Catalog(index_for(common(ctx, index, quiet))) as catalog:
        stored = _page(catalog, _document(catalog, doc), page)
        markdown = page_markdown(catalog, stored.doc_id, page) or ""
    if as_json:
        document = {
            **stored.metadata(),
            "title": stored.title,
            "num_pages": stored.num_pages,
            "error": stored.error,
            "markdown": markdown,
        }
        write_document("ctx.show/1", document)
    elif on_terminal():
        paint(_rendering(stored, markdown))
    elif markdown:
        write(block(markdown) + "\n")
    return 0


def _document(catalog: Catalog, name: str) -> DocumentInfo:
    from research.store.documents import find_documents

    found = find_documents(catalog, name)
    if len(found) > 1:
        names = ", ".join(f"{document.filename} ({document.doc_id})" for document in found)
        raise UsageError(f"{name!r} matches {len(found)} documents: {names}", hint="name one by its id")
    return found[0]


def _page(catalog: Catalog, document: DocumentInfo, page: int) -> StoredPage:
    from research.store.pages import get_page

    stored = get_page(catalog, document.doc_id, page) if 0 < page <= document.num_pages else None
    if stored is None:
        raise NothingFoundError(
            f"{document.filename} has no page {page}", hint=f"its pages are 1 to {document.num_pages}"
        )
    return stored


def _rendering(page: StoredPage, markdown: str) -> Iterator[RenderableType]:
    from rich.rule import Rule
    from rich.text import Text

    from cli.terminal import block, one_line, phrase
    from cli.views import page_name, plain

    yield Text.assemble(
        (one_line(page.filename), "bold cyan"),
        f"  page {page_name(page.page, page.label)} of {page.num_pages}",
        (f"  {page.doc_id}", "dim"),
    )
    for line in (page.title, page.section_path):
        if line:
            yield plain(phrase(line), "dim")
    if page.error:
        yield plain(f"! this page could not be read: {phrase(page.error)}", "yellow")
    yield Rule(style="dim")
    yield plain(block(markdown))
