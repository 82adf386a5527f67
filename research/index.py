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

from research.errors import NothingFoundError
from research.models import Coverage, PageResult, PageView, Question, ResearchContext, SearchResults
from research.settings import Settings
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import all_documents, select_documents, select_one
from research.store.catalog.pages import document_markdown, get_page, page_markdown, totals
from research.store.files.paths import IndexPaths
from research.store.fulltext.search import is_outdated
from research.store.vectors.index import ChromaIndex, VectorIndex

if TYPE_CHECKING:
    from research.context.tokens import TokenCounter
    from research.encoders.base import TextEncoder
    from research.observe.recorder import Recorder
    from research.records import DocumentInfo
    from research.reports import Backup, Check, Reindexed, Removal, Restored, Status
    from research.search.legs import SearchOutcome
    from research.sources.documents import DocumentsSource
    from research.store.catalog.reader import Reader
    from research.store.client import ChromaClient


class Index:
    """An index in a folder. Nothing of it is opened before it is needed; `Index.open` does so at once.

    Reading is safe from many threads. Methods that change the index take its write lock; `wait` is how many seconds
    another writer is waited for, and BusyError what comes then.
    """

    def __init__(
        self,
        folder: str | Path,
        settings: Settings | None = None,
        *,
        encoder: TextEncoder | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """`encoder` stands in for the one that filled the index; `recorder` hears of times and counts."""
        self.paths = IndexPaths(Path(folder))
        self.settings = settings or Settings()
        self.recorder = recorder
        self._encoder = encoder
        self._opening = threading.Lock()
        self._catalog: Catalog | None = None
        self._vectors: VectorIndex | None = None
        self._source: DocumentsSource | None = None

    @classmethod
    def open(cls, folder: str | Path, settings: Settings | None = None, *, recorder: Recorder | None = None) -> Index:
        """The index in this folder, ready to be asked. Raises NothingFoundError if there is none."""
        index = cls(folder, settings, recorder=recorder)
        index.catalog  # noqa: B018  opens it
        return index

    @classmethod
    def of(cls, client: ChromaClient, settings: Settings, encoder: TextEncoder | None = None) -> Index:
        """The index that a client of the contract has open; it is the client's to close."""
        index = cls(client.paths.root, settings, encoder=encoder)
        index._catalog, index._vectors = client.catalog, client.vectors
        return index

    @property
    def root(self) -> Path:
        """The folder."""
        return self.paths.root

    @property
    def exists(self) -> bool:
        return self.paths.exists

    def nothing_found(self) -> NothingFoundError:
        """What there is to say of an index without documents."""
        return self.paths.nothing_found()

    def create(self) -> bool:
        """Make the folder, readable by its owner alone. False if it was there already."""
        return self.paths.make_private()

    @property
    def catalog(self) -> Catalog:
        with self._opening:
            if self._catalog is None:
                self._catalog = Catalog(self.paths)
            return self._catalog

    @property
    def vectors(self) -> VectorIndex:
        with self._opening:
            if self._vectors is None:
                self._vectors = ChromaIndex(self.paths)
            return self._vectors

    @property
    def source(self) -> DocumentsSource:
        """Documents as a source, made with the first question: what it imports is not needed by everything else."""
        if self._source is None:
            from research.sources.documents import DocumentsSource

            made = DocumentsSource(self.vectors, self.settings, self._encoder)
            with self._opening:
                self._source = self._source or made
        return self._source

    def refresh(self) -> None:
        """Let go of what was read before, so that the next question sees the index as it is now."""
        with self._opening:
            if self._vectors is not None:
                self._vectors.refresh()

    def close(self, *, collections: bool = True) -> None:
        """Without `collections` they stay open: to take large ones apart takes long, and an ending process need not."""
        with self._opening:
            if self._catalog is not None:
                self._catalog.close()
            self._catalog = None
            if collections and self._vectors is not None:
                self._vectors.close()
                self._vectors = self._source = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> bool:
        """Make ready for a question: raise NothingFoundError if there is nothing to search; if nobody else is writing,
        analyse pages again that other rules have read, and publish what the collections lack. True if the latter was
        done; without it a question compares the missing vectors one by one."""
        with self.catalog.snapshot() as reader:
            if totals(reader).pages == 0:
                raise self.nothing_found()
            if is_outdated(reader):
                from research.store.fulltext.rebuild import update_if_outdated

                update_if_outdated(self.catalog)
            return self.vectors.sync_if_stale(reader)

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
        from research.context.pipeline import Budget, build
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
                asked = context.question.searching(context.searched)
                items = self.source.highlight(reader, asked, context.fitted.items)
                coverage = replace(context.coverage, notes=list(dict.fromkeys(asked.notes)))
                context = replace(context, fitted=replace(context.fitted, items=items), coverage=coverage)
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
        coverage = replace(found.coverage or Coverage(), notes=list(dict.fromkeys(asked.notes)))
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
            info = select_one(reader, document)
            stored = get_page(reader, info.doc_id, page) if 0 < page <= info.num_pages else None
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
            return select_documents(reader, names) if names else all_documents(reader)

    def markdown(self, doc_id: str) -> str | None:
        """A document's whole markdown, pages joined by form feeds; None if it is unknown."""
        with self.catalog.snapshot() as reader:
            pages = document_markdown(reader, doc_id)
        return "\f".join(text for _, text in pages) if pages else None

    def tag(self, document: str, *tags: str) -> None:
        """Give a document tags. A short write: accepted within a second, also while an ingest runs, or BusyError."""
        from research.store.catalog.tags import add_tags

        add_tags(self.catalog, select_one(self.catalog, document).doc_id, tags)

    def untag(self, document: str, *tags: str) -> None:
        """Take tags away; those it has not are no fault."""
        from research.store.catalog.tags import remove_tags

        remove_tags(self.catalog, select_one(self.catalog, document).doc_id, tags)

    def tags(self, document: str) -> list[str]:
        """A document's tags, in alphabetical order."""
        from research.store.catalog.tags import tags_of

        with self.catalog.snapshot() as reader:
            return tags_of(reader, select_one(reader, document).doc_id)

    def remove(self, *names: str, wait: float = 0.0) -> Removal:
        """Take the documents out that these names, patterns or ids mean. Their files are never touched."""
        from research.store.upkeep.removal import plan_removal, remove

        return remove(self.paths, plan_removal(self.paths, names).documents, wait=wait)

    def plan_removal(self, *names: str) -> Removal:
        """What `remove` would take."""
        from research.store.upkeep.removal import plan_removal

        return plan_removal(self.paths, names)

    def status(self) -> Status:
        """What is in the index and how it stands; also of one that does not exist."""
        from research.store.upkeep.status import status_of

        return status_of(self.paths, self.settings.named_encoders)

    def check(self) -> list[Check]:
        """What is well and what is not, of the installation and of this index, each with its remedy."""
        from research.installation import check_installation
        from research.store.upkeep.checks import check_index

        return [*check_installation(), *check_index(self.paths, self.settings.named_encoders)]

    def repair(self) -> list[Check]:
        """Mend what can be mended: what was wrong, and whether it is well now. Empty: nothing was."""
        from research.store.upkeep.repair import repair

        return repair(self.paths)

    def reindex(self, *, wait: float = 0.0) -> Reindexed:
        """Build full text and collections anew from the catalog. Nothing is read or embedded again."""
        from research.store.upkeep.reindex import reindex

        return reindex(self.paths, wait=wait)

    def backup(self, file: Path, *, images: bool = True, force: bool = False) -> Backup:
        """Write the index into one file, even while it is in use."""
        from research.store.upkeep.backup import backup

        return backup(self.paths, file, images=images, force=force)

    def restore(self, file: Path, *, force: bool = False, wait: float = 0.0) -> Restored:
        """Bring the index back from a backup."""
        from research.store.upkeep.restore import restore

        return restore(self.paths, file, force=force, wait=wait)

    def _question(self, reader: Reader, text: str, mode: str | None, documents: Sequence[str] | None) -> Question:
        ids = None
        if documents is not None:
            ids = tuple(sorted(info.doc_id for info in select_documents(reader, documents)))
        return Question(text, mode=mode or self.settings.mode, documents=ids)
