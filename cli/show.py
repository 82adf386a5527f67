"""ctx show: one page, as it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, common, index_of, settings_for
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from research.models import MatchedRegion
    from research.records import DocumentInfo
    from research.settings import Settings
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.pages import StoredPage
    from research.store.client import ChromaClient

DETAILS = "PAGE counts from 1 as a PDF viewer does, whatever number is printed on it."

EPILOG = """
\b
Examples:
  ctx show crisis.pdf 3
  ctx show crisis.pdf 3 --json | jq -r .section_path
  ctx show crisis.pdf 3 --image page.png --for "What caused the crisis?"
"""


def command(
    ctx: typer.Context,
    *,
    doc: Annotated[str, typer.Argument(metavar="DOC", help="A document's name, pattern or id.")],
    page: Annotated[int, typer.Argument(metavar="PAGE", help="The page, counted from 1.")],
    image: Annotated[
        Path | None,
        typer.Option("--image", metavar="OUT.png", help="Write the page's image to this file; .png, .jpg or .webp."),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option("--for", metavar="QUESTION", help="Mark the places that match this question on the image."),
    ] = None,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.output import on_terminal, paint, say, write, write_document
    from cli.picture import check_format, write_picture
    from cli.terminal import block, one_line
    from cli.views import suspicion_note
    from research.context.suspicion import signs_of
    from research.store.catalog.pages import page_markdown
    from research.store.client import ChromaClient

    given = common(ctx, index, quiet)
    settings = settings_for(given)
    if image is not None:
        check_format(image)
    elif question is not None and not as_json:
        raise UsageError("--for marks places on an image", hint="name one with --image OUT.png, or use --json")
    with ChromaClient(index_of(settings).root) as client:
        stored = _page(client.catalog, _document(client.catalog, doc), page)
        markdown = page_markdown(client.catalog, stored.doc_id, page)
        if markdown is None:
            raise NothingFoundError(f"{stored.filename} was removed just now", hint="see what there is: ctx list")
        regions = _regions(client, settings, stored, question) if question is not None else []
    if image is not None:
        write_picture(_image(stored), image, regions)
    suspicious = signs_of(markdown, filename=stored.filename, title=stored.title)
    if as_json:
        document = {
            **stored.metadata(),
            "title": stored.title,
            "num_pages": stored.num_pages,
            "error": stored.error,
            "suspicious": suspicious,
            "markdown": markdown,
            "regions": [asdict(region) for region in regions],
        }
        write_document("ctx.show/1", document)
    elif image is not None:
        write(f"{one_line(str(image))}\n")
        _talk(regions, question, quiet=given.quiet)
    elif on_terminal():
        paint(_rendering(stored, markdown))
    elif markdown:
        write(block(markdown) + "\n")
    if suspicious and not (given.quiet or as_json):
        say(f"ctx: note: {suspicion_note('this page', suspicious)}")
    return 0


def _document(catalog: Catalog, name: str) -> DocumentInfo:
    from research.store.catalog.documents import find_documents

    found = find_documents(catalog, name)
    if len(found) > 1:
        names = ", ".join(f"{document.filename} ({document.doc_id})" for document in found)
        raise UsageError(f"{name!r} matches {len(found)} documents: {names}", hint="name one by its id")
    return found[0]


def _page(catalog: Catalog, document: DocumentInfo, page: int) -> StoredPage:
    from research.store.catalog.pages import get_page

    stored = get_page(catalog, document.doc_id, page) if 0 < page <= document.num_pages else None
    if stored is None:
        raise NothingFoundError(
            f"{document.filename} has no page {page}", hint=f"its pages are 1 to {document.num_pages}"
        )
    return stored


def _image(page: StoredPage) -> Path:
    if not page.image_path or not Path(page.image_path).is_file():
        raise NothingFoundError(
            f"page {page.page} of {page.filename} has no image in the index", hint="draw it with: ctx ingest PATH"
        )
    return Path(page.image_path)


def _regions(client: ChromaClient, settings: Settings, page: StoredPage, question: str) -> list[MatchedRegion]:
    from cli.output import say
    from cli.question import read_question
    from research.search.engine import SearchEngine

    engine = SearchEngine(client, device=settings.device, named_encoders=settings.named_encoders)
    regions, problem = engine.places(read_question([question]), page.page_id)
    if problem:
        say(f"ctx: note: the visual model cannot look ({problem}); the places are found by text")
    return regions


def _talk(regions: list[MatchedRegion], question: str | None, *, quiet: bool) -> None:
    from cli.output import say

    if quiet or question is None:
        return
    places = f"{len(regions)} {'place' if len(regions) == 1 else 'places'} marked"
    say(f"ctx: {places if regions else 'nothing on this page matches the question'}")


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
    if page.ocr_engine:
        yield plain(f"read from its picture by {page.ocr_engine}", "dim")
    if page.error:
        yield plain(f"! this page could not be read: {phrase(page.error)}", "yellow")
    yield Rule(style="dim")
    yield plain(block(markdown))
