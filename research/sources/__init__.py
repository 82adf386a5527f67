"""Sources: kinds of things that can be asked, and context from several of them at once, as seed 002 has it.

from research.sources import ContextAssembler, IndexSearcher

assembler = ContextAssembler(IndexSearcher(index))
context = await assembler.assemble_context("retry of failed uploads", ["memories", "code", "commits"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from research.errors import ContextAssemblyError, InvalidContextTypeError
    from research.sources.assembler import ContextAssembler, Options
    from research.sources.records import (
        CONTEXT_TYPES,
        CodeResult,
        CommitResult,
        ContextItem,
        DocumentResult,
        ExperienceResult,
        FormattedContext,
        MemoryResult,
        ValueResult,
    )
    from research.sources.searcher import IndexSearcher, Searcher

_HOMES = {
    "CONTEXT_TYPES": "research.sources.records",
    "CodeResult": "research.sources.records",
    "CommitResult": "research.sources.records",
    "ContextAssembler": "research.sources.assembler",
    "ContextAssemblyError": "research.errors",
    "ContextItem": "research.sources.records",
    "DocumentResult": "research.sources.records",
    "ExperienceResult": "research.sources.records",
    "FormattedContext": "research.sources.records",
    "IndexSearcher": "research.sources.searcher",
    "InvalidContextTypeError": "research.errors",
    "MemoryResult": "research.sources.records",
    "Options": "research.sources.assembler",
    "Searcher": "research.sources.searcher",
    "ValueResult": "research.sources.records",
}

__all__ = [
    "CONTEXT_TYPES",
    "CodeResult",
    "CommitResult",
    "ContextAssembler",
    "ContextAssemblyError",
    "ContextItem",
    "DocumentResult",
    "ExperienceResult",
    "FormattedContext",
    "IndexSearcher",
    "InvalidContextTypeError",
    "MemoryResult",
    "Options",
    "Searcher",
    "ValueResult",
]


def __getattr__(name: str) -> Any:
    """Load a name's module with its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'research.sources' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
