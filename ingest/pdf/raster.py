"""Pages as pixels, whatever their size: scaled by the longest side, so that no page can ask for more memory."""

from __future__ import annotations

from typing import Any

from PIL import Image

from ingest.pdf.mupdf import READ_ERRORS, pymupdf
from research.store.records import Box


def raster(page: Any, *, longest: int, box: Box | None = None, grey: bool = False) -> Image.Image | None:
    """A page, or the part of it in `box`, with its longest side `longest` pixels. None if it cannot be drawn."""
    try:
        clip = _clip(page, box)
        side = max(clip.width, clip.height)
        if not 0 < side < float("inf"):
            return None
        scale = longest / side
        colours = pymupdf.csGRAY if grey else pymupdf.csRGB
        matrix = pymupdf.Matrix(scale, scale)
        pixels = page.get_pixmap(matrix=matrix, clip=clip, colorspace=colours, alpha=False)
        return Image.frombytes("L" if grey else "RGB", (pixels.width, pixels.height), pixels.samples)
    except READ_ERRORS:
        return None


def _clip(page: Any, box: Box | None) -> Any:
    whole = page.rect
    if box is None:
        return whole
    x0, y0, x1, y1 = box
    return pymupdf.Rect(
        whole.x0 + x0 * whole.width,
        whole.y0 + y0 * whole.height,
        whole.x0 + x1 * whole.width,
        whole.y0 + y1 * whole.height,
    )
