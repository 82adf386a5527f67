"""A page's image with the places that match a question marked on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from research.errors import CtxError, UsageError
from research.models import MatchedRegion

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def check_format(out: Path) -> None:
    """Raise unless the file's ending names a picture."""
    if out.suffix.lower() not in FORMATS:
        raise UsageError(f"{out.name} is no picture", hint=f"end its name in one of: {', '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", hint="make it first, or name another")


def write_picture(source: Path, out: Path, regions: Sequence[MatchedRegion]) -> None:
    """Copy a page image to `out`, framing the regions; the best one has the thickest frame."""
    from research.pictures import framed

    try:
        framed(source, regions).save(out, FORMATS[out.suffix.lower()])
    except OSError as error:
        raise CtxError(f"the picture could not be written: {error}", hint="check the path given to --image") from error
