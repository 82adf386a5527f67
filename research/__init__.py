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
    from research.errors import CtxError
    from research.models import Coverage, LegScore, ResearchContext, SourceDocument
    from research.search.engine import SearchEngine, SearchResult
    from research.store.client import ChromaClient

__version__ = "0.1.0"

_HOMES = {
    "ChromaClient": "research.store.client",
    "ContextBuilder": "research.context.builder",
    "Coverage": "research.models",
    "CtxError": "research.errors",
    "LegScore": "research.models",
    "ResearchContext": "research.models",
    "SearchEngine": "research.search.engine",
    "SearchResult": "research.search.engine",
    "SourceDocument": "research.models",
}

__all__ = [
    "ChromaClient",
    "ContextBuilder",
    "Coverage",
    "CtxError",
    "LegScore",
    "ResearchContext",
    "SearchEngine",
    "SearchResult",
    "SourceDocument",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Load a name's module with its first use, so that `import research` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'research' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
