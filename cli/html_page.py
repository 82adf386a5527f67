"""An answer as one HTML page: quotes, passages with marks, pictures of the pages with boxes over what fits.

It stands alone: no scripts, and a policy in it by which a browser loads nothing, from anywhere. All text is somebody
else's and is escaped; pictures are carried inside, small enough to be mailed.

How an answer's HTML page looks: on a desk, on a phone, in the dark and on paper.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cli.answer_view import best_section, is_unanswered, nothing_answers
from cli.output import write
from cli.views import page_name
from research.context import grown, html_blocks, html_text
from research.errors import CtxError, UsageError, is_full
from research.text import one_line, phrase

if TYPE_CHECKING:
    from research.boxes import Box
    from research.markdown import Marker
    from research.models import ResearchContext, SourceDocument

STYLE = """
:root{color-scheme:light dark;--ink:#1c1d21;--soft:#5f636d;--paper:#fff;--ground:#f4f4f1;--line:#dcdcd6;--link:#1551a8;
--mark:#ffe58a;--box:#d62828;--good:#1d7a46;--fair:#8a6100;--poor:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e7e7e4;--soft:#a2a6b0;--paper:#1e2025;--ground:#141519;--line:#34373f;
--link:#8ab4f8;--mark:#6b5600;--box:#ff6b6b;--good:#6fd19a;--fair:#e5b94e;--poor:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,"Segoe UI","Noto Sans",sans-serif}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .4rem;overflow-wrap:anywhere}
h2{font-size:1rem;margin:0;overflow-wrap:anywhere}
h2 span{font-weight:400;color:var(--soft)}
a{color:var(--link)}
p{margin:.35rem 0;overflow-wrap:anywhere}
.facts{color:var(--soft);display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:0 0 1rem}
.level{font-weight:600}
.level.high{color:var(--good)}.level.medium{color:var(--fair)}.level.low,.level.none{color:var(--poor)}
blockquote{margin:.6rem 0;padding:.7rem 1rem;background:var(--paper);border-left:4px solid var(--link);
border-radius:4px;font-size:1.1rem}
blockquote p{margin:.1rem 0}
.cite{font-size:.85rem;text-decoration:none;overflow-wrap:anywhere}
.none{font-weight:600;color:var(--poor);font-size:1.1rem}
.note{color:var(--poor);font-size:.9rem}
article{background:var(--paper);border:1px solid var(--line);border-radius:6px;padding:1rem;margin:1rem 0;
scroll-margin-top:.5rem}
article:target{outline:2px solid var(--link)}
.section{color:var(--soft);font-size:.9rem;margin:.1rem 0 .5rem}
.columns{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,24rem);gap:1.2rem;align-items:start}
.columns .text:only-child{grid-column:1/-1}
.passage{margin:0 0 .8rem;padding-left:.8rem;border-left:3px solid var(--line)}
.heading{font-weight:600}
.item{padding-left:1.1em;text-indent:-1.1em}
.item::before{content:"•";display:inline-block;width:1.1em;text-indent:0}
mark{background:var(--mark);color:inherit;padding:0 .1em;border-radius:2px}
.wide{overflow-x:auto;margin:.4rem 0}
table{border-collapse:collapse;font-size:.9rem}
td,th{border:1px solid var(--line);padding:.15rem .5rem;vertical-align:top;text-align:left}
.short{white-space:nowrap}
pre{overflow-x:auto;font-size:.85rem;background:var(--ground);padding:.5rem;border-radius:4px}
details{font-size:.9rem;color:var(--soft)}
summary{cursor:pointer}
figure{margin:0}
.sheet{display:block;position:relative;line-height:0;border:1px solid var(--line)}
.sheet img{width:100%;height:auto;display:block}
.box{position:absolute;border:2px solid var(--box);background:rgba(214,40,40,.14);border-radius:2px}
footer{color:var(--soft);font-size:.85rem;margin-top:2rem}
@media (max-width:46rem){.columns{grid-template-columns:minmax(0,1fr)}h1{font-size:1.35rem}}
@media print{body{background:#fff;color:#000;font-size:11pt}main{max-width:none;padding:0}details{display:none}
article,blockquote{border-color:#999;break-inside:avoid}figure{max-width:60%}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
""".strip()


_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PASSAGES = 3  # of a source
_BEGINNING = 900  # characters of a page without passages
_WIDTH, _HEIGHT, _QUALITY = 820, 1160, 55  # of a picture: its text can be read, and ten of them stay below 2 MB
_TITLE = 120


def check_place(target: str, *, force: bool) -> None:
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
    if is_there and not force:
        raise UsageError(f"{file} exists", hint="name another file, or replace it with --force")


def _unwritable(file: Path, error: OSError) -> CtxError:
    hint = f"{'free some space, or ' if is_full(error) else ''}name another file, or - for stdout"
    return CtxError(f"{file} cannot be written: {error.strerror or error}", hint=hint)


def write_page(target: str, context: ResearchContext, mark: Marker, notes: Sequence[str]) -> None:
    """The page into a file, whole or not at all, or to stdout for `-`. A pipe or a device is written to as it is."""
    made = answer_page(context, mark, notes)
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
    import secrets

    new = file.with_name(f".ctx-{secrets.token_hex(8)}.html")
    try:
        with new.open("xb") as out:  # never through a link that somebody else has put there
            out.write(content)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def answer_page(context: ResearchContext, mark: Marker, notes: Sequence[str] = ()) -> str:
    return "\n".join(_lines(context, mark, notes)) + "\n"


def _lines(context: ResearchContext, mark: Marker, notes: Sequence[str]) -> Iterator[str]:
    question = phrase(context.query)
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer"><meta name="generator" content="ctx">'
    yield f"<title>{html_text(question[:_TITLE])}</title><style>{STYLE}</style></head><body><main>"
    yield f'<header><h1 dir="auto">{html_text(question)}</h1>{_facts(context)}</header>'
    yield from [f'<p class="none">{html_text(nothing_answers(context))}</p>'] if is_unanswered(context) else []
    yield from [] if is_unanswered(context) else _quotes(context, mark)
    yield from (f'<p class="note">{html_text(phrase(note))}</p>' for note in notes)
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
