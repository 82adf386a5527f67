"""Index: the one object that the command line, the library and every service use.

    with Index.open(".ctx") as index:
        context = index.ask("What caused the crisis?", max_tokens=4000)
        print(context.formatted_text)

An open index may be used from many threads and for days. Each question reads one snapshot of the catalog; new
generations of the collections and another encoder are followed by themselves. Whatever changes the index takes its
write lock for as long as it takes, and no longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from research.index.view import View
from research.models import (
    Coverage,
    Extent,
    PageResult,
    Question,
    ResearchContext,
    SearchResults,
)
from research.settings import FLOOR, check

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from research.answer import AnswerWriter, CheckedAnswer, Prompt
    from research.context import Found, Source, TokenCounter
    from research.index.admin import Admin, Graph, Packages, Policy
    from research.index.documents import Documents
    from research.index.experiences import Experiences
    from research.index.memories import Memories, Sessions
    from research.request import AskRequest
    from research.search import SearchOutcome
    from research.sources import CodeResult, ContextAssembler, FormattedContext, FoundContext, Mix, Options, Results
    from research.store import Reader

_CONTEXT_ITEMS, _CONTEXT_TOKENS = 20, 2000  # where nobody says more


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """What a question has found, before any budget: `within` gives the context of it as often as one is needed."""

    found: Found
    extent: Extent
    mix: Mix | None  # None: documents alone
    follows: str  # the question that it leans on
    timed: Callable[[str], AbstractContextManager[None]]

    def within(self, max_tokens: int, counter: TokenCounter, max_sources: int | None = None) -> ResearchContext:
        """The cited context that fits, of so many of the sources at most."""
        from research.answer import differing_figures, quotes_from, whole
        from research.context import CitedPages, research_context
        from research.search import part_note

        mix, found = self.mix, replace(self.found, items=self.found.items[:max_sources])
        renderer = CitedPages() if mix is None else mix.renderer
        context = found.within(max_tokens, renderer, counter, extent=self.extent)
        with self.timed("render"):
            rendered = (research_context if mix is None else mix.rendered)(context, max_tokens)
        with self.timed("answer"):
            shown, doubts = context.fitted.items, list[str]()
            if mix is None:
                quotes, sure = quotes_from(shown, found.items), found.confidence
            else:
                quotes, sure, doubts = mix.quoted(shown, found.items)
            sure, open_part = whole(sure, found.question.wording, shown) if sure else (sure, "")
            names = {number: source.filename for number, source in rendered.get_citation_map().items()}
            differ = differing_figures(found.question.text, [quote for quote in quotes if quote.page], names)
            told = [note for note in (*doubts, open_part, part_note(shown), differ) if note]
            coverage = replace(rendered.coverage, notes=[*rendered.coverage.notes, *told])
            return replace(rendered, quotes=quotes, confidence=sure, coverage=coverage, follows=self.follows)


class Index(View):
    """An index in a folder. Nothing of it is opened before it is needed; `Index.open` does so at once.

    Reading is safe from many threads. Methods that change the index take its write lock; `wait` is how many seconds
    another writer is waited for, and BusyError what comes then.
    """

    @property
    def documents(self) -> Documents:
        """Pages, outlines, files, names and tags."""
        from research.index.documents import Documents

        return Documents(self)

    @property
    def memories(self) -> Memories:
        """What it is told and recalls."""
        from research.index.memories import Memories

        return Memories(self)

    @property
    def sessions(self) -> Sessions:
        """Conversations that are kept."""
        from research.index.memories import Sessions

        return Sessions(self)

    @property
    def experiences(self) -> Experiences:
        """What was tried, and the values that many experiences share."""
        from research.index.experiences import Experiences

        return Experiences(self)

    @property
    def packages(self) -> Packages:
        """Context packages for tasks (seed 003)."""
        from research.index.admin import Packages

        return Packages(self)

    @property
    def graph(self) -> Graph:
        """What is near to what."""
        from research.index.admin import Graph

        return Graph(self)

    @property
    def policy(self) -> Policy:
        """Labels, decisions and the record of them."""
        from research.index.admin import Policy

        return Policy(self)

    @property
    def admin(self) -> Admin:
        """Removal, status, checks, repair, backup."""
        from research.index.admin import Admin

        return Admin(self)

    def prepare(self) -> bool:
        """Make ready for a question: raise NothingFoundError if there is nothing to search; if nobody else is writing,
        analyse pages again that other rules have read, and publish what the collections lack. True if the latter was
        done; without it a question compares the missing vectors one by one."""

        with self.catalog.snapshot() as reader:
            if reader.pages.totals().pages == 0:
                raise self.nothing_found()
            if not reader.masks.view:
                return self._brought_up(reader)
        with self.rooms.catalog.snapshot() as reader:
            return self._brought_up(reader)

    def ask(self, question: str | AskRequest, *, counter: TokenCounter | None = None, **fields: Any) -> ResearchContext:
        """The pages that answer a question: cited, numbered, within the token budget.

        `fields` are those of an `AskRequest`. `documents` restricts it to names, paths, patterns, titles or ids,
        `filters` to what they leave; where that is nothing, NothingFoundError names the filter. `extent` is how much of
        each page is wanted: "fit" begins with the passages that fit the question and grows to whole pages while there
        is room, "passages" shows nothing else, "pages" whole pages only. `highlights` also finds the places on the
        pages. Sources of a lower score than `min_score` are left out, and all of them where confidence is below
        `min_confidence`, a level or 0 to 1.

        With a `session` of a tenant the question may lean on the turns before it ("and in 2024?"), and is kept as the
        next one; as that `turn` it is asked again, and nothing is kept. `before` are the questions of a conversation
        that is kept elsewhere, oldest first.

        `types` names the sources: documents, code, commits, memories (of the tenant), experiences, values. Without it
        documents are asked alone; with it whatever fits is cited, by its score, and what is no page is a `SourceItem`.
        Restrictions to documents restrict nothing else. Confidence is about the first quote, whatever that is of.
        """
        wish = _wish(question, fields)
        most = self.settings.max_tokens if wish.max_tokens is None else wish.max_tokens
        with self.timed("ask"):
            found = self._found(wish)
            session = found.found.question.session
            answered = replace(found.within(most, counter or self.counter), session=session, turn=wish.turn)
            if wish.session is None or wish.turn:
                return answered
            return self.session_store().keep(answered, session, self.tenant_of(wish.tenant))

    def find(self, request: AskRequest) -> FoundAnswer:
        """What `ask` would answer with, before its budget. Nothing of it is kept in a session."""
        with self.timed("ask"):
            return self._found(request)

    def _found(self, wish: AskRequest) -> FoundAnswer:
        from research.answer import confidence_of, whole
        from research.context import Sieve, find

        sources = self.settings.max_sources if wish.max_sources is None else wish.max_sources
        mix = None if wish.types is None else self._mix(wish.types)
        several = mix is not None and len(mix.types) > 1
        follows, tenant, access = "", self.tenant_of(wish.tenant), self.access
        with self.catalog.snapshot() as reader:
            asked = self.question_of(reader, wish)
            if wish.session is not None or wish.before:
                asked, follows = self.session_store().next_question(
                    reader, asked, wish.session, tenant, before=wish.before, turn=wish.turn
                )
            asked = access.asking(asked)
            wanted: Sequence[Source] = [self.source] if mix is None else mix.sources
            limit = max(self.settings.num_results, sources) if wish.num_results is None else wish.num_results
            found = find(
                reader,
                asked if mix is None else replace(asked, tenant=tenant),
                wanted,
                limit=limit,
                sieve=Sieve(
                    stages=() if mix is None else mix.stages,
                    passages=partial(self.with_passages, reader, look=wish.highlights),
                    judge=lambda *seen: whole((mix.judge if mix else confidence_of)(*seen), seen[0].wording, seen[1])[
                        0
                    ],
                    thresholds=self.thresholds(wish.min_score, wish.min_confidence),
                    most=sources,
                    floor=FLOOR if several else 0.0,
                    beside_best=several and wish.min_score is None,
                ),
                recorder=self.recorder,
                workers=self.workers,
                source_seconds=None if mix is None else self.settings.source_seconds,
            )
        access.shown([str(item.ref) for item in found.items], "ask")
        if mix is not None:
            self.keep_vectors(found.fresh, tenant)
        return FoundAnswer(found, wish.extent, mix, follows, self.timed)

    def search(self, question: str | AskRequest, **fields: Any) -> SearchResults:
        """Ranked pages, each with the passage that best shows why it was found. Restricted as in `ask`."""
        from research.answer import confidence_of, whole
        from research.search import page_snippet

        wish = _wish(question, fields)
        limit = self.settings.num_results if wish.num_results is None else wish.num_results
        access = self.access
        with self.timed("search"), self.catalog.snapshot() as reader:
            asked = access.asking(self.question_of(reader, wish))
            with self.timed("retrieve"):
                found = self.source.retrieve(reader, asked, limit)
            coverage = found.coverage or Coverage()
            asked = asked.searching(found.searched)
            with self.timed("passages"):
                items = self.source.with_passages(reader, asked, found.items, look=wish.highlights)
            confidence = whole(confidence_of(asked, items, coverage), asked.wording, items)[0]
            items = self.thresholds(wish.min_score, wish.min_confidence).of(items, confidence)
        access.shown(items, "search", lambda item: str(item.ref))
        ranked = enumerate(items, start=1)
        results = [PageResult.of(item, rank, page_snippet(item, wish.question)) for rank, item in ranked]
        coverage = coverage.noting(asked.notes)
        return SearchResults(
            wish.question,
            results,
            coverage,
            found.timings,
            found.searched,
            found.rewrites,
            found.answered_by,
            confidence,
        )

    def context(self, query: str | AskRequest, types: Sequence[str] | None = None, **fields: Any) -> FormattedContext:
        """Context for a question from several sources, as markdown within the token budget: memories (of a tenant),
        code, experiences, values, commits, documents. `fields` are those of an `AskRequest`: `limit` items of each are
        looked at; those below `min_score` are left out. `same_file`: of code and a commit of one file the better one is
        shown. Not to be called where an event loop runs: await `assembler().assemble_context` there.
        """
        import asyncio

        wish = _wish(query, fields if types is None else fields | {"types": types})
        made, wanted, limit = self._gathering(wish)
        most = _CONTEXT_TOKENS if wish.max_tokens is None else wish.max_tokens
        with self.timed("context"):
            return asyncio.run(made.assemble_context(wish.question, wanted, limit, most))

    def find_context(self, request: AskRequest) -> FoundContext:
        """What `context` would tell, before its budget."""
        import asyncio

        made, wanted, limit = self._gathering(request)
        with self.timed("context"):
            return asyncio.run(made.find(request.question, wanted, limit))

    def _gathering(self, wish: AskRequest) -> tuple[ContextAssembler, Sequence[str], int]:
        """What assembles the context that is wished, of which sources, and how many items of each."""
        from research.request import SOURCE_TYPES
        from research.sources import Options

        least = max(FLOOR, self.settings.min_score) if wish.min_score is None else wish.min_score
        least = check("min_score", least, "min_score")
        options = Options(same_file=wish.same_file, min_score=least, beside_best=wish.min_score is None)
        wanted = SOURCE_TYPES if wish.types is None else wish.types
        limit = _CONTEXT_ITEMS if wish.limit is None else wish.limit
        return self.assembler(tenant=wish.tenant, options=options), wanted, limit

    def premortem(
        self, domain: str, strategy: str | None = None, *, limit: int = 10, max_tokens: int = 1500
    ) -> FormattedContext:
        """What went wrong before in a domain, and with a strategy. A domain or strategy that there is not raises
        UsageError with those there are."""
        import asyncio

        with self.timed("context"):
            return asyncio.run(self.assembler().get_premortem_context(domain, strategy, limit, max_tokens))

    def find_premortem(self, domain: str, strategy: str | None = None, *, limit: int = 10) -> FoundContext:
        """The same before its budget."""
        import asyncio

        with self.timed("context"):
            return asyncio.run(self.assembler().find_premortem(domain, strategy, limit))

    def assembler(self, *, tenant: str = "", options: Options | None = None) -> ContextAssembler:
        """What assembles context of this index, for any number of questions at once (seed 002)."""
        from research.sources import ContextAssembler, IndexSearcher, Options

        if self.exists:
            self.catalog  # noqa: B018  opens it: what is wrong with all of the index is no failure of a source
        searcher = IndexSearcher(self, tenant=self.tenant_of(tenant), workers=self.workers)
        return ContextAssembler(
            searcher,
            options=options or Options(beside_best=True),
            counter=self.rooms.counter(),
            recorder=self.recorder,
            source_seconds=self.settings.source_seconds,
        )

    def search_code(self, query: str, *, limit: int = 10, language: str | None = None) -> Results[CodeResult]:
        """Functions, classes and methods that fit, by what they do and are called; of one language or of all."""
        from research.sources import CodeSource, Results, code_result

        if not self.exists:
            return Results()
        source = self.item_source(CodeSource)
        with self.catalog.snapshot() as reader:
            found = source.find(reader, query, limit, where=None if language is None else {"language": language})
        self.store_item_vectors(found)
        shown = self.access.shown(found.items, "context", lambda each: str(source.ref(each)))
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

        with self.catalog.snapshot() as reader:
            ids = None if doc_ids is None else tuple(reader.names.current_ids(doc_ids))
            asked = self.access.asking(Question(question, mode=mode, documents=ids))
            outcome = self.source.engine.run(reader, asked, num_results, everything=everything)
        self.access.shown([*outcome.found, *outcome.candidates], "rank", lambda each: each.page.ref)
        return outcome

    def _brought_up(self, reader: Reader) -> bool:

        if reader.words.is_outdated():
            from research.store import update_if_outdated

            update_if_outdated(self.rooms.catalog)
        return self.vectors.sync_if_stale(reader)

    def _mix(self, types: Sequence[str]) -> Mix:
        """What a question to several sources is asked with."""
        from research.sources import Mix, types_of

        wanted = types_of(types)
        return Mix(wanted, [self.source_of(name) for name in wanted])

    def source_of(self, type_of_context: str) -> Source:
        """The source of this type; nothing of another one is loaded."""
        if type_of_context == "documents":
            return self.source
        if type_of_context == "memories":
            return self.memory_source
        from research.sources import ITEM_SOURCES

        return self.item_source(ITEM_SOURCES[type_of_context])

    def keep_vectors(self, made: Sequence[object], tenant: str) -> None:
        """What a question to several sources has embedded: the next one need not."""
        from research.search import EmbeddedItems, FoundItems
        from research.sources import Embedded

        for each in made:
            if isinstance(each, EmbeddedItems):
                self.store_item_vectors(FoundItems(fresh=each))
            elif isinstance(each, Embedded):
                self.memory_store().keep_vectors(tenant, each)

    def writer(self, *, with_pictures: bool = False) -> AnswerWriter:
        """What writes answers from contexts with the model that the settings name, for any number of them.
        `with_pictures` also sends pictures of the first pages. Raises UsageError if they name none."""
        from research.answer import AnswerWriter

        counter = self.rooms.counter()
        return AnswerWriter(self.settings, counter=counter, with_pictures=with_pictures, recorder=self.recorder)

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
        self.session_store().keep_answer(context, self.tenant_of(tenant), answer.written.text, answer.written.model)

    def prompt(self, context: ResearchContext, *, with_pictures: bool = False) -> Prompt:
        """What a model would get for a context, exactly: also where none is named yet. Nothing is sent."""
        from research.answer import prompt_for

        sent = self._sendable(context)
        return prompt_for(sent, self.settings, self.rooms.counter(), with_pictures=with_pictures)

    def _sendable(self, context: ResearchContext) -> ResearchContext:
        """A context as the model that the settings name may get it."""
        from research.llm import LOCAL

        return context if self.settings.model == LOCAL else self.access.without_unsendable(context)


def _wish(question: str | AskRequest, fields: Mapping[str, Any]) -> AskRequest:
    """The request itself, or what is made of a question and keyword arguments."""
    from research.request import AskRequest

    return replace(question, **fields) if isinstance(question, AskRequest) else AskRequest(question, **fields)
