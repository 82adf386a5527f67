"""Sources: kinds of things that can be asked, and context from several of them at once, as seed 002 has it.

from research.sources import ContextAssembler, IndexSearcher

assembler = ContextAssembler(IndexSearcher(index))
context = await assembler.assemble_context("retry of failed uploads", ["memories", "code", "commits"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.errors import ContextAssemblyError, InvalidContextTypeError
    from research.sources.assembler import (
        ContextAssembler,
        IndexSearcher,
        Mix,
        Options,
        Searcher,
        code_result,
        types_of,
    )
    from research.sources.documents import DocumentsSource, page_item
    from research.sources.items import (
        ITEM_SOURCES,
        CodeSource,
        ExperiencesSource,
        ItemsSource,
        ValuesSource,
        repositories_of,
        trees_of,
    )
    from research.sources.memories import Embedded, MemoriesSource, memory_item
    from research.sources.records import (
        CONTEXT_TYPES,
        CodeResult,
        CommitResult,
        ContextItem,
        DocumentResult,
        ExperienceResult,
        FormattedContext,
        MemoryResult,
        Results,
        ValueResult,
    )
    from research.sources.sections import FoundContext
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "assembler": (
                "ContextAssembler ContextAssemblyError IndexSearcher InvalidContextTypeError Mix Options Searcher "
                "code_result types_of"
            ),
            "documents": "DocumentsSource page_item",
            "items": ("CodeSource ExperiencesSource ITEM_SOURCES ItemsSource ValuesSource repositories_of trees_of"),
            "memories": "Embedded MemoriesSource memory_item",
            "records": (
                "CONTEXT_TYPES CodeResult CommitResult ContextItem DocumentResult ExperienceResult "
                "FormattedContext MemoryResult Results ValueResult"
            ),
            "sections": "FoundContext",
        },
    )
