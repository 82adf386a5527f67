"""A searcher that finds what it was given, and makers of what can be found."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from research.context import TokenCounter
from research.models import Item, Passage, Ref
from research.sources.assembler import ContextAssembler, Options
from research.sources.records import (
    SOURCES,
    CodeResult,
    CommitResult,
    ContextItem,
    DocumentResult,
    ExperienceResult,
    FormattedContext,
    MemoryResult,
    Result,
    ValueResult,
    item_of,
)
from research.sources.sections import TYPES

COUNTER = TokenCounter()
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
ALL = ["memories", "code", "experiences", "values", "commits"]


@dataclass
class Holding:
    """Restricts as an index does, and remembers what it was asked."""

    memories: Sequence[MemoryResult] = ()
    code: Sequence[CodeResult] = ()
    experiences: Sequence[ExperienceResult] = ()
    values: Sequence[ValueResult] = ()
    commits: Sequence[CommitResult] = ()
    documents: Sequence[DocumentResult] = ()
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failing: dict[str, Exception] = field(default_factory=dict)  # by type, or by axis
    slow: dict[str, float] = field(default_factory=dict)

    async def search_memories(self, query: str, limit: int = 20) -> Sequence[MemoryResult]:
        await self._told("memories", query=query, limit=limit)
        return self.memories[:limit]

    async def search_code(self, query: str, limit: int = 20) -> Sequence[CodeResult]:
        await self._told("code", query=query, limit=limit)
        return self.code[:limit]

    async def search_experiences(  # noqa: PLR0917
        self,
        query: str,
        axis: str = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int = 20,
    ) -> Sequence[ExperienceResult]:
        await self._told(
            "experiences", query=query, axis=axis, domain=domain, strategy=strategy, outcome=outcome, limit=limit
        )
        if axis in self.failing:
            raise self.failing[axis]
        wanted = {"axis": axis, "domain": domain, "strategy": strategy, "outcome_status": outcome}
        found = [e for e in self.experiences if all(v in (None, getattr(e, n)) for n, v in wanted.items())]
        return found[:limit]

    async def search_values(self, query: str, limit: int = 20) -> Sequence[ValueResult]:
        await self._told("values", query=query, limit=limit)
        return self.values[:limit]

    async def search_commits(self, query: str, limit: int = 20) -> Sequence[CommitResult]:
        await self._told("commits", query=query, limit=limit)
        return self.commits[:limit]

    async def search_documents(self, query: str, limit: int = 20) -> Sequence[DocumentResult]:
        await self._told("documents", query=query, limit=limit)
        return self.documents[:limit]

    async def _told(self, name: str, **how: Any) -> None:
        self.asked.append((name, how))
        await asyncio.sleep(self.slow.get(name, 0.0))
        if name in self.failing:
            raise self.failing[name]


def assembler(searcher: Holding, *, source_seconds: float = 10.0, **options: Any) -> ContextAssembler:
    how = Options(**options)
    return ContextAssembler(searcher, options=how, counter=COUNTER, now=lambda: NOW, source_seconds=source_seconds)


def assembled(
    searcher: Holding, types: Sequence[str] = ALL, limit: int = 20, max_tokens: int = 2000, **options: Any
) -> FormattedContext:
    return asyncio.run(
        assembler(searcher, **options).assemble_context("retry of uploads", types, limit=limit, max_tokens=max_tokens)
    )


def premortem(
    searcher: Holding, domain: str = "debugging", strategy: str | None = None, **how: Any
) -> FormattedContext:
    return asyncio.run(assembler(searcher).get_premortem_context(domain, strategy, **how))


def written(found: Result) -> ContextItem:
    """What was found as a context shows it, with all the room there is."""
    context = assembled(Holding(**{TYPES[item_of(found).ref.kind]: [found]}), list(SOURCES), max_tokens=20_000)
    [item] = context.items
    return item


def memory(name: str = "m1", content: str = "Use tabs.", score: float = 0.5, **more: Any) -> MemoryResult:
    return MemoryResult(name, content, score, **{"category": "preference", "importance": 0.5, **more})


def code(name: str = "send", score: float = 0.5, **more: Any) -> CodeResult:
    told: dict[str, Any] = {
        "file_path": f"src/{name}.py",
        "start_line": 7,
        "end_line": 19,
        "name": name,
        "signature": f"def {name}(part: bytes) -> None:",
    }
    return CodeResult(f"uploads.{name}", score=score, **{**told, **more})


def experience(name: str = "e1", score: float = 0.5, **more: Any) -> ExperienceResult:
    told: dict[str, Any] = {
        "domain": "debugging",
        "strategy": "read-the-error",
        "goal": "Find why uploads stop",
        "hypothesis": "The timeout is too short",
        "action": "Doubled it",
        "prediction": "Uploads go through",
        "outcome_status": "falsified",
        "outcome_result": "They stop as before",
    }
    return ExperienceResult(name, score=score, **{**told, **more})


def value(name: str = "v1", text: str = "Read the error first.", score: float = 0.5, **more: Any) -> ValueResult:
    return ValueResult(name, text, score, **{"axis": "strategy", "cluster_id": "c1", "cluster_size": 5, **more})


def commit(
    name: str = "0123456789abcdef", message: str = "Retry uploads", score: float = 0.5, **more: Any
) -> CommitResult:
    told = {"author": "Ana", "timestamp": "2025-03-01T09:00:00+00:00", "files_changed": ("src/retry.py",)}
    return CommitResult(name, message, score, **{**told, **more})


def document(text: str, page: int = 3, score: float = 0.5, passage: str = "") -> DocumentResult:
    start = text.find(passage) if passage else 0
    passages = (Passage(passage, 1.0, start=start, end=start + len(passage)),) if passage else ()
    facts: dict[str, str | int | bool] = {
        "filename": "manual.pdf",
        "source_path": "/docs/manual.pdf",
        "page_label": "",
        "section_path": "",
        "parent_heading": "",
    }
    return DocumentResult(Item(Ref("page", "d1", str(page)), "Manual", text, score, passages=passages, metadata=facts))
