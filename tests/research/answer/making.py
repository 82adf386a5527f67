"""Sources and contexts of given texts."""

from __future__ import annotations

from typing import Any

from research.models import Passage, ResearchContext, SourceDocument


def source(text: str, *passages: str, name: str = "handbook.pdf", page: int = 3, **fields: Any) -> SourceDocument:
    """A page with this text; passages are parts of it."""
    found = [Passage(each, 0.5, None, text.index(each), text.index(each) + len(each)) for each in passages]
    return SourceDocument("0" * 16, name, page, "pdf", markdown_content=text, passages=found, **fields)


def context(*sources: SourceDocument, query: str = "How many weeks of leave?") -> ResearchContext:
    text = "\n\n".join(each.markdown_content for each in sources)
    return ResearchContext(text, list(sources), 0, truncated=False, query=query)
