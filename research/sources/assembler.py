"""ContextAssembler (seed 002), the Searcher that it asks, the one that asks an open index, and several sources in one
cited answer.

Each method of a Searcher answers for itself and alone, in a thread of its own, from a snapshot of the catalog of its
own: one that hangs keeps nobody waiting. An index without things of a kind has none of them, which is no error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from research.context import (
    CitedItems,
    Context,
    Found,
    Sieve,
    Stage,
    TokenCounter,
    code_block,
    imitates_item,
    research_context,
    sifted,
)
from research.errors import ContextAssemblyError, CtxError, InvalidContextTypeError, UsageError
from research.models import Confidence, Coverage, Item, Question, Quote, ResearchContext, Retrieved, SourceCoverage
from research.observe import NULL_RECORDER
from research.parallel import Workers
from research.request import MOST_ITEMS
from research.settings import FLOOR, SOURCE_SECONDS
from research.sources.records import (
    CONTEXT_TYPES,
    CodeResult,
    CommitResult,
    DocumentResult,
    ExperienceResult,
    FormattedContext,
    MemoryResult,
    Result,
    Results,
    ValueResult,
    item_of,
)
from research.sources.sections import WEIGHTS, FoundContext, Sections, files_of, told_of
from research.units import Structure, Unit

if TYPE_CHECKING:
    from research.context import Source
    from research.index import Index
    from research.models import Item
    from research.observe import Recorder
    from research.search import FoundItem


class Searcher(Protocol):
    """Whatever can be searched for context, best first. What cannot be searched raises; the others answer."""

    async def search_memories(self, query: str, limit: int = 20) -> Sequence[MemoryResult | Item]: ...

    async def search_code(self, query: str, limit: int = 20) -> Sequence[CodeResult | Item]: ...

    async def search_experiences(  # noqa: PLR0917  as the seed calls it
        self,
        query: str,
        axis: str = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int = 20,
    ) -> Sequence[ExperienceResult | Item]: ...

    async def search_values(self, query: str, limit: int = 20) -> Sequence[ValueResult | Item]: ...

    async def search_commits(self, query: str, limit: int = 20) -> Sequence[CommitResult | Item]: ...

    async def search_documents(self, query: str, limit: int = 20) -> Sequence[DocumentResult | Item]: ...


class IndexSearcher:
    """Searches an open index, for one tenant: memories are theirs, and nobody else's. May be used by many at once."""

    def __init__(self, index: Index, *, tenant: str = "", workers: Workers | None = None) -> None:
        """`workers`: those of the index, for all that ask its sources: after some that hang, nobody else is sent
        there."""
        self.index = index
        self.tenant = tenant
        self._workers = workers or Workers("ctx-source")

    async def search_memories(self, query: str, limit: int = 20) -> Results[Item]:
        return await self._run("memories", query, limit)

    async def search_code(self, query: str, limit: int = 20) -> Results[Item]:
        return await self._run("code", query, limit)

    async def search_experiences(  # noqa: PLR0917  as the seed calls it
        self,
        query: str,
        axis: str = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int = 20,
    ) -> Results[Item]:
        restricted = {"axis": axis, "domain": domain, "strategy": strategy, "outcome": outcome}
        return await self._run("experiences", query, limit, restricted)

    async def search_values(self, query: str, limit: int = 20) -> Results[Item]:
        return await self._run("values", query, limit)

    async def search_commits(self, query: str, limit: int = 20) -> Results[Item]:
        return await self._run("commits", query, limit)

    async def search_documents(self, query: str, limit: int = 20) -> Results[Item]:
        return await self._run("documents", query, limit)

    async def _run(
        self, name: str, query: str, limit: int, restricted: Mapping[str, str | None] | None = None
    ) -> Results[Item]:
        return await self._workers.run(self._search, name, query, limit, restricted or {}, name=name)

    def _search(self, name: str, query: str, limit: int, restricted: Mapping[str, str | None]) -> Results[Item]:
        index = self.index
        if not index.exists:
            if restricted:
                index.experiences.where(None, **restricted)
            return Results()
        with index.catalog.snapshot() as reader:
            where = index.experiences.where(reader, **restricted) if restricted else None
            question = Question(query, mode=index.settings.mode, tenant=self.tenant, where=where)
            if name == "documents" and reader.pages.totals().pages == 0:
                return Results()
            question = index.access.asking(question)
            found = index.source_of(name).retrieve(reader, question, limit)
            if found.status.status == "down":
                raise CtxError(found.status.reason)
            items = index.with_passages(reader, question.searching(found.searched), found.items)
        index.access.shown(items, "context", lambda item: str(item.ref))
        index.keep_vectors([found.fresh], self.tenant)
        notes = [found.status.reason] if found.status.status == "degraded" else []
        return Results(items, dict.fromkeys([*notes, *found.notes, *question.notes]))


def code_result(found: FoundItem, ref: str) -> CodeResult:
    stored = found.item
    names = ("qualified_name", "file_path", "unit_type", "name", "language", "signature", "docstring")
    told = {name: str(stored.metadata.get(name) or "") for name in names}
    found_at = (stored.metadata.get(name) for name in ("start_line", "end_line"))
    lines = [line if isinstance(line, int) else 0 for line in found_at]  # a record that is odd costs nothing but that
    return CodeResult(
        qualified_name=told["qualified_name"] or stored.title,
        file_path=told["file_path"] or stored.parent,
        start_line=lines[0],
        end_line=lines[1],
        score=found.score,
        unit_type=told["unit_type"] or "unit",
        name=told["name"],
        language=told["language"],
        signature=told["signature"] or ("" if told["docstring"] else stored.text),
        docstring=told["docstring"],
        path=stored.parent,
        ref=ref,
    )


Search = Callable[[], Awaitable["Sequence[Result | Item]"]]


@dataclass(frozen=True, slots=True)
class Options:
    """How contexts are assembled. `same_file`: code and a commit of one file are duplicates. What is less
    likely to answer than `min_score` is left out, and with `beside_best`, where scores are our own, what is far below
    the best; a premortem asks no question, it goes by domains."""

    same_file: bool = False
    min_score: float = FLOOR
    beside_best: bool = False
    stages: tuple[Stage, ...] = ()


class ContextAssembler:
    """Assembles context from whatever a searcher finds. May be used for many questions at once."""

    def __init__(
        self,
        searcher: Searcher,
        *,
        options: Options | None = None,
        counter: TokenCounter | None = None,
        recorder: Recorder = NULL_RECORDER,
        now: Callable[[], datetime] | None = None,
        source_seconds: float = SOURCE_SECONDS,
    ) -> None:
        """`source_seconds`: how long one source may take; what comes later is left out."""
        self.searcher = searcher
        self.source_seconds = source_seconds
        self.options = options or Options()
        self.counter = counter or TokenCounter()
        self.recorder = recorder
        self.now = now or (lambda: datetime.now(UTC))

    async def assemble_context(
        self, query: str, context_types: Sequence[str], limit: int = 20, max_tokens: int = 2000
    ) -> FormattedContext:
        """Context for a question from these types of sources: memories, code, experiences, values, commits, documents.
        `limit` items of each are looked at. A type that there is not raises InvalidContextTypeError before anything is
        searched; a source that fails or is slow is named in `coverage`, and the rest answers."""
        check_bounds(limit, max_tokens)
        return (await self.find(query, context_types, limit)).within(max_tokens, self.counter)

    async def find(self, query: str, context_types: Sequence[str], limit: int = 20) -> FoundContext:
        """The same before its budget."""
        types, found = checked_types(context_types), Found(Question(query))
        check_bounds(limit)
        if query.strip():
            started = time.perf_counter()
            retrieved = await self.gather({name: self._search(name, query, limit) for name in types})
            found = self.sifted(found.question, retrieved, time.perf_counter() - started)
        sections = Sections("Context", {name: name.capitalize() for name in types}, told_of)
        return FoundContext(found, sections, WEIGHTS, self.now())

    async def get_premortem_context(
        self, domain: str, strategy: str | None = None, limit: int = 10, max_tokens: int = 1500
    ) -> FormattedContext:
        """What went wrong before in a domain, and with a strategy: failures, surprises, root causes, and the values
        that were found in them. For the moment a test or a build fails for the first time."""
        check_bounds(limit, max_tokens)
        return (await self.find_premortem(domain, strategy, limit)).within(max_tokens, self.counter)

    async def find_premortem(self, domain: str, strategy: str | None = None, limit: int = 10) -> FoundContext:
        """The same before its budget."""
        from research.sources.sections import premortem

        check_bounds(limit)
        return await premortem(self, domain, strategy, limit)

    async def gather(self, searches: Mapping[str, Search]) -> list[Retrieved]:
        """All searches side by side, each within its time. One that fails or is slow is down, and the rest answers."""
        with self.recorder.time("retrieve"):
            return list(await asyncio.gather(*(self._ask(name, search) for name, search in searches.items())))

    def sifted(
        self, question: Question, retrieved: Sequence[Retrieved], seconds: float, *, everything: bool = False
    ) -> Found:
        """What remains of what was found; or, where something else than the words decides, `everything`."""
        options = self.options
        sieve = Sieve(options.stages, unique=not everything, same_file=options.same_file)
        if not everything:
            sieve = replace(sieve, floor=options.min_score, beside_best=options.beside_best)
        return sifted(question, retrieved, sieve, recorder=self.recorder, seconds=seconds)

    def _search(self, name: str, query: str, limit: int) -> Search:
        search = getattr(self.searcher, f"search_{name}")
        return partial(search, query, limit=limit, **({"axis": "full"} if name == "experiences" else {}))

    async def _ask(self, name: str, search: Search) -> Retrieved:
        try:
            found = await asyncio.wait_for(search(), self.source_seconds)
            items = [item_of(each) for each in found]
        except UsageError:
            raise  # what was asked for is not there to be searched: a domain, an axis
        except TimeoutError as error:
            return _down(name, str(error) or f"timed out after {self.source_seconds:g} s", error)
        except Exception as error:  # noqa: BLE001  whatever happens in a source, the others answer and coverage tells
            return _down(name, f"{type(error).__name__}: {error}", error)
        off, notes = getattr(found, "off", ""), tuple(getattr(found, "notes", ()))
        status = "off" if off else "degraded" if notes else "ok"
        return Retrieved(items, SourceCoverage(name, status, off or "; ".join(notes)), notes=notes)


def checked_types(context_types: Sequence[str]) -> list[str]:
    """Each once, in the order of their sections. Raises InvalidContextTypeError."""
    given = [context_types] if isinstance(context_types, str) else list(context_types)
    known = ", ".join(CONTEXT_TYPES)
    for name in given:
        if name not in CONTEXT_TYPES:
            raise InvalidContextTypeError(
                f"there is no type of context {str(name)[:80]!r}", hint=f"choose from: {known}"
            )
    if not given:
        raise InvalidContextTypeError("no type of context is named", hint=f"choose from: {known}")
    return [name for name in CONTEXT_TYPES if name in given]


def check_bounds(limit: int, max_tokens: int = 1) -> None:
    if not 1 <= limit <= MOST_ITEMS:
        raise ContextAssemblyError(f"limit is {limit}", hint=f"it may be 1 to {MOST_ITEMS}")
    if max_tokens < 1:
        raise ContextAssemblyError(f"max_tokens is {max_tokens}", hint="it is the most tokens, 1 or more")


def _down(name: str, reason: str, error: Exception) -> Retrieved:
    from research.observe import log_failure

    log_failure("context", f"the source {name} failed", error)
    return Retrieved([], SourceCoverage(name, "down", reason))


_FORGED = "forged_header"  # as the detector calls it
_FILES = 8  # of a commit that are named


@dataclass(slots=True)
class Mix:
    """What the pipeline takes for one question to several sources.

    Confidence is about the first quote: of a page it is as documents judge it, of anything else the calibrated score of
    what is quoted, by how much of what that has of the question stands in the quote.
    """

    types: tuple[str, ...]
    sources: list[Source]
    asked: Question = field(default_factory=lambda: Question(""))  # as it was judged; its notes are doubts about pages
    documents: Confidence = field(default_factory=lambda: Confidence.of(0.0))  # of the pages alone
    sure: Confidence = field(default_factory=lambda: Confidence.of(0.0))  # of all that was found

    @property
    def renderer(self) -> CitedItems:
        return CitedItems()

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (dressed,)

    def judge(self, question: Question, items: Sequence[Item], coverage: Coverage) -> Confidence:
        """How sure the best quote is; where there is none, the best that nobody has forged."""
        from research.answer import confidence_of

        self.asked = replace(question, notes=[])
        self.documents = confidence_of(self.asked, [item for item in items if item.ref.kind == "page"], coverage)
        others = (item.score for item in items if item.ref.kind != "page" and not item.signals)
        self.sure = Confidence.of(max(self.documents.value, *others, 0.0))
        self.sure = self.quoted(items, items)[1]
        return self.sure

    def quoted(self, shown: Sequence[Item], whole: Sequence[Item]) -> tuple[list[Quote], Confidence, list[str]]:
        """The quotes, how sure the first of them is, and doubts, if that is of a page."""
        from research.answer import quotes_from

        quotes = quotes_from(shown, whole, self.asked.wording, self.documents.value)
        other = bool(quotes) and not quotes[0].page
        sure = Confidence.of(quotes[0].score) if other else self.documents if quotes else self.sure
        return quotes, sure, [] if other and sure.level != "none" else self.asked.notes

    def rendered(self, context: Context, max_tokens: int) -> ResearchContext:
        return research_context(context, max_tokens, self.types)


def types_of(given: Sequence[str]) -> tuple[str, ...]:
    """Each once, documents first: what they cannot see is what an answer's coverage tells. Raises
    InvalidContextTypeError."""
    return tuple(sorted(checked_types(given), key=lambda name: name != "documents"))


def dressed(items: list[Item]) -> list[Item]:
    """The items as they are shown: code in a block, a commit with its author and files; what imitates a header of an
    item is marked."""
    return [
        replace(item, signals=(_FORGED, *item.signals))
        if _FORGED not in item.signals and imitates_item(f"{item.text}\n\n{item.title}")
        else item
        for item in map(_dressed, items)
    ]


def _dressed(item: Item) -> Item:
    facts = item.metadata
    if item.ref.kind == "code":
        return replace(item, text=code_block(item.text, str(facts.get("language", ""))))
    if item.ref.kind == "commit":
        files = files_of(item)
        named = ", ".join(files[:_FILES]) + (", …" if len(files) > _FILES else "")
        about = [f"{name}: {told}" for name, told in (("Author", facts.get("author")), ("Files", named)) if told]
        units, text = item.units, "\n\n".join(filter(None, (item.text, "\n".join(about))))
        if units and len(text) > len(item.text):  # what stands below the message is of it, and no answer
            units = [*units, Unit(len(item.text) + 2, len(text), "heading", units[-1].block + 1, units[-1].section)]
        return replace(item, text=text, structure=Structure(text, units=units))
    return item
