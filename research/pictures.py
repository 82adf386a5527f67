"""A page's picture with places on it framed: what shows a person, or a model that sees, where an answer stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from research.models import MatchedRegion

if TYPE_CHECKING:
    from PIL.Image import Image

_COLOUR = (214, 40, 40)
_FILL = 46  # of 255: the text below stays readable
_MARGIN = 0.006  # of the longest side, so that the frame does not touch the letters


def framed(source: Path | IO[bytes], regions: Sequence[MatchedRegion]) -> Image:
    """The picture of a page with its regions framed; the best one has the thickest frame. Raises OSError if it is no
    picture."""
    from PIL import Image, ImageDraw

    with Image.open(source) as stored:
        page = stored.convert("RGB")
    layer = Image.new("RGBA", page.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    width, height = page.size
    margin = _MARGIN * max(page.size)
    for rank, region in enumerate(regions):
        x0, y0, x1, y1 = region.box
        frame = (
            max(0.0, x0 * width - margin),
            max(0.0, y0 * height - margin),
            min(width - 1.0, x1 * width + margin),
            min(height - 1.0, y1 * height + margin),
        )
        pen.rectangle(frame, fill=(*_COLOUR, _FILL), outline=(*_COLOUR, 255), width=max(2, 5 - 2 * rank))
    page.paste(layer, mask=layer)
    return page
