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

from research.errors import NothingFoundError, UsageError
from research.models import Coverage, PageResult, PageView, Question, ResearchContext, SearchResults
from research.settings import Settings
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import all_documents, find_documents
from research.store.catalog.pages import document_markdown, get_page, page_markdown, totals
from research.store.files.paths import IndexPaths
from research.store.vectors.index import ChromaIndex, VectorIndex

if TYPE_CHECKING:
    from research.context.tokens import TokenCounter
    from research.encoders.base import TextEncoder
    from research.observe.recorder import Recorder
    from research.records import DocumentInfo
    from research.search.engine import SearchOutcome
    from research.sources.documents import DocumentsSource
    from research.store.catalog.reader import Reader


class Index:
    """An open index. `Index.open` makes one; close it, or use it in a `with`."""

    def __init__(
        self,
        catalog: Catalog,
        vectors: VectorIndex,
        settings: Settings | None = None,
        *,
        encoder: TextEncoder | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """`encoder` stands in for the one that filled the index; `recorder` hears of times and counts."""
        self.paths = catalog.paths
        self.settings = settings or Settings()
        self.catalog = catalog
        self.vectors = vectors
        self.recorder = recorder
        self._encoder = encoder
        self._source: DocumentsSource | None = None
        self._making = threading.Lock()

    @classmethod
    def open(cls, folder: str | Path, settings: Settings | None = None, *, recorder: Recorder | None = None) -> Index:
        """The index in this folder. Raises NothingFoundError if there is none."""
        paths = IndexPaths(Path(folder))
        return cls(Catalog(paths), ChromaIndex(paths), settings, recorder=recorder)

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

    def check_not_empty(self) -> None:
        """Raise NothingFoundError if there is nothing to search."""
        with self.catalog.snapshot() as reader:
            if totals(reader).pages == 0:
                raise NothingFoundError(
                    f"the index {self.paths.root} is empty, so there is nothing to search",
                    hint="add documents: ctx ingest PATH",
                )

    def catch_up(self) -> bool:
        """Publish what the collections lack, if nobody else is writing. True if that was done; without it a question
        compares the missing vectors one by one."""
        return self.vectors.sync_if_stale(self.catalog)

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
        coverage = found.coverage or Coverage()
        return SearchResults(question, results, coverage, found.timings, found.searched, found.rewrites)

    def rank(
        self,
        question: str,
        num_results: int = 10,
        mode: str = "hybrid",
        *,
        doc_ids: Sequence[str] | None = None,
        everything: bool = False,
    ) -> SearchOutcome:
        """Ranked pages as the engine has them: raw sums and how each leg saw them, for measuring.

        `everything` also brings the candidates that come after the results.
        """
        ids = None if doc_ids is None else tuple(doc_ids)
        with self.catalog.snapshot() as reader:
            asked = Question(question, mode=mode, documents=ids)
            return self.source.engine.run(reader, asked, num_results, everything=everything)

    def page(self, document: str, page: int, *, question: str | None = None) -> PageView:
        """One page as it is stored; with a question also the places on it that match. `document` is a name or an id."""
        from research.sources.documents import page_item

        with self.catalog.snapshot() as reader:
            info = _only(document, find_documents(reader, document))
            stored = get_page(reader, info.doc_id, page)
            if stored is None:
                raise NothingFoundError(
                    f"{info.filename} has no page {page}", hint=f"its pages are 1 to {info.num_pages}"
                )
            item, problem = page_item(stored, page_markdown(reader, info.doc_id, page) or ""), ""
            if question is not None:
                passages, problem = self.source.places(reader, Question(question), item.ref)
                item = replace(item, passages=tuple(passages))
        return PageView(item, info.num_pages, stored.error, problem)

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


def _only(name: str, found: Sequence[DocumentInfo]) -> DocumentInfo:
    if len(found) > 1:
        names = ", ".join(f"{document.filename} ({document.doc_id})" for document in found)
        raise UsageError(f"{name!r} matches {len(found)} documents: {names}", hint="name one by its id")
    return found[0]
