"""Searcher: what ContextAssembler asks (seed 002), and the one that asks an open index.

Each method answers for itself and alone, in a thread of its own, from a snapshot of the catalog of its own: one that
hangs keeps nobody waiting. An index without things of a kind has none of them, which is no error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from research.errors import CtxError
from research.models import Item, Question
from research.parallel import Workers
from research.sources.records import (
    CodeResult,
    CommitResult,
    DocumentResult,
    ExperienceResult,
    MemoryResult,
    Results,
    ValueResult,
)
from research.store import totals

if TYPE_CHECKING:
    from research.index import Index
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
            if name == "documents" and totals(reader).pages == 0:
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


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) else ""


def _number(facts: Mapping[str, Any], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) else 0
