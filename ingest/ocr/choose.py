"""Which OCR engine to take on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.errors import CtxError, UsageError

if TYPE_CHECKING:
    from ingest.ocr.engine import OcrEngine

ENGINES = ("auto", "tesseract", "rapidocr")


def choose_engine(wanted: str = "auto", *, language: str = "", threads: int = 1) -> OcrEngine:
    """The engine asked for, or with "auto" tesseract where it works and rapidocr where not.

    `language` is tesseract's ("eng", "deu+eng") and needs tesseract: rapidocr has one model and cannot be told.
    Raises `CtxError` with the command that installs what is missing.
    """
    if wanted not in ENGINES:
        raise UsageError(f"there is no OCR engine called {wanted!r}", hint=f"choose one of: {', '.join(ENGINES)}")
    from ingest.ocr import rapid, tesseract

    if wanted == "rapidocr" and language:
        raise UsageError(
            "rapidocr cannot be told a language",
            hint="take tesseract (--ocr-engine tesseract), or leave the language out",
        )
    if wanted == "rapidocr":
        return rapid.RapidEngine(threads=threads)
    # A language that was asked for is never read by an engine that does not know it: what is missing is said.
    if wanted == "tesseract" or language:
        return tesseract.TesseractEngine(language=language)
    try:
        return tesseract.TesseractEngine()
    except CtxError:
        return rapid.RapidEngine(threads=threads)
