"""ctx show: pages as they are stored, a page's image with the places that match a question, or a table of contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call, offers
from cli.options import DocArgument
from cli.output import on_terminal, page, paint, painted, screen_size, write, write_document, write_line
from research.errors import CtxError, NothingFoundError, UsageError
from research.filters import LAST_PAGE, PageRange
from research.models import MatchedRegion
from research.text import block, one_line, phrase

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from cli.answer import Screen
    from research.index import Index
    from research.models import DocumentOutline, Item, PageView

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
    from research.records import framed

    try:
        framed(source, regions).save(out, FORMATS[out.suffix.lower()])
    except OSError as error:
        raise CtxError(f"the picture could not be written: {error}", hint="check the path given to --image") from error


@offers(acting=True)
def show(
    call: Call,
    doc: DocArgument,
    pages: Annotated[
        str | None, typer.Argument(metavar="[PAGES]", help="A page or ranges of pages, counted from 1.")
    ] = None,
    *,
    outline: Annotated[bool, typer.Option("--outline", help="Print the headings with their pages.")] = False,
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", min=1, help="With --outline: headings down to this level.")
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
    """PAGES counts from 1 as a PDF viewer does, whatever number is printed on it: 3, 3-5, 1,4-6,10-. Without it the
    whole document is printed; --outline shows what is on which page (a document without headings, by how its pages
    begin). In a pipe pages are parted by form feeds, and headings are lines of tab-separated fields: level, page,
    title. With --json one page is a ctx.show/2, several a ctx.pages/1, headings a ctx.outline/1.

    Examples:
      ctx show crisis.pdf 3
      ctx show crisis.pdf 3-5
      ctx show crisis.pdf --outline --depth 1
      ctx show crisis.pdf | llm "Summarise this"
      ctx show crisis.pdf 1,4- --json | jq -r '.pages[].section_path'
      ctx show crisis.pdf 3 --image page.png --for "What caused the crisis?"
    """
    settings = call.settings()
    single = one_page(pages)
    if depth is not None and not outline:
        raise UsageError("--depth is for headings", hint="ctx show DOC --outline --depth N")
    if outline and (pages is not None or image is not None or question is not None):
        raise UsageError("--outline is of the whole document", hint="ctx show DOC --outline")
    if image is not None:
        check_format(image)
        if single is None:
            raise UsageError("--image draws one page", hint=f"name it: ctx show DOC PAGE --image {image.name}")
    elif question is not None and not call.as_json:
        raise UsageError("--for marks places on an image", hint="name one with --image OUT.png, or use --json")
    asked = None if question is None else call.question([question])
    ranges = read_ranges(pages) if single is None and pages is not None else ()
    with call.index_of(settings) as index:
        if outline:
            return _outline(call, index, doc, depth)
        if single is None:
            return _several(call, index.documents.pages(doc, ranges, question=asked))
        view = index.documents.page(doc, single, question=asked)
    return _single(call, view, image, question)


def _outline(call: Call, index: Index, doc: str, depth: int | None) -> int:
    from cli.answer import Screen
    from cli.layout import has_links

    found = index.documents.outline(doc).down_to(depth)
    rows = [(entry.level, entry.page, entry.title) for entry in found.entries]
    rows += [(1, beginning.page, beginning.text) for beginning in found.pages]
    if call.as_json:
        write_document("ctx.outline/1", found.to_dict())
    elif on_terminal():
        width, height = screen_size()
        fits = len(rows) + 2 < height  # an older less shows the escapes of links
        screen = Screen(width, height, links=fits and has_links(index.settings.links))
        page(painted(_outline_lines(found, rows, screen)))
    else:
        for level, number, title in rows:
            write_line(level, number, phrase(title))
    if found.pages:
        call.note("this document has no headings; its pages are listed by what they begin with")
    return 0


def _outline_lines(found: DocumentOutline, rows: Sequence[tuple[int, int, str]], screen: Screen) -> Iterator[Text]:
    """The page, then the title, further in the deeper it stands."""
    from cli.layout import link, plain, shorten_end
    from research.models import page_link

    info = found.document
    name = shorten_end(one_line(info.filename), screen.width)
    yield link(plain(name, "bold cyan"), page_link(info.source_path, 1), links=screen.links)
    if info.title:
        yield plain(shorten_end(phrase(info.title), screen.width), "dim")
    digits = len(str(info.num_pages))
    for level, number, title in rows:
        indent = min(2 * (level - 1), screen.width // 3)
        shown = shorten_end(phrase(title), max(1, screen.width - digits - 2 - indent))
        line = plain(f"{number:>{digits}}  ", "dim").append(" " * indent)
        yield line.append_text(link(plain(shown), page_link(info.source_path, number), links=screen.links))


def _single(call: Call, view: PageView, image: Path | None, question: str | None) -> int:
    if view.problem:
        call.note(f"the visual model cannot look ({view.problem}); the places are found by text")
    if image is not None:
        write_picture(_image(view.item), image, view.item.regions)
    if call.as_json:
        write_document("ctx.show/2", view.to_dict())
    elif image is not None:
        write(f"{one_line(str(image))}\n")
        if question is not None:
            count = len(view.item.regions)
            places = f"{count} {'place' if count == 1 else 'places'} marked"
            call.say(places if count else "nothing on this page matches the question")
    elif on_terminal():
        paint(_rendering(view))
    elif view.item.text:
        write(block(view.item.text) + "\n")
    return 0


def _several(call: Call, views: list[PageView]) -> int:
    first = views[0].to_dict()
    if call.as_json:
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


def _rendering(view: PageView) -> Iterator[RenderableType]:
    from rich.rule import Rule
    from rich.text import Text

    from cli.layout import plain
    from research.context import page_name

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
