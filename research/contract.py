"""The contract of 0.1.0 (seed 004) as a thin adapter: ChromaClient, SearchEngine and ContextBuilder over an Index.

client = ChromaClient(".ctx")
builder = ContextBuilder(SearchEngine(client), client, max_tokens=4000)
context = await builder.build_context("What caused the crisis?")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from research.context import CitedPages, TokenCounter, fit_items, item_of, source_of
from research.errors import NothingFoundError, UsageError
from research.index import Index
from research.models import Item, Question, ResearchContext, SourceDocument
from research.settings import BOOSTERS, REWRITERS, Settings
from research.store import ChromaClient

if TYPE_CHECKING:
    from research.encoders import TextEncoder
    from research.filters import Filters
    from research.search import SearchOutcome

R = TypeVar("R", bound=Mapping[str, Any])


class SearchResult(TypedDict):
    """One page found, as the contract has it: a plain dictionary."""

    doc_id: str
    page: int
    score: float
    filename: str
    metadata: dict[str, Any]


class SearchEngine:
    """Searches an open index. Safe to use for many questions and threads; loads what it needs with the first."""

    def __init__(
        self,
        chroma_client: ChromaClient,
        *,
        encoder: TextEncoder | None = None,
        device: str = "auto",
        named_encoders: Sequence[str] = (),
        rewriters: Sequence[str] = REWRITERS,
        boosters: Sequence[str] = BOOSTERS,
    ) -> None:
        """`device` is where a visual model runs, if one filled the index. `named_encoders` are those the user names,
        and so allows to be loaded, beside those named to an earlier ingest."""
        self.client = chroma_client
        settings = Settings(
            device=device,
            allowed_encoders=tuple(named_encoders),
            rewriters=tuple(rewriters),
            boosters=tuple(boosters),
        )
        self.index = Index.of(chroma_client, settings, encoder)

    async def search(self, query: str, num_results: int = 10, search_mode: str = "hybrid") -> list[SearchResult]:
        """Ranked pages. Modes: hybrid, text, visual; lexical and dense for one leg alone."""
        import asyncio

        return await asyncio.to_thread(self._search, query, num_results, search_mode)

    def run(
        self,
        query: str,
        num_results: int = 10,
        search_mode: str = "hybrid",
        *,
        documents: Sequence[str] | None = None,
        everything: bool = False,
    ) -> SearchOutcome:
        """`search` with its coverage and timings. `documents` restricts it to these ids; `everything` also brings the
        candidates that come after the results."""
        return self.index.rank(query, num_results, search_mode, doc_ids=documents, everything=everything)

    def _search(self, query: str, num_results: int, mode: str) -> list[SearchResult]:
        with self.index.catalog.snapshot() as reader:
            question = Question(query, mode=mode)
            found = self.index.source.retrieve(reader, question, num_results)
            asked = question.searching(found.searched)
            items = self.index.source.with_passages(reader, asked, found.items, look=True)
        return [_result(item) for item in items]


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
        *,
        documents: Sequence[str] | None = None,
        filters: Filters | None = None,
    ) -> ResearchContext:
        """Search, deduplicate, look up the pages, number them and fit them into the budget.

        `documents` and `filters` restrict it, as in `Index.ask`.
        """
        import asyncio

        mode = mode_of(include_text, include_visual)
        return await asyncio.to_thread(self.build, query, num_results, mode, documents=documents, filters=filters)

    def build(
        self,
        query: str,
        num_results: int = 10,
        search_mode: str | None = "hybrid",
        *,
        documents: Sequence[str] | None = None,
        filters: Filters | None = None,
    ) -> ResearchContext:
        """`build_context` for callers without an event loop."""
        if search_mode is None:
            return ResearchContext("", [], 0, truncated=False, query=query, max_tokens=self.max_tokens)
        return self.search_engine.index.ask(
            query,
            max_tokens=self.max_tokens,
            max_sources=self.max_sources,
            num_results=num_results,
            mode=search_mode,
            documents=documents,
            filters=filters,
            highlights=True,
            counter=self._counter,
        )

    async def get_source_metadata(self, doc_id: str, page: int) -> SourceDocument:
        """One page with its metadata and markdown. Raises ValueError if it is not in the index. An id that the document
        had before its file changed is as good as today's; its name or title is none."""
        import asyncio

        return await asyncio.to_thread(self._source, doc_id, page)

    def _source(self, doc_id: str, page: int) -> SourceDocument:

        index = self.search_engine.index
        with index.catalog.snapshot() as reader:
            known = reader.names.current_ids([doc_id])
        try:
            return source_of(index.documents.page(known[0], page).item)
        except (IndexError, NothingFoundError) as error:
            raise ValueError(f"document {doc_id} has no page {page} in this index") from error

    def format_source_citation(self, source: SourceDocument, citation_num: int) -> str:
        """The header and the text below it."""
        return CitedPages().entry(item_of(source), citation_num)

    def deduplicate_results(self, results: Sequence[R]) -> list[R]:
        """Each (doc_id, page) once, with its best score, best first."""
        best: dict[tuple[str, int], R] = {}
        for result in results:
            key = (result["doc_id"], result["page"])
            if key not in best or result["score"] > best[key]["score"]:
                best[key] = result
        return sorted(best.values(), key=lambda result: -result["score"])

    def truncate_to_budget(self, sources: Sequence[SourceDocument], max_tokens: int) -> list[SourceDocument]:
        """The sources that fit, in order; the last one may be cut (`cut` says so)."""
        fitted = fit_items([item_of(source) for source in sources], max_tokens, CitedPages(), self._counter)
        return [
            replace(source, markdown_content=item.text, cut=item.cut)
            for source, item in zip(sources, fitted.items, strict=False)
        ]

    def estimate_tokens(self, text: str) -> int:
        """Tokens of a text; exact, not an estimate."""
        return self._counter.count(text)


def mode_of(include_text: bool, include_visual: bool) -> str | None:
    """The search mode for the contract's two switches; None when both are off."""
    if include_text and include_visual:
        return "hybrid"
    if include_text:
        return "text"
    return "visual" if include_visual else None


def _result(item: Item) -> SearchResult:
    source = source_of(item)
    metadata = dict(item.metadata) | {
        "legs": {name: asdict(leg) for name, leg in item.legs.items()},
        "visual_match": source.visual_match,
        "regions": [asdict(region) for region in source.regions],
    }
    return SearchResult(
        doc_id=source.doc_id, page=source.page, score=item.score, filename=source.filename, metadata=metadata
    )
