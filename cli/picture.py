"""A page's image with the places that match a question marked on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from research.errors import CtxError, UsageError
from research.models import MatchedRegion

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}

_COLOUR = (214, 40, 40)
_FILL = 46  # of 255: the text below stays readable
_MARGIN = 0.006  # of the longest side, so that the frame does not touch the letters


def check_format(out: Path) -> None:
    """Raise unless the file's ending names a picture."""
    if out.suffix.lower() not in FORMATS:
        raise UsageError(f"{out.name} is no picture", hint=f"end its name in one of: {', '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", hint="make it first, or name another")


def write_picture(source: Path, out: Path, regions: Sequence[MatchedRegion]) -> None:
    """Copy a page image to `out`, framing the regions; the best one has the thickest frame."""
    from PIL import Image, ImageDraw

    try:
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
        page.save(out, FORMATS[out.suffix.lower()])
    except OSError as error:
        raise CtxError(f"the picture could not be written: {error}", hint="check the path given to --image") from error
