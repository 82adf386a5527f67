"""PDF files into an index.

from ingest import ingest
from research.store.files.paths import IndexPaths

summary = ingest(IndexPaths(Path(".ctx")), ["reports", "letter.pdf"])

An index is a `research.Index` or its paths. `IngestSummary` tells what became of every file; an `Observer` is told as
it happens. README, "As a library", has more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest.report import FileOutcome, IngestSummary, Observer, PageOutcome, SilentObserver
    from ingest.run import ingest

_HOMES = {
    "FileOutcome": "ingest.report",
    "IngestSummary": "ingest.report",
    "Observer": "ingest.report",
    "PageOutcome": "ingest.report",
    "SilentObserver": "ingest.report",
    "ingest": "ingest.run",
}

__all__ = ["FileOutcome", "IngestSummary", "Observer", "PageOutcome", "SilentObserver", "ingest"]


def __getattr__(name: str) -> Any:
    """Load a name's module with its first use, so that `import ingest` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ingest' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
