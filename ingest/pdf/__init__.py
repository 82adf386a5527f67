"""PDF files to pages: open with `open_pdf`, read with `PdfReader.pages()`."""

from ingest.pdf.reader import READER_VERSION, PdfReader, open_pdf

__all__ = ["READER_VERSION", "PdfReader", "open_pdf"]
