"""ContextBuilder: from a question to numbered, budgeted context."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from research.context import budget, citations, dedupe
from research.context.suspicion import signs_of
from research.context.tokens import TokenCounter
from research.errors import UsageError
from research.models import Coverage, DroppedSource, ResearchContext, SourceDocument
from research.search.engine import Found, SearchEngine, SearchResult
from research.store.catalog.pages import StoredPage, get_page, page_markdown
from research.store.client import ChromaClient

R = TypeVar("R", bound=Mapping[str, Any])


class ContextBuilder:
    """Builds cited context from search results."""

    def __init__(
        self,
        search_engine: SearchEngine,
        chroma_client: ChromaClient,
        max_sources: int = 10,
        max_tokens: int = 10000,
        *,
        counter: TokenCounter | None = None,
    ) -> None:
        if max_sources < 0 or max_tokens < 0:
            raise UsageError("max_sources and max_tokens cannot be negative")
        self.search_engine = search_engine
        self.chroma_client = chroma_client
        self.max_sources = max_sources
        self.max_tokens = max_tokens
        self._counter = counter or TokenCounter()

    async def build_context(
        self,
        query: str,
        num_results: int = 10,
        include_text: bool = True,
        include_visual: bool = True,
    ) -> ResearchContext:
        """Search, deduplicate, look up the pages, number them and fit them into the budget."""
        import asyncio

        return await asyncio.to_thread(self.build, query, num_results, mode_of(include_text, include_visual))

    def build(
        self,
        query: str,
        num_results: int = 10,
        search_mode: str | None = "hybrid",
        *,
        documents: Sequence[str] | None = None,
    ) -> ResearchContext:
        """`build_context` for callers without an event loop. `documents` restricts it to these ids."""
        started = time.perf_counter()
        if search_mode is None:
            return self._assemble(query, [], Coverage(), {}, started)
        outcome = self.search_engine.run(query, num_results, search_mode, documents=documents)
        results = self.deduplicate_results([found.result() for found in outcome.found])
        by_page = {(found.page.doc_id, found.page.page): found for found in outcome.found}
        sources = list(self._still_there(results, by_page))
        return self._assemble(query, sources, outcome.coverage, outcome.timings, started)

    async def get_source_metadata(self, doc_id: str, page: int) -> SourceDocument:
        """One page with its metadata and markdown. Raises ValueError if it is not in the index."""
        found = self._source(doc_id, page, 0.0, {})
        if found is None:
            raise ValueError(f"document {doc_id} has no page {page} in this index")
        return found

    def format_source_citation(self, source: SourceDocument, citation_num: int) -> str:
        """The header and the text below it."""
        return citations.block(source, citation_num)

    def deduplicate_results(self, results: Sequence[R]) -> list[R]:
        """Each (doc_id, page) once, with its best score, best first."""
        return dedupe.deduplicate(results)

    def truncate_to_budget(self, sources: Sequence[SourceDocument], max_tokens: int) -> list[SourceDocument]:
        """The sources that fit, in order; the last one may be cut (`cut` says so)."""
        return budget.fit(sources, max_tokens, self._counter).sources

    def estimate_tokens(self, text: str) -> int:
        """Tokens of a text; exact, not an estimate."""
        return self._counter.count(text)

    def _still_there(
        self, results: Sequence[SearchResult], found: Mapping[tuple[str, int], Found]
    ) -> Iterator[SourceDocument]:
        """The best pages, as many as fit. One that was removed since the search gives its place to the next."""
        sources = (self._source(result["doc_id"], result["page"], result["score"], found) for result in results)
        return islice((source for source in sources if source is not None), self.max_sources)

    def _source(
        self,
        doc_id: str,
        page: int,
        score: float,
        found: Mapping[tuple[str, int], Found],
    ) -> SourceDocument | None:
        """The page as a source; none if it is not in the index, or not any more."""
        catalog = self.chroma_client.catalog
        stored = get_page(catalog, doc_id, page)
        markdown = page_markdown(catalog, doc_id, page)
        if stored is None or markdown is None:
            return None
        return _source_of(stored, markdown, score, found.get((doc_id, page)))

    def _assemble(
        self,
        query: str,
        sources: list[SourceDocument],
        coverage: Coverage,
        timings: dict[str, float],
        started: float,
    ) -> ResearchContext:
        fitted = budget.fit(sources, self.max_tokens, self._counter)
        dropped = [DroppedSource(s.doc_id, s.filename, s.page, s.relevance_score) for s in fitted.dropped]
        return ResearchContext(
            formatted_text=fitted.text,
            sources=fitted.sources,
            total_tokens=fitted.tokens,
            truncated=fitted.truncated,
            query=query,
            max_tokens=self.max_tokens,
            dropped=dropped,
            coverage=coverage,
            timings={**timings, "total": time.perf_counter() - started},
        )


def mode_of(include_text: bool, include_visual: bool) -> str | None:
    """The search mode for the contract's two switches; None when both are off."""
    if include_text and include_visual:
        return "hybrid"
    if include_text:
        return "text"
    return "visual" if include_visual else None


def _source_of(page: StoredPage, markdown: str, score: float, found: Found | None) -> SourceDocument:
    return SourceDocument(
        doc_id=page.doc_id,
        filename=page.filename,
        page=page.page,
        extension=page.extension,
        thumbnail_path=page.thumb_path or None,
        image_path=page.image_path or None,
        timestamp=page.timestamp,
        section_path=page.section_path or None,
        parent_heading=page.parent_heading or None,
        markdown_content=markdown,
        relevance_score=score,
        page_label=page.label,
        source_path=page.source_path,
        title=page.title,
        ocr=bool(page.ocr_engine),
        ocr_engine=page.ocr_engine,
        legs=found.legs if found else {},
        visual_match=found.visual_match if found else False,
        regions=found.regions if found else [],
        suspicious=signs_of(markdown, filename=page.filename, title=page.title),
    )
