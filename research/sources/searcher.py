"""Searcher: what ContextAssembler asks (seed 002), and the one that asks an open index.

Each method answers for itself and alone, in a thread of its own, from a snapshot of the catalog of its own: one that
hangs keeps nobody waiting. An index without things of a kind has none of them, which is no error; a kind that this ctx
cannot search is off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from research.conversation.workers import Workers
from research.errors import CtxError
from research.sources.records import (
    CodeResult,
    CommitResult,
    DocumentResult,
    ExperienceResult,
    MemoryResult,
    Results,
    ValueResult,
)

if TYPE_CHECKING:
    from research.experiences.records import FoundExperience, FoundValue
    from research.index import Index
    from research.memories import Recalled
    from research.search.items import FoundItem
    from research.sources.items import ItemsSource

R = TypeVar("R")

_CLASSES = {"code": "CodeSource", "commits": "CommitsSource"}


class Searcher(Protocol):
    """Whatever can be searched for context, best first. What cannot be searched raises; the others answer."""

    async def search_memories(self, query: str, limit: int = 20) -> Sequence[MemoryResult]: ...

    async def search_code(self, query: str, limit: int = 20) -> Sequence[CodeResult]: ...

    async def search_experiences(  # noqa: PLR0917  as the seed calls it
        self,
        query: str,
        axis: str = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int = 20,
    ) -> Sequence[ExperienceResult]: ...

    async def search_values(self, query: str, limit: int = 20) -> Sequence[ValueResult]: ...

    async def search_commits(self, query: str, limit: int = 20) -> Sequence[CommitResult]: ...

    async def search_documents(self, query: str, limit: int = 20) -> Sequence[DocumentResult]: ...


class IndexSearcher:
    """Searches an open index, for one tenant: memories are theirs, and nobody else's. May be used by many at once."""

    def __init__(self, index: Index, *, tenant: str = "", workers: dict[str, Workers] | None = None) -> None:
        """`workers`: the threads of each source, which the searchers of one index share: after some that hang, nobody
        else is sent there."""
        self.index = index
        self.tenant = tenant
        self._workers = {} if workers is None else workers

    async def search_memories(self, query: str, limit: int = 20) -> Results[MemoryResult]:
        return await self._run("memories", self._memories, query, limit)

    async def search_code(self, query: str, limit: int = 20) -> Results[CodeResult]:
        return await self._run("code", self._items, "code", query, limit, code_result)

    async def search_experiences(  # noqa: PLR0917  as the seed calls it
        self,
        query: str,
        axis: str = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int = 20,
    ) -> Results[ExperienceResult]:
        def search() -> Results[ExperienceResult]:
            found = self.index.search_experiences(
                query, axis=axis, domain=domain, strategy=strategy, outcome=outcome, limit=limit
            )
            return Results(map(_experience, found.results), found.notes)

        return await self._run("experiences", search)

    async def search_values(self, query: str, limit: int = 20) -> Results[ValueResult]:
        return await self._run("values", self._values, query, limit)

    async def search_commits(self, query: str, limit: int = 20) -> Results[CommitResult]:
        return await self._run("commits", self._items, "commits", query, limit, _commit)

    async def search_documents(self, query: str, limit: int = 20) -> Results[DocumentResult]:
        return await self._run("documents", self._documents, query, limit)

    async def _run(self, source: str, search: Callable[..., R], *args: Any) -> R:
        workers = self._workers.setdefault(source, Workers(f"ctx-{source}"))
        return await workers.run(search, *args)

    def _memories(self, query: str, limit: int) -> Results[MemoryResult]:
        found = self.index.recall(query, tenant=self.tenant, top_k=limit)
        return Results(map(_memory, found.memories), found.notes)

    def _values(self, query: str, limit: int) -> Results[ValueResult]:
        found = self.index.search_values(query, limit=limit)
        return Results(map(_value, found.results), found.notes)

    def _items(self, name: str, query: str, limit: int, result: Callable[[FoundItem, str], R]) -> Results[R]:
        kind = _source_class(name)
        if kind is None:
            return Results(off=f"this ctx does not search {name}")
        if not self.index.exists:
            return Results()
        source = self.index.item_source(kind)
        with self.index.catalog.snapshot() as reader:
            found = source.find(reader, query, limit)
        self.index.store_item_vectors(found)
        shown = self.index.access.shown(found.items, "context", lambda each: str(source.ref(each)))
        return Results((result(each, str(source.ref(each))) for each in shown), found.notes)

    def _documents(self, query: str, limit: int) -> Results[DocumentResult]:
        from research.models import Question
        from research.store.catalog.pages import totals

        if not self.index.exists:
            return Results()
        with self.index.catalog.snapshot() as reader:
            if totals(reader).pages == 0:
                return Results()
            asked = Question(query, mode=self.index.settings.mode, tenant=self.tenant)
            question = self.index.access.asking(asked)
            found = self.index.source.retrieve(reader, question, limit)
            if found.status.status == "down":
                raise CtxError(found.status.reason)
            asked = question.searching(found.searched)
            items = self.index.source.with_passages(reader, asked, found.items)
        self.index.access.shown(items, "context", lambda item: str(item.ref))
        notes = [found.status.reason] if found.status.status == "degraded" else []
        return Results(map(DocumentResult, items), [*notes, *asked.notes])


def _source_class(name: str) -> type[ItemsSource] | None:
    """The source of this name, loaded with the first question to it; None where there is no such module."""
    module = f"research.sources.{name}"
    try:
        found: type[ItemsSource] = getattr(import_module(module), _CLASSES[name])
    except ModuleNotFoundError as error:
        if error.name == module:
            return None
        raise
    return found


def _memory(found: Recalled) -> MemoryResult:
    memory = found.memory
    return MemoryResult(
        memory.id, memory.text, found.score, memory.category or memory.type, memory.importance, memory.created_at
    )


def code_result(found: FoundItem, ref: str) -> CodeResult:
    stored, facts = found.item, found.item.metadata
    return CodeResult(
        qualified_name=_text(facts, "qualified_name") or stored.title,
        file_path=_text(facts, "file_path") or stored.parent,
        start_line=_number(facts, "start_line"),
        end_line=_number(facts, "end_line"),
        score=found.score,
        unit_type=_text(facts, "unit_type") or "unit",
        name=_text(facts, "name"),
        language=_text(facts, "language"),
        signature=_text(facts, "signature") or ("" if _text(facts, "docstring") else stored.text),
        docstring=_text(facts, "docstring"),
        path=stored.parent,
        ref=ref,
    )


def _commit(found: FoundItem, ref: str) -> CommitResult:
    stored, facts = found.item, found.item.metadata
    files = facts.get("files_changed")
    return CommitResult(
        sha=_text(facts, "sha") or stored.key,
        message=stored.text,
        score=found.score,
        author=_text(facts, "author"),
        timestamp=_text(facts, "timestamp") or stored.created_at,
        files_changed=tuple(str(name) for name in files) if isinstance(files, list) else (),
        insertions=_number(facts, "insertions"),
        deletions=_number(facts, "deletions"),
        repository=stored.parent,
    )


def _experience(found: FoundExperience) -> ExperienceResult:
    told = found.experience
    return ExperienceResult(
        id=told.id,
        domain=told.domain,
        strategy=told.strategy,
        goal=told.goal,
        hypothesis=told.hypothesis,
        action=told.action,
        prediction=told.prediction,
        outcome_status=told.outcome,
        score=found.score,
        outcome_result=told.outcome_result,
        surprise=told.surprise,
        root_cause=told.root_cause,
        lesson=told.lesson,
        confidence_tier=told.confidence_tier,
        iteration_count=told.iteration_count,
        created_at=told.closed_at or told.started_at,
        axis=found.axis,
    )


def _value(found: FoundValue) -> ValueResult:
    told = found.value
    return ValueResult(
        told.id,
        told.text,
        found.score,
        told.axis,
        told.cluster_id,
        told.cluster_size,
        told.similarity_to_centroid,
        told.experience,
    )


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) else ""


def _number(facts: Mapping[str, Any], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) else 0
