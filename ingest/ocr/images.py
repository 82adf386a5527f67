"""Images for OCR: pages rendered, all of them grey and of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PIL import Image

from ingest.pdf.mupdf import MupdfError, load_page, raster
from research.boxes import Box
from research.errors import OcrError

Render = Callable[[Box | None, int], Image.Image]
"""Renders a part of one page (None: all of it) so that its longest side has so many pixels."""

MAX_SIDE = 4096
MIN_SIDE = 8  # pixels; nothing smaller holds a letter
_BLANK_SPREAD = 24  # grey levels between the paper and the darkest or lightest speck of an empty page


def render(document: Any, page_number: int, box: Box | None = None, *, longest: int) -> Image.Image:
    """A page (1-based), or the part in `box`, in grey, its longest side `longest` pixels. Raises `OcrError`.

    The scale comes from the page's size, never from dpi: a page may measure a point or a billion.
    """
    try:
        page = load_page(document, page_number)
    except MupdfError as error:
        raise OcrError("the page cannot be rendered") from error
    image = raster(page, longest=max(1, min(longest, MAX_SIDE)), box=box, grey=True)
    if image is None:
        raise OcrError("the page cannot be rendered")
    return image


def page_render(document: Any, page_number: int) -> Render:
    """`render` for one page, as `read_page` wants it."""

    def draw(box: Box | None, longest: int) -> Image.Image:
        return render(document, page_number, box, longest=longest)

    return draw


def grey(image: Image.Image, longest: int = MAX_SIDE) -> Image.Image:
    """The image in grey, transparent parts white, no side longer than `longest`."""
    if image.has_transparency_data:
        shown = image.convert("RGBA")
        image = Image.new("RGBA", shown.size, "white")
        image.alpha_composite(shown)
    flat = image.convert("L")
    if max(flat.size) > longest:
        flat.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return flat


def is_readable(image: Image.Image) -> bool:
    """Whether there can be letters: it is large enough, and not all of one shade."""
    if min(image.size) < MIN_SIDE:
        return False
    low, high = image.convert("L").getextrema()
    assert isinstance(low, (int, float))
    assert isinstance(high, (int, float))
    return high - low >= _BLANK_SPREAD
