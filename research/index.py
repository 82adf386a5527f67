"""Index: the one object that the command line, the library and every service use.

    with Index.open(".ctx") as index:
        context = index.ask("What caused the crisis?", max_tokens=4000)
        print(context.formatted_text)

An open index may be used from many threads and for days. Each question reads one snapshot of the catalog; new
generations of the collections and another encoder are followed by themselves. Whatever changes the index takes its
write lock for as long as it takes, and no longer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from research.models import Item, PageResult, PageView, ResearchContext, SearchResults
from research.observe.recorder import NullRecorder, Recorder
from research.settings import Settings
from research.store.catalog.catalog import Catalog
from research.store.files.paths import IndexPaths
from research.store.vectors.index import ChromaIndex

if TYPE_CHECKING:
    from research.encoders.base import TextEncoder
    from research.records import DocumentInfo
    from research.sources.documents import DocumentsSource


class Index:
    """An open index. `Index.open` makes one; close it, or use it in a `with`."""

    def __init__(
        self,
        paths: IndexPaths,
        settings: Settings | None = None,
        *,
        encoder: TextEncoder | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """`encoder` stands in for the one that filled the index; `recorder` hears of times and counts."""
        self.paths = paths
        self.settings = settings or Settings()
        self.catalog = Catalog(paths)
        self.vectors = ChromaIndex(paths)
        self.recorder = recorder or NullRecorder()
        self._encoder = encoder
        self._source: DocumentsSource | None = None
        self._making = threading.Lock()

    @classmethod
    def open(cls, folder: str | Path, settings: Settings | None = None, *, recorder: Recorder | None = None) -> Index:
        """The index in this folder. Raises NothingFoundError if there is none."""
        return cls(IndexPaths(Path(folder)), settings, recorder=recorder)

    def refresh(self) -> None:
        """Let go of what was read before, so that the next question sees the index as it is now."""
        self.vectors.refresh()

    def close(self) -> None:
        self.vectors.close()
        self.catalog.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def with_settings(self, settings: Settings, encoder: TextEncoder | None = None) -> Index:
        """The same open index under other settings; closing either closes both."""
        other = copy(self)
        other.settings, other._encoder = settings, encoder
        other._source, other._making = None, threading.Lock()
        return other

    def ask(
        self,
        question: str,
        *,
        max_tokens: int | None = None,
        max_sources: int | None = None,
        num_results: int | None = None,
        mode: str | None = None,
        documents: Sequence[str] | None = None,
        highlights: bool = False,
        counter: TokenCounter | None = None,
    ) -> ResearchContext:
        """The pages that answer a question: cited, numbered, within the token budget.

        `documents` restricts it to names, patterns or ids. `highlights` also finds the places on the pages.
        """
        from research.context.budget import Budget
        from research.context.pipeline import build
        from research.context.render.cited import CitedPages, research_context
        from research.context.tokens import TokenCounter

        sources = self.settings.max_sources if max_sources is None else max_sources
        budget = Budget(self.settings.max_tokens if max_tokens is None else max_tokens, sources)
        with self.catalog.snapshot() as reader:
            context = build(
                reader,
                self._question(reader, question, mode, documents),
                [self.source],
                limit=max(self.settings.num_results, sources) if num_results is None else num_results,
                budget=budget,
                renderer=CitedPages(),
                counter=counter or TokenCounter(self.settings.token_encoding),
                recorder=self.recorder,
            )
            if highlights:
                items = self.source.highlight(reader, context.question, context.fitted.items)
                context = replace(context, fitted=replace(context.fitted, items=items))
        return research_context(context, budget.max_tokens)

    def search(
        self,
        question: str,
        *,
        num_results: int | None = None,
        mode: str | None = None,
        documents: Sequence[str] | None = None,
        highlights: bool = False,
    ) -> SearchResults:
        """Ranked pages, each with the passage that best shows why it was found."""
        from research.search.snippets import snippet

        limit = self.settings.num_results if num_results is None else num_results
        with self.catalog.snapshot() as reader:
            asked = self._question(reader, question, mode, documents)
            found = self.source.retrieve(reader, asked, limit)
            items = list(found.items)
            if highlights:
                items = self.source.highlight(reader, asked.searching(found.searched), items)
        results = [PageResult.of(item, rank, snippet(item.text, question)) for rank, item in enumerate(items, start=1)]
        return SearchResults(question, results, found.coverage, found.timings, found.searched, found.rewrites)

    def page(self, document: str, page: int, *, question: str | None = None) -> PageView:
        """One page as it is stored; with a question also the places on it that match. `document` is a name or an id."""
        with self.catalog.snapshot() as reader:
            [info] = _one(document, find_documents(reader, document))
            item = self._item(reader, info, page)
            passages, problem = [], ""
            if question is not None:
                passages, problem = self.source.places(reader, Question(question), item.ref)
        return PageView(replace(item, passages=tuple(passages)), info.num_pages, problem)

    def documents(self, *names: str) -> list[DocumentInfo]:
        """All documents, or those that names, patterns or ids mean. A name that means none raises NothingFoundError."""
        with self.catalog.snapshot() as reader:
            if not names:
                return all_documents(reader)
            found = {info.doc_id: info for name in names for info in find_documents(reader, name)}
        return list(found.values())

    def markdown(self, doc_id: str) -> str | None:
        """A document's whole markdown, pages joined by form feeds; None if it is unknown."""
        with self.catalog.snapshot() as reader:
            pages = document_markdown(reader, doc_id)
        return "\f".join(text for _, text in pages) if pages else None

    @property
    def source(self) -> DocumentsSource:
        """Documents as a source, made with the first question: what it imports is not needed by everything else."""
        with self._making:
            if self._source is None:
                from research.sources.documents import DocumentsSource

                self._source = DocumentsSource(self.vectors, self.settings, self._encoder)
            return self._source

    def _question(
        self, reader: Reader, text: str, mode: str | None, documents: Sequence[str] | None
    ) -> Question:
        ids = None
        if documents is not None:
            ids = tuple(sorted({info.doc_id for name in documents for info in find_documents(reader, name)}))
        return Question(text, mode=mode or self.settings.mode, documents=ids)
