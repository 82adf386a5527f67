"""Images for OCR: pages rendered, files opened, all of them grey and of bounded size."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from ingest.pdf.mupdf import MUPDF_ERRORS
from ingest.pdf.raster import raster
from research.boxes import Box
from research.errors import OcrError

Render = Callable[[Box | None, int], Image.Image]
"""Renders a part of one page (None: all of it) so that its longest side has so many pixels."""

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
MAX_SIDE = 4096
MIN_SIDE = 8  # pixels; nothing smaller holds a letter
_BLANK_SPREAD = 24  # grey levels between the paper and the darkest or lightest speck of an empty page


def render(document: Any, page_number: int, box: Box | None = None, *, longest: int) -> Image.Image:
    """A page (1-based), or the part in `box`, in grey, its longest side `longest` pixels. Raises `OcrError`.

    The scale comes from the page's size, never from dpi: a page may measure a point or a billion.
    """
    try:
        page = document[page_number - 1]
    except MUPDF_ERRORS as error:
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


def image_render(image: Image.Image) -> Render:
    """The same for a page that is already an image: parts are cut out and scaled down where needed."""

    def draw(box: Box | None, longest: int) -> Image.Image:
        part = image
        if box is not None:
            x0, y0, x1, y1 = box
            wide, tall = image.size
            part = image.crop((int(x0 * wide), int(y0 * tall), math.ceil(x1 * wide), math.ceil(y1 * tall)))
        return grey(part, longest)

    return draw


def grey(image: Image.Image | Path | bytes, longest: int = MAX_SIDE) -> Image.Image:
    """The image in grey, transparent parts white, no side longer than `longest`. Raises `OcrError`."""
    try:
        opened = image if isinstance(image, Image.Image) else _open(image)
        if opened.has_transparency_data:
            shown = opened.convert("RGBA")
            opened = Image.new("RGBA", shown.size, "white")
            opened.alpha_composite(shown)
        flat = opened.convert("L")
        if max(flat.size) > longest:
            flat.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise OcrError(f"the image cannot be opened: {error}") from error
    return flat


def is_readable(image: Image.Image) -> bool:
    """Whether there can be letters: it is large enough, and not all of one shade."""
    if min(image.size) < MIN_SIDE:
        return False
    low, high = image.convert("L").getextrema()
    assert isinstance(low, (int, float))
    assert isinstance(high, (int, float))
    return high - low >= _BLANK_SPREAD


def _open(image: Path | bytes) -> Image.Image:
    return Image.open(io.BytesIO(image) if isinstance(image, bytes) else image)
