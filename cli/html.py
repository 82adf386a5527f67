"""An answer as one HTML page: quotes, passages with marks, pictures of the pages with boxes over what fits.

It stands alone: no scripts, and a policy in it by which a browser loads nothing, from anywhere. All text is somebody
else's and is escaped; pictures are carried inside, small enough to be mailed. answer.css says how it looks on a desk,
on a phone, in the dark and on paper.
"""

from __future__ import annotations

import base64
import io
import os
import secrets
import shlex
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from cli.answer import best_section, is_unanswered, nothing_answers, page_name
from cli.output import answer_notes, write
from research.context import grown, html_blocks, html_text
from research.errors import CtxError, UsageError, is_full
from research.text import one_line, phrase

if TYPE_CHECKING:
    from research.markdown import Marker
    from research.models import ResearchContext, SourceDocument
    from research.records import Box

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PASSAGES = 3  # of a source
_BEGINNING = 900  # characters of a page without passages
_WIDTH, _HEIGHT, _QUALITY = 820, 1160, 55  # of a picture: its text can be read, and ten of them stay below 2 MB
_TITLE = 120


def check_place(target: str) -> None:
    """Raise unless the page may be written there."""
    if target == "-":
        return
    if not target.strip():
        raise UsageError("--html needs a file", hint="name one, or - for stdout")
    file = Path(target).expanduser()
    try:
        is_folder, has_folder, is_there = file.is_dir(), file.parent.is_dir(), file.is_file()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise _unwritable(file, error) from error
    if is_folder or not has_folder:
        what = f"{file} is a folder" if is_folder else f"there is no folder {file.parent}"
        raise UsageError(what, hint="name a file for --html, or - for stdout")
    if is_there:
        raise UsageError(f"{file} exists", hint=f"name another file, or replace it: --html - > {shlex.quote(target)}")


def _unwritable(file: Path, error: OSError) -> CtxError:
    hint = f"{'free some space, or ' if is_full(error) else ''}name another file, or - for stdout"
    return CtxError(f"{file} cannot be written: {error.strerror or error}", hint=hint)


def write_page(target: str, context: ResearchContext, mark: Marker) -> None:
    """The page into a file, whole or not at all, or to stdout for `-`. A pipe or a device is written to as it is."""
    made = answer_page(context, mark)
    if target == "-":
        write(made)
        return
    file = Path(target).expanduser().absolute()
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(made.encode())
        else:
            _replace(Path(os.path.realpath(file)), made.encode())
    except BrokenPipeError:  # its reader has seen enough
        pass
    except OSError as error:
        raise _unwritable(file, error) from error
    write(f"{one_line(str(file))}\n")


def _replace(file: Path, content: bytes) -> None:
    new = file.with_name(f".ctx-{secrets.token_hex(8)}.html")
    try:
        with new.open("xb") as out:  # never through a link that somebody else has put there
            out.write(content)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def answer_page(context: ResearchContext, mark: Marker) -> str:
    return "\n".join(_lines(context, mark)) + "\n"


def _lines(context: ResearchContext, mark: Marker) -> Iterator[str]:
    style = files("cli").joinpath("answer.css").read_text(encoding="utf-8")
    question = phrase(context.query)
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer"><meta name="generator" content="ctx">'
    yield f"<title>{html_text(question[:_TITLE])}</title><style>{style}</style></head><body><main>"
    yield f'<header><h1 dir="auto">{html_text(question)}</h1>{_facts(context)}</header>'
    yield from [f'<p class="none">{html_text(nothing_answers(context))}</p>'] if is_unanswered(context) else []
    yield from [] if is_unanswered(context) else _quotes(context, mark)
    yield from (f'<p class="note">{html_text(phrase(note))}</p>' for _, note in answer_notes(context))
    for number, source in context.get_citation_map().items():
        yield from _source(number, source, mark)
    yield "<footer>Quoted from your own documents by ctx, word for word; nothing is written by a model.</footer>"
    yield "</main></body></html>"


def _facts(context: ResearchContext) -> str:
    pages = f"{len(context.sources)} of {context.coverage.pages:,} pages"
    if context.types:
        pages = f"{len(context.sources)} sources"
    known = context.confidence
    level = f'<span class="level {escape(known.level)}">{context.sure}</span>' if known else ""
    return f'<p class="facts">{level}<span>{pages}</span><span>{context.total_tokens:,} tokens</span></p>'


def _quotes(context: ResearchContext, mark: Marker) -> Iterator[str]:
    sources = context.get_citation_map()
    if not context.quotes:
        return
    yield '<section class="quotes">'
    for quote in context.quotes:
        source = sources[quote.citation]
        page = f", page {page_name(source.page, source.page_label)}" if source.page else ""
        where = f"{one_line(source.label)}{page}"
        yield f"<blockquote>{html_blocks(quote.in_table, mark)}"
        yield f'<a class="cite" href="#s{quote.citation}">[{quote.citation}] {html_text(where)}</a></blockquote>'
    yield "</section>"


def _source(number: int, source: SourceDocument, mark: Marker) -> Iterator[str]:
    name = html_text(one_line(source.filename))
    page = html_text(f"page {page_name(source.page, source.page_label)}" if source.page else source.kind)
    title = f'<a href="{escape(source.link)}">{name}</a>' if _is_file(source.link) else name
    passages = [passage for passage in source.passages if passage.text][:_PASSAGES]
    section = best_section(source)
    yield f'<article id="s{number}"><h2><b>[{number}]</b> {title} <span>{page}</span></h2>'
    if section:
        yield f'<p class="section" dir="auto">{html_text(phrase(section))}</p>'
    yield '<div class="columns"><div class="text">'
    for passage in passages:
        yield f'<div class="passage" dir="auto">{html_blocks(passage.text, mark)}</div>'
    if not passages:
        beginning = source.markdown_content[:_BEGINNING]
        more = "…" if len(source.markdown_content) > _BEGINNING else ""
        yield f'<div class="passage" dir="auto">{html_blocks(beginning, mark)}{more}</div>'
    whole, what = html_blocks(source.markdown_content, mark), "page" if source.page else "source"
    yield f'<details><summary>The text of this {what}</summary><div dir="auto">{whole}</div></details></div>'
    yield _figure(source, f"{page} of {name}")
    yield "</div></article>"


def _figure(source: SourceDocument, description: str) -> str:
    picture = _picture(source.image_path or source.thumbnail_path or "")
    if not picture:
        return ""
    boxes = [passage.box for passage in source.passages if passage.box] or [region.box for region in source.regions]
    drawn = "".join(f'<span class="box" style="{_place(box)}"></span>' for box in boxes)
    sheet = f'<img alt="{description}" src="{picture}">{drawn}'
    if _is_file(source.link):
        return f'<figure><a class="sheet" href="{escape(source.link)}">{sheet}</a></figure>'
    return f'<figure><div class="sheet">{sheet}</div></figure>'


def _is_file(link: str) -> bool:
    """Nothing else is ever linked: no script, no address on the net."""
    return link.startswith("file:///")


def _place(box: Box) -> str:
    x0, y0, x1, y1 = (100 * value for value in grown(box))
    return f"left:{x0:.2f}%;top:{y0:.2f}%;width:{x1 - x0:.2f}%;height:{y1 - y0:.2f}%"


def _picture(path: str) -> str:
    """A page's picture as an address that holds it; empty where there is none."""
    if not path:
        return ""
    from PIL import Image

    try:
        with Image.open(path) as stored:
            page = stored.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # gone or broken: the text stands alone
        return ""
    page.thumbnail((_WIDTH, _HEIGHT))
    small = io.BytesIO()
    page.save(small, "WEBP", quality=_QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}"
