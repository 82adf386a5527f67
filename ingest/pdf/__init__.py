"""PDF files to pages: open with `reader.PdfReader`, read with `PdfReader.pages()`."""

READER_VERSION: int = 2
"""Raised when the same file would give other pages; the next run reads such documents again. It stands here, apart from
the reader, so that planning a run does not load the PDF library."""
