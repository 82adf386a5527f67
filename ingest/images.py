"""Page images and thumbnails: files beside the catalog, one folder a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ingest.pdf.raster import raster
from research.store.images import image_name, thumbnail_name

_LONGEST = 1280
_THUMBNAIL = 256
_JPEG_QUALITY = 78
_WEBP_QUALITY = 60


def write_images(page: Any, number: int, folder: Path) -> bool:
    """Draw a page into its two files. False if it cannot be drawn."""
    from PIL import Image

    picture = raster(page, longest=_LONGEST)
    if picture is None or min(picture.size) < 1:
        return False
    picture.save(folder / image_name(number), "JPEG", quality=_JPEG_QUALITY)
    picture.thumbnail((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BILINEAR, reducing_gap=2.0)
    picture.save(folder / thumbnail_name(number), "WEBP", quality=_WEBP_QUALITY, method=2)
    return True
