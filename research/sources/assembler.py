"""ContextAssembler: context from several sources, each within its share of a token budget, as markdown (seed 002).

    question → sources, side by side → adjust → without duplicates → govern → shares of the budget → render

    assembler = ContextAssembler(IndexSearcher(index))
    context = await assembler.assemble_context("retry of failed uploads", ["memories", "code", "commits"])

It goes beside the pipeline of `research.context`, not through it: here a searcher is asked and not a `Source`, each
within a time of its own, and sections share the budget. What both need is taken from there: exact counts, passages that
grow, coverage, stages that govern.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.context.tokens import TokenCounter
from research.errors import ContextAssemblyError, InvalidContextTypeError, UsageError
from research.models import Coverage, SourceCoverage
from research.request import MOST_ITEMS
from research.sources.adjustments import relevance
from research.sources.duplicates import without_duplicates
from research.sources.formats import TITLES, candidate_of
from research.sources.records import CONTEXT_TYPES, Candidate, ContextItem, FormattedContext, Result
from research.sources.sections import Fitted, Groups, Plan, Section, fitted
from research.sources.shares import WEIGHTS

if TYPE_CHECKING:
    from research.observe.recorder import Recorder
    from research.sources.searcher import Searcher

SOURCE_SECONDS = 10.0
"""How long one source may take; what comes later is left out."""

"""Items that one source may be asked for."""

Govern = Callable[[list[Candidate]], list[Candidate]]
"""Leaves out what may not be shown, or changes what is shown of it. It stands before the budget and costs no tokens."""

Search = Callable[[], Awaitable[Sequence[Result]]]


@dataclass(frozen=True, slots=True)
class Options:
    """How contexts are assembled. `soft`: the seed's soft limit, which what is chosen by shares may exceed.
    `same_file`: code and a commit of one file are duplicates. `min_score`: what fits less is left out."""

    soft: bool = False
    same_file: bool = True
    min_score: float = 0.0
    source_seconds: float = SOURCE_SECONDS
    stages: tuple[Govern, ...] = ()


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the searches gave, by name, and how it went."""

    found: Mapping[str, Sequence[Result]] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    seconds: float = 0.0


class ContextAssembler:
    """Assembles context from whatever a searcher finds. May be used for many questions at once."""

    def __init__(
        self,
        searcher: Searcher,
        *,
        options: Options | None = None,
        counter: TokenCounter | None = None,
        recorder: Recorder | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.searcher = searcher
        self.options = options or Options()
        self.counter = counter or TokenCounter()
        self.recorder = recorder
        self._now = now or (lambda: datetime.now(UTC))

    async def assemble_context(
        self, query: str, context_types: Sequence[str], limit: int = 20, max_tokens: int = 2000
    ) -> FormattedContext:
        """Context for a question from these types of sources: memories, code, experiences, values, commits, documents.
        `limit` items of each are looked at. A type that there is not raises InvalidContextTypeError before anything is
        searched; a source that fails or is slow is named in `coverage`, and the rest answers."""
        types = checked_types(context_types)
        check_bounds(limit, max_tokens)
        if not query.strip():
            return FormattedContext(max_tokens=max_tokens)
        gathered = await self.gather({name: self._search(name, query, limit) for name in types})
        sections = [Section(name, TITLES[name], WEIGHTS[name], name) for name in types]
        candidates = {
            name: [self.candidate(name, each, candidate_of(each)) for each in found]
            for name, found in gathered.found.items()
        }
        return self.assemble(gathered, candidates, Plan("Context", sections, _footer), max_tokens)

    async def get_premortem_context(
        self, domain: str, strategy: str | None = None, limit: int = 10, max_tokens: int = 1500
    ) -> FormattedContext:
        """What went wrong before in a domain, and with a strategy: failures, surprises, root causes, and the values
        that were found in them. For the moment a test or a build fails for the first time."""
        from research.sources.premortem import premortem

        check_bounds(limit, max_tokens)
        return await premortem(self, domain, strategy, limit, max_tokens)

    async def gather(self, searches: Mapping[str, Search]) -> Gathered:
        """All searches side by side, each within its time. One that fails or is slow is down, and the rest answers."""
        started = time.perf_counter()
        with self._timed("retrieve"):
            answers = await asyncio.gather(*(self._ask(name, search) for name, search in searches.items()))
        notes = [note for _, found in answers for note in getattr(found, "notes", ())]
        coverage = Coverage(sources=[status for status, _ in answers], notes=list(dict.fromkeys(notes)))
        return Gathered({status.name: found for status, found in answers}, coverage, time.perf_counter() - started)

    def candidate(self, section: str, found: Result, formatted: Candidate) -> Candidate:
        """What was found as it is ranked and shown in a section."""
        item = replace(formatted.item, relevance=relevance(found, self._now()))
        return replace(formatted, item=item, section=section)

    def assemble(self, gathered: Gathered, candidates: Groups, plan: Plan, max_tokens: int) -> FormattedContext:
        """A context from what was gathered."""
        started = time.perf_counter()
        found = [each for section in plan.sections for each in candidates.get(section.name, ())]
        found = [each for each in found if each.item.score >= self.options.min_score]
        kept = without_duplicates(found, same_file=self.options.same_file) if plan.unique else found
        duplicates = len(found) - len(kept)
        with self._timed("govern"):
            for stage in self.options.stages:
                kept = stage(kept)
        kept.sort(key=lambda each: -each.item.relevance)
        groups: Groups = {s.name: [each for each in kept if each.section == s.name] for s in plan.sections}
        with self._timed("fit"):
            fitting = fitted(plan, groups, max_tokens, self.counter, soft=self.options.soft)
            if plan.again is not None:
                groups = plan.again(groups, fitting.shown)
                fitting = fitted(plan, groups, max_tokens, self.counter, soft=self.options.soft)
        context = _formatted(plan, groups, fitting, max_tokens)
        if context.limit_exceeded:
            _warn_of_limit(context)
        timings = {"retrieve": gathered.seconds, "assemble": time.perf_counter() - started}
        timings["total"] = sum(timings.values())
        return replace(context, coverage=gathered.coverage, duplicates=duplicates, timings=timings)

    def _search(self, name: str, query: str, limit: int) -> Search:
        searcher = self.searcher
        searches: Mapping[str, Search] = {
            "memories": lambda: searcher.search_memories(query, limit),
            "code": lambda: searcher.search_code(query, limit),
            "experiences": lambda: searcher.search_experiences(query, axis="full", limit=limit),
            "values": lambda: searcher.search_values(query, limit),
            "commits": lambda: searcher.search_commits(query, limit),
            "documents": lambda: searcher.search_documents(query, limit),
        }
        return searches[name]

    async def _ask(self, name: str, search: Search) -> tuple[SourceCoverage, Sequence[Result]]:
        try:
            found = await asyncio.wait_for(search(), self.options.source_seconds)
        except UsageError:
            raise  # what was asked for is not there to be searched: a domain, an axis
        except TimeoutError as error:
            reason = str(error) or f"it took longer than {self.options.source_seconds:g} s"
            return _down(name, reason, error), ()
        except Exception as error:  # noqa: BLE001  whatever happens in a source, the others answer and coverage tells
            return _down(name, f"{type(error).__name__}: {error}", error), ()
        off, notes = getattr(found, "off", ""), getattr(found, "notes", ())
        status = "off" if off else "degraded" if notes else "ok"
        return SourceCoverage(name, status, off or "; ".join(notes)), found

    def _timed(self, stage: str) -> AbstractContextManager[None]:
        return self.recorder.time(stage) if self.recorder else nullcontext()


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


def check_bounds(limit: int, max_tokens: int) -> None:
    if not 1 <= limit <= MOST_ITEMS:
        raise ContextAssemblyError(f"limit is {limit}", hint=f"it may be 1 to {MOST_ITEMS}")
    if max_tokens < 1:
        raise ContextAssemblyError(f"max_tokens is {max_tokens}", hint="it is the most tokens, 1 or more")


def _down(name: str, reason: str, error: Exception) -> SourceCoverage:
    from research.observe.log import log_failure

    log_failure("context", f"the source {name} failed", error)
    return SourceCoverage(name, "down", reason)


def _footer(shown: Groups) -> str:
    used = [items for items in shown.values() if items]
    return f"{sum(map(len, used))} items from {len(used)} sources"


def _formatted(plan: Plan, groups: Groups, fitting: Fitted, max_tokens: int) -> FormattedContext:
    items: list[ContextItem] = []
    used: dict[str, int] = {}
    left: dict[str, int] = {}
    for section in plan.sections:
        shown = fitting.shown.get(section.name, ())
        items += [_with_signals(each) for each in shown]
        for counts, count in ((used, len(shown)), (left, len(groups[section.name]) - len(shown))):
            if count:
                counts[section.type] = counts.get(section.type, 0) + count
    items.sort(key=lambda item: -item.relevance)
    return FormattedContext(
        fitting.text, items, fitting.tokens, used, fitting.tokens > max_tokens, max_tokens, left_out=left
    )


def _with_signals(candidate: Candidate) -> ContextItem:
    from research.context.injection.detector import signals_of

    item = candidate.item
    return item if item.suspicious else replace(item, suspicious=list(signals_of(candidate.text)))


def _warn_of_limit(context: FormattedContext) -> None:
    from research.observe.log import logger_of

    logger_of("context").warning("the context has %d tokens; %d were wanted", context.token_count, context.max_tokens)
