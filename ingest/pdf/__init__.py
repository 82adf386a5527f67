"""PDF files to pages: open with `open_pdf`, read with `PdfReader.pages()`.

The PDF library loads with the first name that needs it, so that `ingest.pdf.version` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.pdf.version import READER_VERSION

if TYPE_CHECKING:
    from ingest.pdf.reader import PdfReader, open_pdf

__all__ = ["READER_VERSION", "PdfReader", "open_pdf"]


def __getattr__(name: str) -> object:
    if name in ("PdfReader", "open_pdf"):
        from ingest.pdf import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
