"""Page images and thumbnails: files beside the catalog, one folder a document."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.pdf.mupdf import raster
from research.store.files.paths import image_name, thumbnail_name

if TYPE_CHECKING:
    from PIL import Image

_LONGEST = 1280
_THUMBNAIL = 256
_JPEG_QUALITY = 78
_WEBP_QUALITY = 60


def write_images(page: Any, number: int, folder: Path) -> bool:
    """Draw a page, PyMuPDF's or None, into its two files. False if it cannot be drawn."""
    from PIL import Image

    if page is None:
        return False
    picture = raster(page, longest=_LONGEST)
    if picture is None or min(picture.size) < 1:
        return False
    _write(picture, folder / image_name(number), "JPEG", quality=_JPEG_QUALITY)
    picture.thumbnail((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BILINEAR, reducing_gap=2.0)
    _write(picture, folder / thumbnail_name(number), "WEBP", quality=_WEBP_QUALITY, method=2)
    return True


def _write(picture: Image.Image, path: Path, kind: str, **options: int) -> None:
    # Through memory: Pillow's own writing does not say that the disk is full.
    data = io.BytesIO()
    picture.save(data, kind, **options)
    path.write_bytes(data.getvalue())
