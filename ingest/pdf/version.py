"""The reader's version, apart from the reader so that planning a run does not load the PDF library."""

READER_VERSION: int = 2
"""Raised when the same file would give other pages; the next run reads such documents again."""
