"""Three retrievals side by side: vectors (hybrid search of every type of source), metadata, and the graph.

Each has its time; one that fails, or is late, is named in `coverage`, and the rest answers. The graph begins with what
is pinned and with the best that the search found, so it waits for that, and goes on without it where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from research.errors import CtxError, NothingFoundError, UsageError
from research.models import Question, SourceCoverage
from research.packages.candidates import Candidate
from research.packages.package import RetrievalCoverage
from research.parallel import Outcome
from research.sources.base import Retrieved
from research.store.catalog.pages import totals

if TYPE_CHECKING:
    from research.governance.access import Principal
    from research.index import Index
    from research.packages.metadata import Resources
    from research.packages.request import ContextBuildRequest
    from research.store.catalog.reader import Reader

_DRAWN = 1_000  # of a source, where the scope leaves only some

Status = Literal["ok", "degraded", "down", "off"]


@dataclass(slots=True)
class Answer:
    """What one retrieval gave, best first, and how it went."""

    candidates: list[Candidate] = field(default_factory=list)
    status: Status = "ok"
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    projection: str = ""  # the id of the graph's
    told: Mapping[str, Any] = field(default_factory=dict)  # and what it holds

    def coverage(self, name: str) -> RetrievalCoverage:
        return RetrievalCoverage(name=name, status=self.status, reason=self.reason, found=len(self.candidates))


Retrieve = Callable[[], Answer]


def answer_of(name: str, outcome: Outcome[Answer]) -> Answer:
    """The answer of a retrieval, or what there is to tell of its failure."""
    error = outcome.error
    if error is None:
        return outcome.result()
    if isinstance(error, NothingFoundError):  # a scope or a filter that fits nothing
        return Answer(notes=[f"{name}: {error.message}"])
    if isinstance(error, UsageError):  # a filter that cannot be understood, told with the package
        return Answer(status="down", reason=error.message)
    from research.observe import log_failure

    log_failure("packages", f"the retrieval {name} failed", error)
    # What another error says may quote a document.
    told = error.message if isinstance(error, CtxError) else str(error) if outcome.late else type(error).__name__
    return Answer(status="down", reason=told)


def vector_retrievals(
    index: Index, request: ContextBuildRequest, principal: Principal, resources: Resources
) -> dict[str, Retrieve]:
    """One for each type of source that is wanted and there. What lies outside of the scope is not among those that are
    drawn."""
    from research.packages import metadata  # which brings answers of this kind

    limit, scope = request.retrieval.limits.vector, request.scope
    wanted = scope.wanted_types
    if limit < 1 or "vector" not in request.retrieval.sources:
        return {}

    def search(name: str) -> Answer:
        with index.catalog.snapshot() as reader:
            if name == "documents":
                asked, retrieved = _documents(index, reader, request, resources)
            else:
                drawn = limit if scope.project is None and scope.module is None else _DRAWN
                asked = Question(request.intent, tenant=principal.tenant)
                retrieved = index.source_of(name).retrieve(reader, asked, drawn)
            within = metadata.within_scope(reader, scope, [str(item.ref) for item in retrieved.items], resources)
        index.keep_vectors([retrieved.fresh], principal.tenant)
        items = [item for item in retrieved.items if str(item.ref) in within][:limit]
        status = retrieved.status.status if retrieved.status.status in ("degraded", "down") else "ok"
        found = [
            Candidate(item, {"vector"}, item.score, expires_at=str(item.metadata.get("expires_at", "")))
            for item in items
        ]
        return Answer(found, status, retrieved.status.reason, [*retrieved.notes, *asked.notes])  # type: ignore[arg-type]

    # Documents that are named are documents, and so nothing else is asked.
    names = [name for name in wanted if name == "documents" or not scope.documents]
    return {name: partial(search, name) for name in names}


def _documents(
    index: Index, reader: Reader, request: ContextBuildRequest, resources: Resources
) -> tuple[Question, Retrieved]:
    from research.packages import metadata

    if totals(reader).pages == 0:
        return Question(request.intent), Retrieved([], SourceCoverage("documents", "ok"))
    question = index.scoped_question(reader, request.intent, request.scope.documents)
    within = metadata.documents_within(reader, request.scope, resources)
    if within is not None:
        named = within if question.documents is None else [each for each in within if each in question.documents]
        question = replace(question, documents=tuple(named))
    # A reranker elsewhere hears of nothing that may not be sent for whoever asks.
    question = index.access.asking(question)
    return question, index.source.retrieve(reader, question, request.retrieval.limits.vector)
