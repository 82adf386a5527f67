"""What an OCR engine is: the protocol, the lines it reads, the error it raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from research.boxes import Box

if TYPE_CHECKING:
    from PIL.Image import Image

ENGINES = ("auto", "tesseract", "rapidocr")


@dataclass(frozen=True, slots=True)
class OcrLine:
    """A run of words on one baseline without a wide gap in it; a table's row comes as several."""

    text: str
    box: Box  # fractions of the image, or of the page once a page was read
    confidence: float  # 0..1
    slope: float = 0.0  # pixels down per pixel to the right, as the scan is skewed
    turn: int = 0  # degrees clockwise by which the image had to be turned to be read; the box is as it was before


class OcrEngine(Protocol):
    """Reads images. One engine serves one thread; `name` tells program and version ("tesseract 5.3.0")."""

    @property
    def name(self) -> str: ...

    @property
    def page_side(self) -> int:
        """The longest side, in pixels, at which a page should be rendered for it."""
        ...

    def read(self, image: Image) -> list[OcrLine]:
        """The lines of an image in reading order; none where nothing can be read. Raises `OcrError`."""
        ...
