"""What an OCR engine is, and which one to take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from research.errors import CtxError, UsageError
from research.records import Box

if TYPE_CHECKING:
    from PIL.Image import Image

ENGINES = ("auto", "tesseract", "rapidocr")


OCR_FAILED = "ocr_failed"


class OcrError(CtxError):
    """One image could not be read. It costs that page or picture, never the document. `code` as in store.failures."""

    def __init__(self, message: str, *, code: str = OCR_FAILED) -> None:
        super().__init__(message)
        self.code = code


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

    def read(self, image: Image | Path | bytes) -> list[OcrLine]:
        """The lines of an image in reading order; none where nothing can be read. Raises `OcrError`."""
        ...


def choose_engine(wanted: str = "auto", *, language: str = "", threads: int = 1) -> OcrEngine:
    """The engine asked for, or with "auto" tesseract where it works and rapidocr where not.

    `language` is tesseract's ("eng", "deu+eng"); rapidocr's models read Latin and Chinese script without being told.
    Raises `CtxError` with the command that installs what is missing.
    """
    if wanted not in ENGINES:
        raise UsageError(f"there is no OCR engine called {wanted!r}", hint=f"choose one of: {', '.join(ENGINES)}")
    from ingest.ocr import rapid, tesseract

    if wanted == "rapidocr":
        return rapid.RapidEngine(threads=threads)
    if wanted == "tesseract":
        return tesseract.TesseractEngine(language=language)
    try:
        engine = tesseract.TesseractEngine()
    except CtxError:
        return rapid.RapidEngine(threads=threads)
    # A language that is missing is said, not silently read by an engine that does not know it either.
    return tesseract.TesseractEngine(language=language) if language else engine
