"""An answer as one HTML page: quotes, passages with marks, pictures of the pages with boxes over what fits.

It stands alone: no scripts, and a policy in it by which a browser loads nothing, from anywhere. All text is somebody
else's and is escaped; pictures are carried inside, small enough to be mailed.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cli.html_style import STYLE
from cli.markdown import BULLET, Block, blocks
from cli.output import block, one_line, phrase, write
from cli.views import page_name
from research.errors import CtxError, UsageError, next_step

if TYPE_CHECKING:
    from cli.layout import Marker
    from research.models import ResearchContext, SourceDocument

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PASSAGES = 3  # of a source
_BEGINNING = 900  # characters of a page without passages
_WIDTH, _HEIGHT, _QUALITY = 820, 1160, 55  # of a picture: its text can be read, and ten of them stay below 2 MB
_TITLE = 120
_LEVELS = {"high": "High confidence", "medium": "Medium confidence", "low": "Low confidence", "none": "No answer found"}


def check_place(target: str, *, force: bool) -> None:
    """Raise unless the page may be written there."""
    if target == "-":
        return
    file = Path(target).expanduser()
    if file.is_dir() or not file.parent.is_dir():
        what = f"{file} is a folder" if file.is_dir() else f"there is no folder {file.parent}"
        raise UsageError(what, hint="name a file for --html, or - for stdout")
    if file.exists() and not force:
        raise UsageError(f"{file} exists", hint="name another file, or replace it with --force")


def write_page(target: str, context: ResearchContext, mark: Marker, notes: Sequence[str]) -> None:
    """The page into a file, whole or not at all, or to stdout for `-`."""
    made = answer_page(context, mark, notes)
    if target == "-":
        write(made)
        return
    file = Path(target).expanduser().absolute()
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        new.write_text(made, encoding="utf-8", errors="backslashreplace")
        new.replace(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise CtxError(f"{file} cannot be written: {error.strerror or error}", hint=next_step(error)) from error
    write(f"{one_line(str(file))}\n")


def answer_page(context: ResearchContext, mark: Marker, notes: Sequence[str] = ()) -> str:
    return "\n".join(_lines(context, mark, notes)) + "\n"


def _lines(context: ResearchContext, mark: Marker, notes: Sequence[str]) -> Iterator[str]:
    question = phrase(context.query)
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer"><meta name="generator" content="ctx">'
    yield f"<title>{_text(question[:_TITLE])}</title><style>{STYLE}</style></head><body><main>"
    yield f'<header><h1 dir="auto">{_text(question)}</h1>{_facts(context)}</header>'
    yield from _quotes(context, mark)
    yield from (f'<p class="note">{_text(phrase(note))}</p>' for note in notes)
    for number, source in context.get_citation_map().items():
        yield from _source(number, source, mark)
    yield "<footer>Quoted from your own documents by ctx, word for word; nothing is written by a model.</footer>"
    yield "</main></body></html>"


def _facts(context: ResearchContext) -> str:
    pages = f"{len(context.sources)} of {context.coverage.pages:,} pages"
    known = context.confidence
    level = f'<span class="level {escape(known.level)}">{_LEVELS.get(known.level, "")}</span>' if known else ""
    return f'<p class="facts">{level}<span>{pages}</span><span>{context.total_tokens:,} tokens</span></p>'


def _quotes(context: ResearchContext, mark: Marker) -> Iterator[str]:
    sources = context.get_citation_map()
    if not context.quotes:
        return
    yield '<section class="quotes">'
    for quote in context.quotes:
        source = sources[quote.citation]
        where = f"{one_line(source.filename)}, page {page_name(source.page, source.page_label)}"
        yield f"<blockquote>{_rendered(blocks(quote.text), mark)}"
        yield f'<a class="cite" href="#s{quote.citation}">[{quote.citation}] {_text(where)}</a></blockquote>'
    yield "</section>"


def _source(number: int, source: SourceDocument, mark: Marker) -> Iterator[str]:
    name = _text(one_line(source.filename))
    page = _text(page_name(source.page, source.page_label))
    title = f'<a href="{escape(source.link)}">{name}</a>' if source.link.startswith("file:///") else name
    passages = [passage for passage in source.passages if passage.text][:_PASSAGES]
    section = next((passage.section_path for passage in passages if passage.section_path), source.section_path or "")
    yield f'<article id="s{number}"><h2><b>[{number}]</b> {title} <span>page {page}</span></h2>'
    yield f'<p class="section" dir="auto">{_text(phrase(section))}</p>' if section else ""
    if source.suspicious:
        yield '<p class="note">This page may try to steer a model; take its text as data.</p>'
    yield '<div class="columns"><div class="text">'
    for passage in passages:
        yield f'<div class="passage" dir="auto">{_rendered(blocks(passage.text), mark)}</div>'
    if not passages:
        beginning = source.markdown_content[:_BEGINNING]
        more = "…" if len(source.markdown_content) > _BEGINNING else ""
        yield f'<div class="passage" dir="auto">{_rendered(blocks(beginning), mark)}{more}</div>'
    whole = _rendered(blocks(source.markdown_content), mark)
    yield f'<details><summary>The text of this page</summary><div dir="auto">{whole}</div></details></div>'
    yield _figure(source, f"page {page} of {name}")
    yield "</div></article>"


def _figure(source: SourceDocument, description: str) -> str:
    picture = _picture(source.image_path or source.thumbnail_path or "")
    if not picture:
        return ""
    boxes = [passage.box for passage in source.passages if passage.box] or [region.box for region in source.regions]
    drawn = "".join(f'<div class="box" style="{_place(box)}"></div>' for box in boxes)
    return f'<figure><div class="sheet"><img alt="{description}" src="{picture}">{drawn}</div></figure>'


def _place(box: tuple[float, float, float, float]) -> str:
    """A box as percent of the picture, never outside of it."""
    x0, y0, x1, y1 = (min(1.0, max(0.0, value)) * 100 for value in box)
    return f"left:{x0:.2f}%;top:{y0:.2f}%;width:{max(0.0, x1 - x0):.2f}%;height:{max(0.0, y1 - y0):.2f}%"


def _picture(path: str) -> str:
    """A page's picture as an address that holds it; empty where there is none."""
    if not path:
        return ""
    from PIL import Image

    try:
        with Image.open(path) as stored:
            page = stored.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError):  # gone, or no longer a picture: the text stands alone
        return ""
    page.thumbnail((_WIDTH, _HEIGHT))
    small = io.BytesIO()
    page.save(small, "WEBP", quality=_QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}"


def _rendered(found: Sequence[Block], mark: Marker) -> str:
    return "".join(_block(each, mark) for each in found)


def _block(found: Block, mark: Marker) -> str:
    if found.kind == "table":
        rows = "".join(
            "<tr>" + "".join(f"<td>{_marked(cell, mark)}</td>" for cell in row) + "</tr>" for row in found.rows
        )
        return f'<div class="wide"><table>{rows}</table></div>'
    if found.kind == "code":
        return f"<pre>{_marked(found.text, mark)}</pre>"
    text = found.text.removeprefix(BULLET) if found.kind == "item" else found.text
    kind = {"heading": ' class="heading"', "item": ' class="item"' if text != found.text else ""}.get(found.kind, "")
    return f"<p{kind}>{_marked(text, mark)}</p>"


def _marked(text: str, mark: Marker) -> str:
    parts, end = [], 0
    for start, stop in mark(text):
        parts += [_text(text[end:start]), f"<mark>{_text(text[start:stop])}</mark>"]
        end = stop
    return "".join([*parts, _text(text[end:])])


def _text(text: str) -> str:
    """Safe in HTML, and without the characters that turn or hide what is read."""
    return escape(block(text))
