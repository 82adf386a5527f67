"""ctx as a library: open an index, search it, build cited context from it.

from research import ChromaClient, ContextBuilder, SearchEngine

client = ChromaClient(".ctx")
builder = ContextBuilder(SearchEngine(client), client, max_tokens=4000)
context = await builder.build_context("What caused the crisis?")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from research.context.builder import ContextBuilder
    from research.errors import (
        BusyError,
        CtxError,
        DocumentError,
        EncoderNotAllowed,
        EncoderUnavailable,
        IndexUnusableError,
        NewerIndexError,
        NothingFoundError,
        OcrError,
        SomeFilesFailedError,
        StoppedError,
        UntrustedError,
        UsageError,
    )
    from research.models import Coverage, LegScore, ResearchContext, SourceDocument
    from research.search.engine import SearchEngine, SearchResult
    from research.store.client import ChromaClient

__version__ = "0.1.0"

_HOMES = {
    "BusyError": "research.errors",
    "ChromaClient": "research.store.client",
    "ContextBuilder": "research.context.builder",
    "Coverage": "research.models",
    "CtxError": "research.errors",
    "DocumentError": "research.errors",
    "EncoderNotAllowed": "research.errors",
    "EncoderUnavailable": "research.errors",
    "IndexUnusableError": "research.errors",
    "LegScore": "research.models",
    "NewerIndexError": "research.errors",
    "NothingFoundError": "research.errors",
    "OcrError": "research.errors",
    "ResearchContext": "research.models",
    "SearchEngine": "research.search.engine",
    "SearchResult": "research.search.engine",
    "SomeFilesFailedError": "research.errors",
    "SourceDocument": "research.models",
    "StoppedError": "research.errors",
    "UntrustedError": "research.errors",
    "UsageError": "research.errors",
}

__all__ = [
    "BusyError",
    "ChromaClient",
    "ContextBuilder",
    "Coverage",
    "CtxError",
    "DocumentError",
    "EncoderNotAllowed",
    "EncoderUnavailable",
    "IndexUnusableError",
    "LegScore",
    "NewerIndexError",
    "NothingFoundError",
    "OcrError",
    "ResearchContext",
    "SearchEngine",
    "SearchResult",
    "SomeFilesFailedError",
    "SourceDocument",
    "StoppedError",
    "UntrustedError",
    "UsageError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Load a name's module with its first use, so that `import research` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'research' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
