"""Real PDFs, made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from ingest.pdf.reader import PdfReader
from research.records import Page

Draw = Callable[[Any], None]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[Page]]:
    """Draw a document with PyMuPDF, save it, and read its pages back."""

    def build(draw: Draw, **save: Any) -> list[Page]:
        path = tmp_path / "made.pdf"
        document = pymupdf.open()
        draw(document)
        document.save(path, **save)
        document.close()
        with PdfReader(path) as reader:
            return list(reader.pages())

    return build
