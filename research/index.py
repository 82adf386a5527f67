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
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from research.errors import BusyError, CtxError, NothingFoundError, UsageError
from research.models import (
    Coverage,
    DocumentOutline,
    Extent,
    Item,
    PageResult,
    PageView,
    Question,
    ResearchContext,
    SearchResults,
)
from research.rooms import Rooms
from research.settings import Settings, check, confidence_value
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import all_documents
from research.store.catalog.pages import document_markdown, get_page, page_markdown, totals
from research.store.files.paths import IndexPaths
from research.store.fulltext.search import is_outdated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from typing import Any, BinaryIO

    import numpy as np
    from numpy.typing import NDArray

    from research.answer.answering import AnswerWriter, CheckedAnswer
    from research.answer.prompt import Prompt
    from research.context.pipeline import Least
    from research.context.tokens import TokenCounter
    from research.conversation.memory import Memories
    from research.conversation.sessions import Sessions
    from research.conversation.workers import Workers
    from research.encoders.base import TextEncoder
    from research.experiences.experiences import Experiences
    from research.experiences.records import (
        Experience,
        ExperienceResults,
        Imported,
        ImportedLines,
        Rebuilt,
        Value,
        ValueResults,
    )
    from research.experiences.records import Removed as RemovedExperiences
    from research.experiences.values import Values
    from research.filters import Filters
    from research.governance.access import Action, MemoryAccessDecision, Principal
    from research.governance.audit import Audit
    from research.governance.labels import Labels
    from research.governance.ways_out import WaysOut
    from research.graph.neighbourhood import Neighbourhood
    from research.graph.shown import ShownGraph
    from research.graph.update import GraphUpdate
    from research.memories import Forgotten, Memory, NewMemory, Recall
    from research.observe.recorder import Recorder
    from research.packages.package import ContextPackage
    from research.packages.packages import Packages
    from research.packages.request import ContextBuildRequest
    from research.records import CodeTree, DocumentInfo, RepositoryInfo
    from research.reports import Backup, Check, Reindexed, Removal, Restored, Status
    from research.search.items import FoundItems
    from research.search.legs import SearchOutcome
    from research.sessions import AskedTurn, RemovedSession, Session
    from research.sources.assembler import ContextAssembler, Options
    from research.sources.base import Source
    from research.sources.documents import DocumentsSource
    from research.sources.items import ItemsSource
    from research.sources.memories import MemoriesSource
    from research.sources.mix import Mix
    from research.sources.records import CodeResult, FormattedContext, Results
    from research.store.catalog.reader import Reader
    from research.store.client import ChromaClient
    from research.store.vectors.index import VectorIndex

S = TypeVar("S", bound="ItemsSource")


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
        relative_to: str | Path = "",
    ) -> None:
        """`encoder` stands in for the one that filled the index; `recorder` hears of times and counts; `relative_to` is
        the folder that relative paths of documents and folders are looked for in first."""
        self.paths = IndexPaths(Path(folder))
        self.settings = settings or Settings()
        self.principal: Principal | None = None
        self._relative_to = str(relative_to)
        self._rooms = Rooms(self.paths, self.settings, encoder, None if recorder is None else _harmless(recorder))
        self._workers: dict[str, Workers] = {}
        self._renewing = threading.Lock()

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
        index._rooms.take(client.catalog, client.vectors)
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
    def recorder(self) -> Recorder | None:
        return self._rooms.recorder

    @recorder.setter
    def recorder(self, recorder: Recorder | None) -> None:
        self._rooms.recorder = recorder

    @property
    def catalog(self) -> Catalog:
        return self._rooms.catalog

    @property
    def vectors(self) -> VectorIndex:
        return self._rooms.vectors

    @property
    def source(self) -> DocumentsSource:
        """Documents as a source."""
        return self._rooms.documents

    def item_source(self, kind: type[S]) -> S:
        """A source of items, of this class."""
        return self._rooms.items(kind)

    def acting_as(self, principal: Principal) -> Index:
        """The same index as somebody else sees it: what may not be read by them is in nothing that it gives. Both share
        all that is open; whoever opened it closes it."""
        view = copy(self)
        view.principal = principal
        return view

    def store_item_vectors(self, found: FoundItems) -> None:
        """Keep what a question embedded, if nobody else is writing for long: the next one need not."""
        if found.fresh is not None:
            from research.store.catalog.item_writes import write_item_vectors

            with suppress(BusyError):
                write_item_vectors(
                    self.catalog, found.fresh.encoder, found.fresh.numbers, found.fresh.vectors, short=True
                )

    def refresh(self) -> None:
        """Let go of what was read before, so that the next question sees the index as it is now."""
        self._rooms.refresh()

    def close(self, *, collections: bool = True) -> None:
        """Without `collections` they stay open: to take large ones apart takes long, and an ending process need not."""
        self._rooms.close(collections=collections)

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
        filters: Filters | None = None,
        extent: Extent = "fit",
        highlights: bool = False,
        min_score: float | None = None,
        min_confidence: str | float | None = None,
        counter: TokenCounter | None = None,
        session: str | None = None,
        tenant: str = "",
        before: Sequence[str] = (),
        types: Sequence[str] | None = None,
    ) -> ResearchContext:
        """The pages that answer a question: cited, numbered, within the token budget.

        `documents` restricts it to names, paths, patterns, titles or ids, `filters` to what they leave; where that is
        nothing, NothingFoundError names the filter. `extent` is how much of each page is wanted: "fit" begins with the
        passages that fit the question and grows to whole pages while there is room, "passages" shows nothing else,
        "pages" whole pages only. `highlights` also finds the places on the pages. Sources of a lower score than
        `min_score` are left out, and all of them where confidence is below `min_confidence`, a level or 0 to 1.

        With a `session` of a tenant the question may lean on the turns before it ("and in 2024?"), and is kept as the
        next one. `before` are the questions of a conversation that is kept elsewhere, oldest first.

        `types` names the sources: documents, code, commits, memories (of the tenant), experiences, values. Without it
        documents are asked alone; with it whatever fits is cited, by its score, and what is no page is a `SourceItem`.
        Restrictions to documents restrict nothing else, and quotes are of pages alone.
        """
        from research.answer.confidence import confidence_of
        from research.answer.quotes import quotes_from
        from research.context.pipeline import Budget, build
        from research.context.render.cited import CitedPages, research_context

        sources = self.settings.max_sources if max_sources is None else max_sources
        budget = Budget(self.settings.max_tokens if max_tokens is None else max_tokens, sources)
        mix = None if types is None else self._mix(types)
        follows, tenant, ways = "", self._tenant(tenant), self.ways_out(tenant)
        with self._timed("ask"):
            with self.catalog.snapshot() as reader:
                asked = self._question(reader, question, mode, documents, filters)
                if session is not None or before:
                    asked, follows = self._sessions().next_question(reader, asked, session, tenant, before)
                asked = self.sending(reader, asked, ways)
                wanted: Sequence[Source] = [self.source] if mix is None else mix.sources
                passages = partial(self.with_passages, reader, ways, look=highlights)
                context = build(
                    reader,
                    asked if mix is None else replace(asked, tenant=tenant),
                    wanted if ways is None else [ways.source(source, "ask") for source in wanted],
                    limit=max(self.settings.num_results, sources) if num_results is None else num_results,
                    budget=budget,
                    renderer=CitedPages() if mix is None else mix.renderer,
                    counter=counter or self._rooms.counter(),
                    recorder=self.recorder,
                    stages=() if mix is None else mix.stages,
                    passages=passages if mix is None else mix.passages(passages),
                    judge=confidence_of if mix is None else mix.judge,
                    least=self._least(min_score, min_confidence),
                    extent=extent,
                )
            with self._timed("render"):
                rendered = (research_context if mix is None else mix.rendered)(context, budget.max_tokens)
            with self._timed("answer"):
                quotes = quotes_from(context.fitted.items, context.found)
                answered = replace(rendered, quotes=quotes, follows=follows)
                if ways is not None:
                    searched, rewrites = ways.told(question, answered.searched, answered.rewrites)
                    answered = replace(answered, searched=searched, rewrites=rewrites)
            if mix is not None:
                self._keep_vectors(context.fresh, tenant)
            return answered if session is None else self._sessions().keep(answered, asked.session, tenant)

    def writer(self, *, with_pictures: bool = False) -> AnswerWriter:
        """What writes answers from contexts with the model that the settings name, for any number of them.
        `with_pictures` also sends pictures of the first pages. Raises UsageError if they name none."""
        from research.answer.answering import AnswerWriter

        counter = self._rooms.counter()
        return AnswerWriter(
            self.settings, embed=self._embed, counter=counter, with_pictures=with_pictures, recorder=self.recorder
        )

    def answer(
        self, context: ResearchContext, *, on_piece: Callable[[str], object] | None = None, with_pictures: bool = False
    ) -> CheckedAnswer:
        """An answer that a model writes from what `ask` gave, each sentence checked. `on_piece` gets it meanwhile. What
        goes wrong with the model is told in the answer."""
        with self.writer(with_pictures=with_pictures) as writer:
            return self.written_by(writer, context, on_piece)

    def written_by(
        self, writer: AnswerWriter, context: ResearchContext, on_piece: Callable[[str], object] | None = None
    ) -> CheckedAnswer:
        """The same by a writer that is kept. A model elsewhere is sent nothing that the policy does not permit."""
        return writer.write(self._sendable(context), on_piece)

    def keep_answer(self, context: ResearchContext, answer: CheckedAnswer, *, tenant: str = "") -> None:
        """Keep what a model wrote with the turn of the session that it answers; without a session there is none."""
        self._sessions().keep_answer(context, tenant, answer.written.text, answer.written.model)

    def sessions(self, *, tenant: str = "") -> list[Session]:
        """The conversations of a tenant, the one asked last first."""
        return self._sessions().listed(self._tenant(tenant)) if self.exists else []

    def session(self, name: str, *, tenant: str = "") -> list[AskedTurn]:
        """The turns of a conversation, oldest first. Raises NothingFoundError if there is none of this name."""
        from research.conversation.sessions import no_session, session_name

        tenant = self._tenant(tenant)
        found = self._sessions().turns(session_name(name), tenant) if self.exists else []
        if not found:
            raise no_session(name)
        ways = self.ways_out(tenant)
        if ways is None:
            return found
        with self.catalog.snapshot() as reader:
            return ways.turns(reader, found)

    def remove_session(self, name: str, *, tenant: str = "") -> RemovedSession:
        """Forget a conversation: its turns, the memories that were told in it, and what was made from them. Raises
        NothingFoundError if there is nothing of this name."""
        from research.conversation.sessions import no_session, session_name
        from research.sessions import RemovedSession

        session, tenant = session_name(name), self._tenant(tenant)
        if not self.exists:
            raise no_session(session)
        turns = self._sessions().remove(session, tenant)
        forgotten = self._memory().forget(tenant=tenant, session=session)
        if not (turns or forgotten.ids):
            raise no_session(session)
        return RemovedSession(session, turns, forgotten.ids, forgotten.summaries)

    def prompt(self, context: ResearchContext, *, with_pictures: bool = False) -> Prompt:
        """What a model would get for a context, exactly: also where none is named yet. Nothing is sent."""
        from research.answer.answering import prompt_for

        sent = self._sendable(context)
        return prompt_for(sent, self.settings, self._rooms.counter(), with_pictures=with_pictures)

    def search(
        self,
        question: str,
        *,
        num_results: int | None = None,
        mode: str | None = None,
        documents: Sequence[str] | None = None,
        filters: Filters | None = None,
        highlights: bool = False,
        min_score: float | None = None,
        min_confidence: str | float | None = None,
    ) -> SearchResults:
        """Ranked pages, each with the passage that best shows why it was found. Restricted as in `ask`."""
        from research.answer.confidence import confidence_of
        from research.search.snippets import page_snippet

        limit = self.settings.num_results if num_results is None else num_results
        ways = self.ways_out()
        with self._timed("search"), self.catalog.snapshot() as reader:
            asked = self.sending(reader, self._question(reader, question, mode, documents, filters), ways)
            source = self.source if ways is None else ways.source(self.source, "search")
            with self._timed("retrieve"):
                found = source.retrieve(reader, asked, limit)
            coverage = found.coverage or Coverage()
            confidence = confidence_of(found.searched, found.items, coverage)
            wanted = self._least(min_score, min_confidence).of(found.items, confidence)
            asked = asked.searching(found.searched)
            with self._timed("passages"):
                items = self.with_passages(reader, ways, asked, wanted, look=highlights)
        searched, rewrites = found.searched, found.rewrites
        if ways is not None:
            searched, rewrites = ways.told(question, searched, rewrites)
        results = [PageResult.of(item, rank, page_snippet(item, question)) for rank, item in enumerate(items, start=1)]
        coverage = coverage.noting(asked.notes)
        return SearchResults(
            question, results, coverage, found.timings, searched, rewrites, found.answered_by, confidence
        )

    def context(
        self,
        query: str,
        types: Sequence[str],
        *,
        limit: int = 20,
        max_tokens: int = 2000,
        tenant: str = "",
        soft: bool = False,
        same_file: bool = True,
        min_score: float | None = None,
        counter: TokenCounter | None = None,
    ) -> FormattedContext:
        """Context for a question from several sources, as markdown within the token budget: memories (of a tenant),
        code, experiences, values, commits, documents. `limit` items of each are looked at; those below `min_score` are
        left out. `soft`: what is chosen by shares may exceed the budget. `same_file`: of code and a commit of one file,
        the better one is shown. Not to be called where an event loop runs: await `assembler().assemble_context` there.
        """
        import asyncio

        from research.sources.assembler import Options

        least = check("min_score", self.settings.min_score if min_score is None else min_score, "min_score")
        options = Options(soft=soft, same_file=same_file, min_score=least)
        made = self.assembler(tenant=tenant, options=options, counter=counter)
        with self._timed("context"):
            return asyncio.run(made.assemble_context(query, types, limit, max_tokens))

    def premortem(
        self,
        domain: str,
        strategy: str | None = None,
        *,
        limit: int = 10,
        max_tokens: int = 1500,
        soft: bool = False,
        counter: TokenCounter | None = None,
    ) -> FormattedContext:
        """What went wrong before in a domain, and with a strategy. A domain or strategy that there is not raises
        UsageError with those there are."""
        import asyncio

        from research.sources.assembler import Options

        made = self.assembler(options=Options(soft=soft), counter=counter)
        with self._timed("context"):
            return asyncio.run(made.get_premortem_context(domain, strategy, limit, max_tokens))

    def assembler(
        self, *, tenant: str = "", options: Options | None = None, counter: TokenCounter | None = None
    ) -> ContextAssembler:
        """What assembles context of this index, for any number of questions at once (seed 002)."""
        from research.sources.assembler import ContextAssembler
        from research.sources.searcher import IndexSearcher

        if self.exists:
            self.catalog  # noqa: B018  opens it: what is wrong with all of the index is no failure of a source
        searcher = IndexSearcher(self, tenant=self._tenant(tenant), workers=self._workers)
        return ContextAssembler(
            searcher, options=options, counter=counter or self._rooms.counter(), recorder=self.recorder
        )

    def search_code(self, query: str, *, limit: int = 10, language: str | None = None) -> Results[CodeResult]:
        """Functions, classes and methods that fit, by what they do and are called; of one language or of all."""
        from research.sources.code import CodeSource
        from research.sources.records import Results
        from research.sources.searcher import code_result

        if not self.exists:
            return Results()
        source = self.item_source(CodeSource)
        with self.catalog.snapshot() as reader:
            found = source.find(reader, query, limit, where=None if language is None else {"language": language})
            ways = self.ways_out()
            shown = list(found.items) if ways is None else ways.found_items(reader, source, found.items)
        self.store_item_vectors(found)
        return Results((code_result(each, str(source.ref(each))) for each in shown), found.notes)

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
        from research.store.catalog.file_ids import current_ids

        with self.catalog.snapshot() as reader:
            ids = None if doc_ids is None else tuple(current_ids(reader, doc_ids))
            ways = self.ways_out()
            asked = self.sending(reader, Question(question, mode=mode, documents=ids), ways)
            outcome = self.source.engine.run(reader, asked, num_results, everything=everything)
            return outcome if ways is None else ways.outcome(reader, outcome)

    def page(self, document: str, page: int | None = None, *, question: str | None = None) -> PageView:
        """One page as it is stored; with a question also the places on it that match. `document` is a name or an id;
        or a ref, which says which page unless `page` does. A name alone means the first."""
        from research.store.catalog.document_names import page_of_ref

        named = page_of_ref(document) if page is None else page
        with self.catalog.snapshot() as reader:
            return self._view(reader, self._one(reader, document), 1 if named is None else named, question)

    def pages(
        self, document: str, ranges: Sequence[tuple[int, int]] = (), *, question: str | None = None
    ) -> list[PageView]:
        """Several pages, given as first and last of each range, in that order and each once; without ranges all, or the
        one that a ref names. A last page of `filters.LAST_PAGE` is the document's. Raises NothingFoundError if one is
        not there."""
        from research.filters import LAST_PAGE
        from research.store.catalog.document_names import page_of_ref

        if not ranges and (named := page_of_ref(document)) is not None:
            ranges = [(named, named)]
        with self.catalog.snapshot() as reader:
            info = self._one(reader, document)
            wanted: dict[int, None] = {}
            for first, last in ranges or [(1, LAST_PAGE)]:
                end = max(first, info.num_pages) if last == LAST_PAGE else last
                if not 0 < first <= end <= info.num_pages:
                    raise _no_pages(info, first, end)
                wanted.update(dict.fromkeys(range(first, end + 1)))
            return [self._view(reader, info, page, question) for page in wanted]

    def outline(self, document: str) -> DocumentOutline:
        """A document's table of contents: its headings with their pages, or how its pages begin if it has none."""
        from research.outline import document_outline
        from research.store.catalog.pages import page_texts

        with self.catalog.snapshot() as reader:
            info, ways = self._one(reader, document), self.ways_out()
            outline = document_outline(info, page_texts(reader, info.doc_id))
            return outline if ways is None else ways.outline(reader, outline, "outline")

    def file_of(self, document: str) -> str | None:
        """Where a document's file is, at any place it was seen; None if it is at none of them. It shows everything, so
        all of the document has to be readable."""
        from research.store.upkeep.gone_files import file_of

        with self.catalog.snapshot() as reader:
            info, ways = self._one(reader, document), self.ways_out()
            if ways is not None and not ways.is_whole(reader, info, "file"):
                raise ways.not_there(document)
            return file_of(reader, info.doc_id)

    def picture_path(self, document: str, page: int, *, small: bool = False) -> Path:
        """Where a page's picture is, or would be. It shows everything, so the page has to be readable as it is."""
        with self.catalog.snapshot() as reader:
            info, ways = self._one(reader, document), self.ways_out()
            if ways is not None and not ways.is_plain(reader, info, page):
                raise ways.not_there(f"picture of page {page}")
        return Path((self.paths.thumbnail_path if small else self.paths.image_path)(info.doc_id, page))

    def matches(self, text: str, question: str) -> list[tuple[int, int]]:
        """Where in a text the words stand that fit the question: what a view marks."""
        from research.search.snippets import matches

        return matches(text, question)

    def documents(self, *names: str) -> list[DocumentInfo]:
        """All documents, or those that names, paths, patterns, titles or ids mean. A name that means none raises
        NothingFoundError."""
        from research.store.catalog.document_names import select_documents

        with self.catalog.snapshot() as reader:
            ways = self.ways_out()
            if ways is None:
                return select_documents(reader, names, self._relative_to) if names else all_documents(reader)
            if not names:
                return ways.documents(reader, all_documents(reader), "list")
            found = {}
            for name in names:
                chosen = ways.documents(reader, self._meant(reader, name), "list")
                if not chosen:
                    raise ways.not_there(name)
                found.update({info.doc_id: info for info in chosen})
            return list(found.values())

    def repositories(self) -> list[RepositoryInfo]:
        """The repositories whose commits are in the index."""
        from research.sources.commits import repositories_of

        if not self.exists or not self._is_owners:
            return []
        with self.catalog.snapshot() as reader:
            return repositories_of(reader)

    def code_trees(self) -> list[CodeTree]:
        """The folders whose source code is in the index."""
        from research.sources.code import trees_of

        if not self.exists or not self._is_owners:
            return []
        with self.catalog.snapshot() as reader:
            return trees_of(reader)

    def totals(self) -> tuple[int, int]:
        """How many documents and pages there are."""
        with self.catalog.snapshot() as reader:
            found = totals(reader)
        return found.documents, found.pages

    def document(self, doc_id: str) -> DocumentInfo:
        """The document that an id means: today's, its file's lasting one, or one it had before. Names are none."""
        from research.store.catalog.documents import get_documents
        from research.store.catalog.file_ids import current_ids

        with self.catalog.snapshot() as reader:
            found, ways = get_documents(reader, current_ids(reader, [doc_id])), self.ways_out()
            if ways is not None:
                found = ways.documents(reader, found, "document")
                if not found:
                    raise ways.not_there(doc_id)
        if not found:
            raise NothingFoundError(f"no document has the id {doc_id}", hint="see them all with: ctx list")
        return found[0]

    def markdown(self, doc_id: str) -> str | None:
        """A document's whole markdown, pages joined by form feeds; None if it is unknown."""
        from research.store.catalog.file_ids import current_ids

        with self.catalog.snapshot() as reader:
            found, ways = current_ids(reader, [doc_id]), self.ways_out()
            if found and ways is not None:
                pages = ways.markdown(reader, self._views(reader, found[0]))
            else:
                pages = document_markdown(reader, found[0]) if found else []
        return "\f".join(text for _, text in pages) if pages else None

    def tag(self, document: str, *tags: str) -> list[DocumentInfo]:
        """Give a document tags, or all that a pattern means. A short write: accepted within a second, also while an
        ingest runs, or BusyError."""
        from research.store.catalog.tags import add_tags

        chosen = self._one_or_pattern(document)
        add_tags(self.catalog, [info.doc_id for info in chosen], tags)
        return chosen

    def untag(self, document: str, *tags: str) -> list[DocumentInfo]:
        """Take tags away; those it has not are no fault."""
        from research.store.catalog.tags import remove_tags

        chosen = self._one_or_pattern(document)
        remove_tags(self.catalog, [info.doc_id for info in chosen], tags)
        return chosen

    def tags(self, document: str) -> list[str]:
        """A document's tags, in alphabetical order."""
        from research.store.catalog.tags import tags_of

        with self.catalog.snapshot() as reader:
            return tags_of(reader, self._one(reader, document).doc_id)

    def all_tags(self) -> dict[str, list[DocumentInfo]]:
        """Every tag in use and the documents that have it."""
        from research.store.catalog.documents import get_documents
        from research.store.catalog.tags import all_tags

        with self.catalog.snapshot() as reader:
            found, ways = {tag: get_documents(reader, ids) for tag, ids in all_tags(reader).items()}, self.ways_out()
            if ways is None:
                return found
            every = {info.doc_id: info for documents in found.values() for info in documents}
            known = {info.doc_id: info for info in ways.documents(reader, list(every.values()), "tags")}
        seen = {tag: [known[info.doc_id] for info in each if info.doc_id in known] for tag, each in found.items()}
        return {tag: documents for tag, documents in seen.items() if documents}

    def remember(
        self,
        text: str,
        *,
        tenant: str = "",
        type: str = "memory",
        category: str = "",
        importance: float = 0.5,
        tags: Sequence[str] = (),
        namespace: str = "",
        session: str = "",
        persona: str = "",
        speaker: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: str | datetime = "",
        expires_at: str | datetime = "",
        key: str = "",
        id: str = "",
    ) -> Memory:
        """Remember a text. A short write: accepted within a second, also while an ingest runs, or BusyError; durable
        when it returns. Telling the same again, or under the same `key`, tells nothing new."""
        from research.memories import NewMemory

        new = NewMemory(
            text, id, type, category, importance, tuple(tags), namespace, session, persona, speaker, metadata or {},
            created_at, expires_at, key,
        )  # fmt: skip
        [memory] = self._memory().remember([new], self._tenant(tenant))
        return memory

    def remember_batch(
        self, memories: Iterable[NewMemory | Mapping[str, Any] | str], *, tenant: str = ""
    ) -> list[Memory]:
        """Remember several, in order: texts, records, or objects as `ctx remember --import` reads them."""
        from research.conversation.intake import read_memory
        from research.memories import NewMemory

        read = [
            each if isinstance(each, NewMemory) else read_memory({"text": each} if isinstance(each, str) else each)
            for each in memories
        ]
        return self._memory().remember(read, self._tenant(tenant))

    def recall(
        self,
        query: str,
        *,
        tenant: str = "",
        session: str | None = None,
        persona: str | None = None,
        namespace: str | None = None,
        top_k: int = 8,
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
        threshold: float = 0.0,
        near_session: str = "",
        salience: bool = False,
        now: datetime | None = None,
    ) -> Recall:
        """The memories of a tenant that most likely answer, by words and vectors; each with a score that means the same
        as a page's. `session`, `namespace`, `types` and `tags` restrict it, `persona` to that one's and nobody's.
        `near_session` only prefers. With `salience` the best are ordered by score and recency, as of `now`."""
        from research.memories import Within

        tenant, ways = self._tenant(tenant), self.ways_out(tenant)
        recalled = self._memory().recall(
            query,
            tenant=tenant,
            top_k=top_k,
            within=Within(session, persona, namespace, tuple(types), tuple(tags)),
            threshold=threshold,
            near_session=near_session,
            salience=salience,
            now=now,
        )
        if ways is None or not recalled.memories:
            return recalled
        with self.catalog.snapshot() as reader:
            return replace(recalled, memories=ways.recalled(reader, recalled.memories))

    def memory(self, memory_id: str, *, tenant: str = "", as_told: bool = False) -> Memory:
        """One memory by its id. One that is joined to another is found as that, or `as_told`. Raises
        NothingFoundError."""
        tenant, ways = self._tenant(tenant), self.ways_out(tenant)
        found = self._memory().get(memory_id, tenant, as_told=as_told)
        if ways is None:
            return found
        with self.catalog.snapshot() as reader:
            seen = ways.memories(reader, [found])
        if not seen:
            raise ways.not_there(memory_id)
        return seen[0]

    def memories(
        self,
        *,
        tenant: str = "",
        session: str | None = None,
        persona: str | None = None,
        namespace: str | None = None,
        types: Sequence[str] = (),
        tags: Sequence[str] = (),
        limit: int | None = None,
        newest: bool = True,
    ) -> Iterator[Memory]:
        """A tenant's memories, the newest first or last, one by one."""
        from research.memories import Within

        if not self.exists:
            return iter(())
        within = Within(session, persona, namespace, tuple(types), tuple(tags))
        tenant, ways = self._tenant(tenant), self.ways_out(tenant)
        listed = self._memory().listed(tenant, within, limit=limit, newest=newest)
        return listed if ways is None else ways.each_memory(lambda: self.catalog, listed)

    def feedback(self, memory_id: str, helped: bool, *, tenant: str = "", score: float = 0.0) -> Memory:
        """Tell whether a memory helped: it counts a little more, or less, from then on. `score`: what it had."""
        return self._memory().feedback(memory_id, helped, tenant=self._tenant(tenant), score=score)

    def forget(
        self, *memory_ids: str, tenant: str = "", session: str | None = None, everything: bool = False
    ) -> Forgotten:
        """Forget memories by id, those of a session, or all of a tenant, with the summaries made from them. What was
        asked in the session goes with it."""
        tenant = self._tenant(tenant)
        forgotten = self._memory().forget(*memory_ids, tenant=tenant, session=session, everything=everything)
        if session is not None and self.exists:
            self._sessions().remove(session, tenant)
        return forgotten

    def maintain_memories(self, *, tenant: str | None = None, seconds: float = 10.0) -> int:
        """Remove what has expired and embed what has no vector yet, of one tenant or all, for about so long. How many
        still wait."""
        return self._memory().maintain(tenant, seconds=seconds) if self.exists else 0

    def start_experience(
        self,
        goal: str,
        hypothesis: str,
        action: str,
        prediction: str,
        *,
        domain: str = "other",
        strategy: str = "other",
        id: str = "",
        **more: Any,
    ) -> Experience:
        """Begin an experience: what is wanted, what is believed, what is done about it, and what will then happen. With
        an `outcome` and its `outcome_result` it is closed at once. `more` are further fields of `Experience`. A short
        write: accepted within a second, also while an ingest runs, or BusyError; durable when it returns."""
        told = {"goal": goal, "hypothesis": hypothesis, "action": action, "prediction": prediction}
        return self._experience().start({**told, "domain": domain, "strategy": strategy, "id": id, **more})

    def update_experience(self, experience_id: str, **fields: Any) -> Experience:
        """Say more or something else of one that is open. Another hypothesis is another iteration."""
        return self._experience().update(experience_id, fields)

    def close_experience(
        self,
        experience_id: str,
        outcome: str,
        outcome_result: str,
        *,
        surprise: str = "",
        root_cause: str = "",
        lesson: str = "",
        confidence_tier: str = "",
        **more: Any,
    ) -> Experience:
        """Tell the outcome of one that is open: confirmed, falsified or abandoned. From then on it is found. Raises
        UsageError if it is closed already."""
        told = {"surprise": surprise, "root_cause": root_cause, "lesson": lesson, "confidence_tier": confidence_tier}
        return self._experience().close(
            experience_id, {"outcome": outcome, "outcome_result": outcome_result, **told, **more}
        )

    def record_experience(self, **fields: Any) -> Experience:
        """Whatever is told of an experience in one call: a new one, open or closed at once; or, by the `id` of one that
        is open, what changed, or its outcome."""
        return self._experience().record(fields)

    def import_experiences(self, records: Iterable[Mapping[str, Any]]) -> Imported:
        """Take over records as `Experience.to_dict` gives them. The same again changes nothing."""
        return self._experience().put(records)

    def import_experience_lines(self, stream: BinaryIO) -> ImportedLines:
        """The same from JSON Lines. A line that cannot be read costs itself alone."""
        from research.experiences.lines import import_lines, lines_of

        return import_lines(self._experience(), lines_of(stream))

    def experience(self, experience_id: str) -> Experience:
        """By its id, or the beginning of it where that means one alone. Raises NothingFoundError."""
        found, ways = self._experience().get(experience_id), self.ways_out()
        if ways is None:
            return found
        with self.catalog.snapshot() as reader:
            seen = ways.experiences(reader, [found])
        if not seen:
            raise ways.not_there(experience_id)
        return seen[0]

    def experiences(
        self,
        *,
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int | None = None,
    ) -> list[Experience]:
        """Those that a restriction leaves, the newest first; `outcome` may also be "open"."""
        found = self._experience().listed(domain=domain, strategy=strategy, outcome=outcome, limit=limit)
        ways = self.ways_out() if found else None
        if ways is None:
            return found
        with self.catalog.snapshot() as reader:
            return ways.experiences(reader, found)

    def remove_experience(self, *experience_ids: str) -> RemovedExperiences:
        """Remove experiences, from the values that were made of them, too."""
        return self._experience().remove(experience_ids)

    def search_experiences(
        self,
        query: str,
        *,
        axis: str = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int = 10,
    ) -> ExperienceResults:
        """Experiences that fit, on one axis: full, strategy, surprise or root_cause. What there is not raises
        UsageError with the choices."""
        from research.experiences.records import ExperienceResults
        from research.sources.experiences import ExperiencesSource

        choices, source = self._experience().choices, self.item_source(ExperiencesSource)
        if not self.exists:
            where = source.restriction(None, choices, axis=axis, domain=domain, strategy=strategy, outcome=outcome)
            return ExperienceResults(query, str(where["axis"]))
        with self.catalog.snapshot() as reader:
            where = source.restriction(reader, choices, axis=axis, domain=domain, strategy=strategy, outcome=outcome)
            found = source.find(reader, query, limit, where=where)
            results, ways = source.experiences(reader, found), self.ways_out()
            if ways is not None:
                results = ways.found_experiences(reader, results)
        self.store_item_vectors(found)
        return ExperienceResults(query, str(where["axis"]), results, found.searched, found.without_vectors, found.notes)

    def values(self, *, axis: str | None = None) -> list[Value]:
        """What experiences have in common, of an axis or of all; the largest clusters first."""
        from research.experiences.intake import axis_of

        wanted = None if axis is None else axis_of(axis)
        found = self._values().listed(wanted) if self.exists else []
        ways = self.ways_out() if found else None
        if ways is None:
            return found
        with self.catalog.snapshot() as reader:
            return ways.values(reader, found)

    def value(self, value_id: str) -> Value:
        """Raises NothingFoundError."""
        found, ways = self._values().get(value_id), self.ways_out()
        if ways is None:
            return found
        with self.catalog.snapshot() as reader:
            seen = ways.values(reader, [found])
        if not seen:
            raise ways.not_there(value_id)
        return seen[0]

    def rebuild_values(self, *, force: bool = True, seconds: float = 60.0) -> Rebuilt:
        """Look for values anew; without `force` only where the setting `values_after` says that it is due and
        scikit-learn is there. Takes seconds, for thousands of experiences more; experiences may be told meanwhile."""
        from research.experiences.clusters import is_installed
        from research.experiences.records import Rebuilt

        if not force:
            if not self.exists:
                return Rebuilt(False, "there are no experiences")
            if not is_installed() or not self._values().is_due(self.settings.values_after):
                return Rebuilt(False, self._values().why_none())
        self._rooms.create_catalog()
        return self._values().rebuild(seconds=seconds)

    def renew_values(self) -> None:
        """The same in the background, if it is due: for servers, which have no time to wait for it. What goes wrong is
        logged."""

        def renew() -> None:
            from research.observe.log import log_failure

            try:
                self.rebuild_values(force=False)
            except Exception as error:  # noqa: BLE001  nobody waits for it
                log_failure("experiences", "looking for values", error)
            finally:
                self._renewing.release()

        if self._renewing.acquire(blocking=False):  # one at a time
            threading.Thread(target=renew, name="ctx-values", daemon=True).start()

    def search_values(self, query: str, *, axis: str | None = None, limit: int = 10) -> ValueResults:
        """Values that fit, of one axis or of all."""
        from research.experiences.intake import axis_of
        from research.experiences.records import ValueResults
        from research.sources.values import ValuesSource

        where = None if axis is None else {"axis": axis_of(axis)}
        if not self.exists:
            return ValueResults(query)
        source = self.item_source(ValuesSource)
        with self.catalog.snapshot() as reader:
            found, ways = source.find(reader, query, limit, where=where), self.ways_out()
            results = source.values(found)
            if ways is not None:
                results = ways.found_values(reader, results)
        self.store_item_vectors(found)
        return ValueResults(query, results, found.searched, found.notes)

    def embed_experiences(self, *, seconds: float = 10.0) -> int:
        """Make vectors for experiences that have none, for about so long. How many items still wait; a question embeds
        what it can in a second."""
        from research.search.items import FoundItems
        from research.sources.experiences import ExperiencesSource
        from research.store.catalog.items import numbers_without_vectors

        if not self.exists:
            return 0
        source = self.item_source(ExperiencesSource)
        with self.catalog.snapshot() as reader:
            fresh = source.search.embed(reader, seconds)
        if fresh is not None:
            self.store_item_vectors(FoundItems(fresh=fresh))
        with self.catalog.snapshot() as reader:
            return len(numbers_without_vectors(reader, source.kind, self._rooms.own_encoder(reader).name))

    def build_package(self, request: ContextBuildRequest | Mapping[str, Any] | str | bytes) -> ContextPackage:
        """A context package for a task (seed 003): ranked sources of every kind, governed, within a token budget. A
        request is an object as `ctx package schema` has it, or its JSON. Built for whom this index acts."""
        return self._packages().build(request, self._acting())

    def package(self, package_id: str) -> ContextPackage:
        """A package by its id: from the cache, or built anew under the policy of now. Raises NothingFoundError."""
        return self._packages().get(package_id, self._acting())

    def packages(self, *, limit: int = 100) -> list[ContextPackage]:
        """Records of packages, the one built last first; without their text."""
        return self._packages().listed(self._acting(), limit=limit)

    def rebuild_package(self, package_id: str) -> ContextPackage:
        """Built anew from its request, under the same id."""
        return self._packages().rebuild(package_id, self._acting())

    def package_feedback(self, package_id: str, *refs: str, useful: bool = True) -> list[str]:
        """Tell whether sources of a package were of use, all of them if none is named."""
        return self._packages().feedback(package_id, refs, self._acting(), useful=useful)

    @property
    def memory_source(self) -> MemoriesSource:
        """Memories as a source."""
        return self._rooms.memory_source()

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens as the settings say."""
        return self._rooms.counter()

    def scoped_question(
        self, reader: Reader, text: str, documents: Sequence[str] = (), filters: Filters | None = None
    ) -> Question:
        """A question to documents, those that names or filters leave. Raises NothingFoundError where that is none."""
        return self._question(reader, text, None, documents or None, filters)

    def neighbourhood(
        self,
        *refs: str,
        hops: int = 1,
        kinds: Sequence[str] | None = None,
        limit: int = 200,
        tenant: str = "",
        seconds: float = 5.0,
    ) -> Neighbourhood:
        """What is near to these refs in the graph. What it lacks is brought into it first, for about so long and if
        nobody else is writing; `complete` tells whether that was all."""
        from research.graph.neighbourhood import neighbourhood

        complete = self.graph_update(seconds=seconds).complete
        with self.catalog.snapshot() as reader:
            tenant, ways = self._tenant(tenant), self.ways_out(tenant)
            found = neighbourhood(reader, refs, hops=hops, kinds=kinds, limit=limit, tenant=tenant)
            if ways is not None:
                found = ways.neighbours(reader, found)
        return replace(found, complete=complete)

    def graph(
        self,
        *things: str,
        hops: int = 1,
        kinds: Sequence[str] | None = None,
        limit: int = 200,
        tenant: str = "",
    ) -> ShownGraph:
        """The same with titles, for people. `things` are refs, ends of refs of code, or names of documents. Raises
        NothingFoundError for one that is not there."""
        from research.graph.shown import shown_graph, started_from

        self.graph_update(seconds=5.0)
        with self.catalog.snapshot() as reader:
            refs = [started_from(reader, thing, partial(self._one, reader)) for thing in things]
        tenant, ways = self._tenant(tenant), self.ways_out(tenant)
        found = self.neighbourhood(*refs, hops=hops, kinds=kinds, limit=limit, tenant=tenant)
        if ways is not None and not {node.ref for node in found.nodes if node.hop == 0}:
            raise ways.not_there(things[0])
        with self.catalog.snapshot() as reader:
            shown = shown_graph(reader, refs, found, tenant)
            return shown if ways is None else ways.graph(reader, shown)

    def graph_update(self, *, seconds: float | None = None) -> GraphUpdate:
        """Bring the graph up to what is in the index, for about so long."""
        from research.graph.update import GraphUpdate, is_behind, update_graph

        if not is_behind(self.catalog):
            return GraphUpdate()
        return update_graph(self.catalog, seconds=seconds)

    def labels(self) -> Labels:
        """What things are to a policy: classification, status, module, project; given, taken away, listed, proposed."""
        from research.governance.labels import Labels

        return Labels(
            lambda: self.catalog,
            exists=lambda: self.exists,
            create=self._rooms.create_catalog,
            relative_to=self._relative_to,
        )

    def try_policy(
        self, principal: Principal, refs: Sequence[str], *, action: Action = "read", policy: str = ""
    ) -> MemoryAccessDecision:
        """What the policy decides about these, for anybody. Nothing is given out or recorded. `policy` is a file or
        folder in place of that of the settings."""
        from research.governance.gate import Gate
        from research.governance.policy import MemoryAccessPolicy

        found = MemoryAccessPolicy(policy or self.settings.policy, index=self.paths.root)
        with self.catalog.snapshot() as reader:
            return Gate(principal, found, self.settings).decide(reader, refs, action=action)

    def remove(self, *names: str, wait: float = 0.0) -> Removal:
        """Take the documents out that these names, paths, patterns or ids mean. Their files are never touched."""
        from research.store.upkeep.removal import plan_removal, remove

        return remove(self.paths, plan_removal(self.paths, names, self._relative_to).documents, wait=wait)

    def plan_removal(self, *names: str) -> Removal:
        """What `remove` would take."""
        from research.store.upkeep.removal import plan_removal

        return plan_removal(self.paths, names, self._relative_to)

    def status(self) -> Status:
        """What is in the index and how it stands; also of one that does not exist."""
        from research.model_checks import contacts
        from research.store.upkeep.status import status_of

        status = status_of(self.paths, self.settings.named_encoders)
        return replace(status, contacts=contacts(self.settings, status))

    def check(self) -> list[Check]:
        """What is well and what is not, of the installation and of this index, each with its remedy."""
        from research.installation import check_installation
        from research.model_checks import check_models
        from research.store.upkeep.checks import check_index

        own = check_index(self.paths, self.settings.named_encoders, self.settings.request_timeout)
        governed = [*self._check_audit(), *self._check_policy(own)]
        return [*check_installation(), *own, *governed, *check_models(self.settings, own)]

    def audit(self) -> Audit:
        """Who was shown what, by which decision."""
        return self._rooms.audit()

    def _check_audit(self) -> list[Check]:
        from research.governance.audit_verify import check_audit

        return check_audit(self.audit) if self.exists else []

    def _check_policy(self, own: Sequence[Check]) -> list[Check]:
        from research.governance.policy_check import check_policy

        sound = self.exists and all(check.severity != "error" for check in own)
        with self.catalog.snapshot() if sound else nullcontext() as reader:
            return check_policy(self.settings, reader, self.paths.root)

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

    @property
    def _is_owners(self) -> bool:
        return self.principal is None or self.principal.owner

    def _tenant(self, tenant: str) -> str:
        """Whose things are meant: the owner may name anybody's, everybody else has their own."""
        return tenant if self.principal is None or self.principal.owner else self.principal.tenant

    def ways_out(self, tenant: str = "") -> WaysOut | None:
        """What may leave the index, for whoever it acts for; None: all of it, to its owner without a policy."""
        return self._rooms.ways_out(self.principal, tenant)

    def sending(self, reader: Reader, question: Question, ways: WaysOut | None) -> Question:
        """The question, which says itself what of the index may be sent to a model elsewhere."""
        return question if ways is None else replace(question, sendable=partial(ways.sendable, reader))

    def _sendable(self, context: ResearchContext) -> ResearchContext:
        """A context as the model that the settings name may get it."""
        from research.answer.model.local import LOCAL

        ways = None if self.settings.model == LOCAL else self.ways_out()
        if ways is None:
            return context
        from research.governance.ways_out import without_unsendable

        with self.catalog.snapshot() as reader:
            return without_unsendable(context, ways.sendable(reader, [source.ref for source in context.sources]))

    def with_passages(
        self, reader: Reader, ways: WaysOut | None, question: Question, items: Sequence[Item], *, look: bool = False
    ) -> list[Item]:
        """Pages with the passages that fit a question; of those that may not be read as they are nothing is read."""
        find = partial(self.source.with_passages, reader, question, look=look)
        return find(items) if ways is None else ways.with_passages(find, reader, items)

    def _timed(self, stage: str) -> AbstractContextManager[None]:
        return self.recorder.time(stage) if self.recorder else nullcontext()

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """By the index's own encoder; not by one at an address, which would hear of what a model wrote."""
        from research.addresses import is_encoder_address

        with self.catalog.snapshot() as reader:
            encoder = self.source.encoder(reader)
        if is_encoder_address(encoder.name):
            raise CtxError("the encoder is at an address")
        return encoder.embed(texts)

    def _memory(self) -> Memories:
        """Memories, loaded with the first: no other question needs anything of them."""
        return self._rooms.memories

    def _mix(self, types: Sequence[str]) -> Mix:
        """What a question to several sources is asked with."""
        from research.sources.mix import Mix, sources_of, types_of

        wanted = types_of(types)
        return Mix(wanted, sources_of(wanted, lambda: self.source, self._rooms.memory_source, self.item_source))

    def _keep_vectors(self, made: Sequence[object], tenant: str) -> None:
        """What a question to several sources has embedded: the next one need not."""
        from research.search.items import EmbeddedItems, FoundItems
        from research.sources.memories import Embedded

        for each in made:
            if isinstance(each, EmbeddedItems):
                self.store_item_vectors(FoundItems(fresh=each))
            elif isinstance(each, Embedded):
                self._memory().keep_vectors(tenant, each)

    def _packages(self) -> Packages:
        """Packages, loaded with the first: no question needs anything of them. All views share them."""
        if self._rooms.packages is None:
            from research.packages.wiring import packages_of

            whole = copy(self)
            whole.principal = None  # what a package may hold is decided for each, by whom it is for
            self._rooms.keep_packages(packages_of(whole))
        assert self._rooms.packages is not None
        return self._rooms.packages

    def _acting(self) -> Principal:
        """For whom this index acts: whoever runs it, unless it is another's view."""
        from research.governance.access import owner_principal

        return self.principal or owner_principal()

    def _sessions(self) -> Sessions:
        """Conversations, loaded with the first: no other question needs anything of them."""
        from research.conversation.sessions import Sessions

        return Sessions(lambda: self.catalog)

    def _experience(self) -> Experiences:
        from research.experiences.experiences import Experiences
        from research.experiences.intake import Choices

        choices = Choices.of(self.settings)
        return Experiences(lambda: self.catalog, lambda: self.exists, self._rooms.create_catalog, choices)

    def _values(self) -> Values:
        from research.experiences.values import Values
        from research.sources.experiences import ExperiencesSource

        search = self.item_source(ExperiencesSource).search
        return Values(lambda: self.catalog, search, self._rooms.own_encoder)

    def _least(self, score: float | None, confidence: str | float | None) -> Least:
        """What is wanted at least: as given, or as set."""
        from research.context.pipeline import Least

        wanted = self.settings.min_confidence if confidence is None else confidence
        return Least(
            check("min_score", self.settings.min_score if score is None else score, "min_score"),
            confidence_value(check("min_confidence", wanted, "min_confidence")),
        )

    def _question(
        self, reader: Reader, text: str, mode: str | None, documents: Sequence[str] | None, filters: Filters | None
    ) -> Question:
        asked = Question(text, mode=mode or self.settings.mode)
        if documents is None and not filters:
            return asked
        if documents is not None and not documents:  # a list that came out empty allows nothing
            return replace(asked, documents=())
        from research.filters import Filters
        from research.store.catalog.scope import select

        restrictions = [filters or Filters(), *([] if documents is None else [Filters(documents=tuple(documents))])]
        try:
            scope = select(reader, restrictions, self._relative_to)
        except (NothingFoundError, UsageError):
            if self.ways_out() is None:
                raise
            return replace(asked, documents=())  # what it would say may name what may not be read
        ids = None if scope.documents is None else tuple(sorted(scope.documents))
        return replace(asked, documents=ids, pages=scope.pages)

    def _view(self, reader: Reader, info: DocumentInfo, page: int, question: str | None) -> PageView:
        from research.sources.documents import page_item

        stored = get_page(reader, info.doc_id, page) if 0 < page <= info.num_pages else None
        if stored is None:
            raise _no_pages(info, page, page)
        item, problem, ways = page_item(stored, page_markdown(reader, info.doc_id, page) or ""), "", self.ways_out()
        view = PageView(item, info.num_pages, stored.error)
        if ways is not None:
            seen = ways.view(reader, view, "page")
            if seen is None:
                raise ways.not_there(f"page {page}")
            if seen.item is not item:
                return seen  # what stands on it is no longer where it stood
        if question is not None:
            passages, problem = self.source.places(reader, Question(question), item)
            item = replace(item, passages=tuple(passages))
        return replace(view, item=item, problem=problem)

    def _one(self, reader: Reader, document: str) -> DocumentInfo:
        from research.store.catalog.document_names import ambiguous, select_one

        ways = self.ways_out()
        if ways is None:
            return select_one(reader, document, self._relative_to)
        found = ways.documents(reader, self._meant(reader, document), "document")
        if not found:
            raise ways.not_there(document)
        if len(found) > 1:
            raise ambiguous(document, found)
        return found[0]

    def _meant(self, reader: Reader, name: str) -> list[DocumentInfo]:
        """The documents that a name means; none where it means none, or a part of several ids."""
        from research.store.catalog.document_names import select_documents

        with suppress(NothingFoundError, UsageError):
            return select_documents(reader, [name], self._relative_to)
        return []

    def _views(self, reader: Reader, doc_id: str) -> list[PageView]:
        """All pages of a document, as they are stored."""
        from research.sources.documents import page_item

        texts = document_markdown(reader, doc_id)
        stored = [(get_page(reader, doc_id, page), text) for page, text in texts]
        return [PageView(page_item(page, text), len(texts), page.error) for page, text in stored if page is not None]

    def _one_or_pattern(self, document: str) -> list[DocumentInfo]:
        from research.store.catalog.document_names import ambiguous, is_pattern

        found = self.documents(document)
        if len(found) > 1 and not is_pattern(document, found):
            raise ambiguous(document, found)
        return found


def _harmless(recorder: Recorder) -> Recorder:
    """A recorder that fails breaks no question."""
    from research.observe.recorder import Recorders

    return recorder if isinstance(recorder, Recorders) else Recorders(recorder)


def _no_pages(info: DocumentInfo, first: int, last: int) -> NothingFoundError:
    which = f"page {first}" if first == last else f"pages {first} to {last}"
    return NothingFoundError(f"{info.filename} has no {which}", hint=f"its pages are 1 to {info.num_pages}")
