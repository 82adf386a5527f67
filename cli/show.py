"""ctx show: pages as they are stored. One page alone is one document; several are a list of them.

What a person types for pages: `3`, `3-5`, `1,4-6,10-`.

A page's image with the places that match a question marked on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, complete_document, index_of, settings_for
from research.errors import CtxError, NothingFoundError, UsageError
from research.filters import LAST_PAGE, PageRange
from research.models import MatchedRegion

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.options import Common
    from research.models import Item, MatchedRegion, PageView

_PAGE = re.compile(r"\d+", re.ASCII)
_RANGE = re.compile(r"(?P<first>\d{1,9})?\s*(?P<to>[-–])?\s*(?P<last>\d{1,9})?", re.ASCII)
_FORM = "pages count from 1 as a PDF viewer does: 3, 3-5, 1,4-6,10-"
_SHOWN = 60
_MOST_DIGITS = 18


def one_page(text: str | None) -> int | None:
    """The page, if the text names a single one."""
    if text is None or not _PAGE.fullmatch(text.strip()):
        return None
    digits = text.strip().lstrip("0") or "0"
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS  # no document has so many


def read_ranges(text: str) -> list[PageRange]:
    """First and last page of each range, in the order given. Raises UsageError."""
    return [_range(part.strip(), text) for part in text.split(",")]


def _range(part: str, text: str) -> PageRange:
    match = _RANGE.fullmatch(part)
    if match is None or not (match["first"] or match["last"]):
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise UsageError(f"{shown!r} names no pages", hint=_FORM)
    first = int(match["first"] or 1)
    last = int(match["last"]) if match["last"] else LAST_PAGE if match["to"] else first
    if first < 1:
        raise UsageError(f"there is no page {first}", hint=_FORM)
    if last < first:
        raise UsageError(f"the pages {part} run backwards", hint=f"write {last}-{first}" if last else _FORM)
    return first, last


FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def check_format(out: Path) -> None:
    """Raise unless the file's ending names a picture."""
    if out.suffix.lower() not in FORMATS:
        raise UsageError(f"{out.name} is no picture", hint=f"end its name in one of: {', '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", hint="make it first, or name another")


def write_picture(source: Path, out: Path, regions: Sequence[MatchedRegion]) -> None:
    """Copy a page image to `out`, framing the regions; the best one has the thickest frame."""
    from research.boxes import framed

    try:
        framed(source, regions).save(out, FORMATS[out.suffix.lower()])
    except OSError as error:
        raise CtxError(f"the picture could not be written: {error}", hint="check the path given to --image") from error


DETAILS = """
PAGES counts from 1 as a PDF viewer does, whatever number is printed on it: 3, 3-5, 1,4-6,10-. Without it the whole
document is printed; ctx outline shows what is on which page. In a pipe pages are parted by form feeds. With --json one
page is a ctx.show/2, several a ctx.pages/1 (ctx schema pages).
"""

EPILOG = """
\b
Examples:
  ctx show crisis.pdf 3
  ctx show crisis.pdf 3-5
  ctx show crisis.pdf | llm "Summarise this"
  ctx show crisis.pdf 1,4- --json | jq -r '.pages[].section_path'
  ctx show crisis.pdf 3 --json | jq -r .section_path
  ctx show crisis.pdf 3 --image page.png --for "What caused the crisis?"
"""


def command(
    ctx: typer.Context,
    *,
    doc: Annotated[
        str,
        typer.Argument(metavar="DOC", help="A document's name, path, title or id.", autocompletion=complete_document),
    ],
    pages: Annotated[
        str | None, typer.Argument(metavar="[PAGES]", help="A page or ranges of pages, counted from 1.")
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option("--image", metavar="OUT.png", help="Write the page's image to this file; .png, .jpg or .webp."),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option("--for", metavar="QUESTION", help="Mark the places that match this question on the image."),
    ] = None,
) -> int:
    from cli.options import read_question

    given = common(ctx)
    settings = settings_for(given)
    single = one_page(pages)
    if image is not None:
        check_format(image)
        if single is None:
            raise UsageError("--image draws one page", hint=f"name it: ctx show DOC PAGE --image {image.name}")
    elif question is not None and not given.as_json:
        raise UsageError("--for marks places on an image", hint="name one with --image OUT.png, or use --json")
    asked = None if question is None else read_question([question])
    ranges = read_ranges(pages) if single is None and pages is not None else ()
    with index_of(settings) as opened:
        if single is None:
            return _several(opened.documents.pages(doc, ranges, question=asked), given)
        view = opened.documents.page(doc, single, question=asked)
    return _single(view, given, image, question)


def _single(view: PageView, given: Common, image: Path | None, question: str | None) -> int:
    from cli.output import on_terminal, paint, say, write, write_document
    from research.text import block, one_line

    if view.problem and not given.quiet:
        say(f"ctx: note: the visual model cannot look ({view.problem}); the places are found by text")
    if image is not None:
        write_picture(_image(view.item), image, view.item.regions)
    if given.as_json:
        write_document("ctx.show/2", view.to_dict())
    elif image is not None:
        write(f"{one_line(str(image))}\n")
        _talk(view.item.regions, question, quiet=given.quiet)
    elif on_terminal():
        paint(_rendering(view))
    elif view.item.text:
        write(block(view.item.text) + "\n")
    return 0


def _several(views: list[PageView], given: Common) -> int:
    from cli.output import on_terminal, painted, write, write_document
    from cli.programs import page
    from research.text import block

    first = views[0].to_dict()
    if given.as_json:
        shared = {name: first[name] for name in ("doc_id", "filename", "title", "num_pages", "source_path")}
        write_document("ctx.pages/1", {**shared, "pages": [view.to_dict() for view in views]})
    elif on_terminal():
        page(painted(part for view in views for part in _rendering(view)))
    else:
        write("\f".join(block(view.item.text) + "\n" for view in views))
    return 0


def _image(item: Item) -> Path:
    path = str(item.metadata["image_path"])
    if not path or not Path(path).is_file():
        raise NothingFoundError(
            f"page {item.ref.part} of {item.metadata['filename']} has no image in the index",
            hint="draw it with: ctx ingest PATH",
        )
    return Path(path)


def _talk(regions: list[MatchedRegion], question: str | None, *, quiet: bool) -> None:
    from cli.output import say

    if quiet or question is None:
        return
    places = f"{len(regions)} {'place' if len(regions) == 1 else 'places'} marked"
    say(f"ctx: {places if regions else 'nothing on this page matches the question'}")


def _rendering(view: PageView) -> Iterator[RenderableType]:
    from rich.rule import Rule
    from rich.text import Text

    from cli.views import page_name, plain
    from research.text import block, one_line, phrase

    item, facts = view.item, view.item.metadata
    yield Text.assemble(
        (one_line(str(facts["filename"])), "bold cyan"),
        f"  page {page_name(int(item.ref.part), str(facts['page_label']))} of {view.num_pages}",
        (f"  {item.ref.key}", "dim"),
    )
    for line in (item.title, str(facts["section_path"])):
        if line:
            yield plain(phrase(line), "dim")
    if facts["ocr_engine"]:
        yield plain(f"read from its picture by {facts['ocr_engine']}", "dim")
    if view.error:
        yield plain(f"! this page could not be read: {phrase(view.error)}", "yellow")
    yield Rule(style="dim")
    yield plain(block(item.text))
