"""Pages as pixels, whatever their size: scaled by the longest side, so that no page can ask for more memory."""

from __future__ import annotations

from typing import Any

from PIL import Image

from ingest.pdf.mupdf import MupdfError, finite, mupdf_errors, pymupdf
from research.boxes import WHOLE_PAGE, Box, placed


def raster(page: Any, *, longest: int, box: Box | None = None, grey: bool = False) -> Image.Image | None:
    """A page, or the part of it in `box`, with its longest side `longest` pixels. None if it cannot be drawn."""
    try:
        with mupdf_errors():
            whole = page.rect
        clip = _clip(whole, box)
        if clip.width <= 0 or clip.height <= 0:
            return None
        scale = longest / max(clip.width, clip.height)
        colours = pymupdf.csGRAY if grey else pymupdf.csRGB
        with mupdf_errors():
            matrix = pymupdf.Matrix(scale, scale)
            # Rounding to whole pixels goes outward, so a sliver still gets one.
            pixels = page.get_pixmap(matrix=matrix, clip=clip, colorspace=colours, alpha=False)
            samples = bytes(pixels.samples)
    except MupdfError:
        return None
    return Image.frombytes("L" if grey else "RGB", (pixels.width, pixels.height), samples)


def _clip(whole: Any, box: Box | None) -> Any:
    left, top, wide, tall = (finite(v) for v in (whole.x0, whole.y0, whole.width, whole.height))
    return pymupdf.Rect(placed(box or WHOLE_PAGE, (left, top, left + wide, top + tall)))
