"""Text of documents as HTML: blocks of markdown with marks, and boxes over the picture of a page.

The page that `ctx ask --html` writes and the one that `ctx serve` shows without JavaScript are made of these. All text
is somebody else's and is escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from research.markdown import BULLET, Block, Marker, blocks
from research.records import Box
from research.text import block

_MARGIN = 0.006, 0.003  # of a box, as part of the width and height of the page
_SHORT_CELL, _ONE_LINE = 24, ' class="short"'


def html_text(text: str) -> str:
    """Safe in HTML, and without the characters that turn or hide what is read."""
    return escape(block(text))


def html_blocks(markdown: str, mark: Marker) -> str:
    """Paragraphs, headings, entries, code and tables; what a question is about is marked."""
    return "".join(_block(each, mark) for each in blocks(markdown))


def grown(box: Box) -> Box:
    """A box a little wider, so that it touches no letter, and never outside of the picture."""
    x0, y0, x1, y1 = box
    dx, dy = _MARGIN
    wide = (x0 - dx, y0 - dy, x1 + dx, y1 + dy)
    left, top, right, bottom = (min(1.0, max(0.0, value)) for value in wide)
    return left, top, max(left, right), max(top, bottom)


def _block(found: Block, mark: Marker) -> str:
    if found.kind == "table":
        rows = "".join(_row(row, "th" if found.header and not n else "td", mark) for n, row in enumerate(found.rows))
        return f'<div class="wide"><table>{rows}</table></div>'
    if found.kind == "code":
        return f"<pre>{_marked(found.text, mark)}</pre>"
    text = found.text.removeprefix(BULLET) if found.kind == "item" else found.text
    kind = {"heading": ' class="heading"', "item": ' class="item"' if text != found.text else ""}.get(found.kind, "")
    return f"<p{kind}>{_marked(text, mark)}</p>"


def _row(row: Sequence[str], tag: str, mark: Marker) -> str:
    """Figures and names stay on one line; a table that is too wide for the screen is scrolled."""
    cells = [f"<{tag}{'' if len(cell) > _SHORT_CELL else _ONE_LINE}>{_marked(cell, mark)}</{tag}>" for cell in row]
    return f"<tr>{''.join(cells)}</tr>"


def _marked(text: str, mark: Marker) -> str:
    parts, end = [], 0
    for start, stop in mark(text):
        parts += [html_text(text[end:start]), f"<mark>{html_text(text[start:stop])}</mark>"]
        end = stop
    return "".join([*parts, html_text(text[end:])])
