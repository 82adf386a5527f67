"""Three retrievals side by side: vectors (hybrid search of every type of source), metadata, and the graph.

Each has its time; one that fails, or is late, is named in `coverage`, and the rest answers. The graph begins with what
is pinned and with the best that the search found, so it waits for that, and goes on without it where it fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from research.errors import CtxError, NothingFoundError, UsageError
from research.packages.candidates import Candidate, item_sources
from research.packages.package import RetrievalCoverage

if TYPE_CHECKING:
    from research.governance.access import Principal
    from research.index import Index
    from research.packages.request import ContextBuildRequest

SECONDS = 10.0
"""How long one retrieval may take."""

_MOST_HANGING = 4  # of one name; then it is down at once, until one of them comes back

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


class Retrievals:
    """Runs retrievals in threads that nobody has to wait for. One for an index; many requests may use it."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._hanging: dict[str, int] = {}
        self._lock = threading.Lock()

    def start(self, name: str, retrieve: Retrieve) -> Running:
        with self._lock:
            hanging = self._hanging.get(name, 0)
        if hanging >= _MOST_HANGING:
            return Running(name, Answer(status="down", reason=f"{hanging} earlier ones still hang"))
        running = Running(name)

        def work() -> None:
            answer = _answered(name, retrieve)
            with self._lock:
                running.finish(answer)
                if running.given_up:
                    self._hanging[name] -= 1

        threading.Thread(target=copy_context().run, args=(work,), name=f"ctx-package-{name}", daemon=True).start()
        return running

    def wait(self, running: Running, deadline: float) -> Answer:
        """Its answer, or that it is down: given up, it goes on alone."""
        running.done.wait(max(0.0, deadline - time.monotonic()))
        with self._lock:
            if running.answer is None:
                if not running.given_up:
                    running.given_up = True
                    self._hanging[running.name] = self._hanging.get(running.name, 0) + 1
                return Answer(status="down", reason=f"it took longer than {self.seconds:g} s")
            return running.answer


class Running:
    def __init__(self, name: str, answer: Answer | None = None) -> None:
        self.name = name
        self.answer = answer
        self.given_up = False
        self.done = threading.Event()
        if answer is not None:
            self.done.set()

    def finish(self, answer: Answer) -> None:
        self.answer = answer
        self.done.set()


def _answered(name: str, retrieve: Retrieve) -> Answer:
    try:
        return retrieve()
    except UsageError as error:  # a filter that cannot be understood, told with the package
        return Answer(status="down", reason=error.message)
    except NothingFoundError as error:  # a scope or a filter that fits nothing
        return Answer(notes=[f"{name}: {error.message}"])
    except Exception as error:  # noqa: BLE001  whatever happens in one, the others answer and coverage tells
        from research.observe.log import log_failure

        log_failure("packages", f"the retrieval {name} failed", error)
        # What another error says may quote a document.
        return Answer(status="down", reason=error.message if isinstance(error, CtxError) else type(error).__name__)


def vector_retrievals(index: Index, request: ContextBuildRequest, principal: Principal) -> dict[str, Retrieve]:
    """One for each type of source that is wanted and there."""
    limit = request.retrieval.limits.vector
    wanted = request.scope.wanted_types
    if limit < 1 or "vector" not in request.retrieval.sources:
        return {}
    found: dict[str, Retrieve] = {}
    if "documents" in wanted:
        found["documents"] = lambda: _documents(index, request, limit)
    if request.scope.documents:  # which name documents, and so nothing else
        return found
    if "memories" in wanted:
        found["memories"] = lambda: _memories(index, request.intent, principal.tenant, limit)
    for source in item_sources(index).values():
        if source.name in wanted:
            found[source.name] = lambda kind=source.kind: _items(index, kind, request.intent, limit)  # type: ignore[misc]
    return found


def _documents(index: Index, request: ContextBuildRequest, limit: int) -> Answer:
    from research.store.catalog.pages import totals

    with index.catalog.snapshot() as reader:
        if totals(reader).pages == 0:
            return Answer()
        question = index.scoped_question(reader, request.intent, request.scope.documents)
        # A reranker elsewhere hears of nothing that may not be sent for whoever asks.
        question = index.access.asking(question)
        found = index.source.retrieve(reader, question, limit)
    items = [Candidate(item, {"vector"}, item.score) for item in found.items]
    status: Mapping[str, Status] = {"ok": "ok", "degraded": "degraded", "down": "down"}
    return Answer(items, status.get(found.status.status, "ok"), found.status.reason)


def _memories(index: Index, intent: str, tenant: str, limit: int) -> Answer:
    from research.sources.memories import memory_item

    with index.catalog.snapshot() as reader:
        found = index.memory_source.find(reader, tenant, intent, limit)
    candidates = [
        Candidate(
            memory_item(memory, ranked),
            {"vector"},
            ranked.score,
            superseded=bool(memory.superseded_by),
            expires_at=memory.expires_at,
        )
        for _, memory, ranked in found.ranked
    ]
    return _noted(candidates, found.notes)


def _items(index: Index, kind: str, intent: str, limit: int) -> Answer:
    source = item_sources(index)[kind]
    with index.catalog.snapshot() as reader:
        found = source.find(reader, intent, limit)
    index.store_item_vectors(found)
    return _noted([Candidate(source.item(each), {"vector"}, each.score) for each in found.items], found.notes)


def _noted(candidates: list[Candidate], notes: Sequence[str]) -> Answer:
    return Answer(candidates, "degraded" if notes else "ok", "; ".join(notes))
