"""One package from one request: retrieve, side by side → fuse and rank → govern → fit the budget → assemble.

Governance stands before the budget: what may not be seen costs no tokens and leaves no trace but its count.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from research.context.render.mixed import CitedItems
from research.filters import read_time
from research.governance.access import MemoryAccessDecision, Principal
from research.models import Item
from research.packages import candidates, metadata, near, ranking, retrieval
from research.packages.candidates import Candidate
from research.packages.extracts import words_of
from research.packages.fitting import FittedPackage, Governed, fit_package
from research.packages.governor import Decided, Governor
from research.packages.links import link_of
from research.packages.package import (
    ContextPackage,
    ContextSource,
    Excluded,
    PackageCoverage,
    PinnedOut,
)
from research.packages.ranking import Ranked
from research.packages.request import ContextBuildRequest
from research.packages.retrieval import Answer, Retrievals
from research.store.catalog.packages import uses_of

if TYPE_CHECKING:
    from research.index import Index
    from research.store.catalog.reader import Reader

MOST_CANDIDATES = 200
"""That one decision is made about, besides those that are pinned."""


@dataclass(frozen=True, slots=True)
class Built:
    """A package, and what its record needs besides it."""

    package: ContextPackage
    refs: list[str]  # of everything whose text it holds
    decision: MemoryAccessDecision
    projection: Mapping[str, Any] = field(default_factory=dict)  # the graph's, if there is one


@dataclass(frozen=True, slots=True)
class Ids:
    """What a package is linked to."""

    package: str
    request: str
    trace: str
    projection: str = ""


class PackageBuilder:
    """Builds packages of one index, for one principal. Cheap to make; what hangs is remembered in `retrievals`."""

    def __init__(
        self,
        index: Index,
        principal: Principal,
        governor: Governor,
        *,
        retrievals: Retrievals | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.index = index
        self.principal = principal
        self.governor = governor
        self.retrievals = retrievals or Retrievals()
        self._now = now or (lambda: datetime.now(UTC))

    def build(self, request: ContextBuildRequest, ids: Ids) -> Built:
        with self._timed("package_retrieve"):
            answers = self._retrieve(request, ids)
        with self.index.catalog.snapshot() as reader:
            pinned, loaded = self._pinned(reader, request)
            fused = ranking.fuse([loaded, *(answer.candidates for answer in answers.values())])
            found = [each for each in fused if each.wanted]
            candidates.mark_superseded(reader, found, request.intent)
            with self._timed("package_rank"):
                ranked, outside = self._ranked(reader, request, found)
            with self._timed("package_govern"):
                decided = self.governor.govern(reader, ranked)
            pins = sum(each.ranked.candidate.pinned for each in decided.allowed)
            allowed = decided.allowed[: max(request.retrieval.limits.sources, pins)]
            with self._timed("package_fit"):
                fitted = fit_package(
                    allowed,
                    request.token_budget,
                    CitedItems(),
                    self.index.counter,
                    words_of(request.intent),
                    passages=lambda: self._with_passages(reader, request, allowed),
                )
        with self._timed("package_audit"):
            self.governor.settle()
        package = self._assembled(request, ids, answers, fitted, decided)
        left = len(decided.allowed) - len(fitted.placed)
        package = package.model_copy(
            update={
                "pinned_out": _pinned_out(pinned, decided.denied, fitted),
                "excluded": Excluded(denied=len(decided.denied), budget=left, outside=outside),
            }
        )
        graph = answers.get("graph", Answer())
        return Built(package, [source.ref for source in package.sources], decided.decision, graph.told)

    def _retrieve(self, request: ContextBuildRequest, ids: Ids) -> dict[str, Answer]:
        """All side by side; the graph after what it begins with."""
        run, wanted, tenant = self.retrievals, request.retrieval.sources, self.principal.tenant
        deadline = time.monotonic() + run.seconds
        tasks = retrieval.vector_retrievals(self.index, request, self.principal)
        running = {name: run.start(name, task) for name, task in tasks.items()}
        if "metadata" in wanted:
            by_metadata = partial(metadata.retrieve, self.index, request, tenant, self.governor.resources)
            running["metadata"] = run.start("metadata", by_metadata)
        answers = {name: run.wait(each, deadline) for name, each in running.items() if name != "metadata"}
        if "graph" in wanted:
            found = [each for answer in answers.values() for each in answer.candidates]
            nearby = partial(near.retrieve, self.index, request, tenant, request.pinned, found, name=ids.projection)
            running["graph"] = run.start("graph", nearby)
            answers["graph"] = run.wait(running["graph"], time.monotonic() + run.seconds)
        if "metadata" in wanted:
            answers["metadata"] = run.wait(running["metadata"], deadline)
        return answers

    def _pinned(self, reader: Reader, request: ContextBuildRequest) -> tuple[dict[str, list[str]], list[Candidate]]:
        """Each pinned ref with the refs of today that it stands for, none if it names nothing; and all of them."""
        meant = candidates.pinned_refs(reader, request.pinned)
        refs = list(dict.fromkeys(ref for several in meant.values() for ref in several))
        loaded = candidates.load(self.index, reader, refs, self.principal.tenant)
        for each in loaded.values():
            each.pinned = True
        known = {text: [loaded[ref].ref for ref in several if ref in loaded] for text, several in meant.items()}
        return known, list(loaded.values())

    def _ranked(
        self, reader: Reader, request: ContextBuildRequest, found: Sequence[Candidate]
    ) -> tuple[list[Ranked], int]:
        """Best first, and how many lie outside of the scope's project and module."""
        uses = uses_of(reader, self.principal.tenant, [each.ref for each in found])
        ranked = ranking.rank(found, request.retrieval.weights.over(self.index.settings), uses, self._now())
        pinned = [each for each in ranked if each.candidate.pinned]
        rest = [each for each in ranked if not each.candidate.pinned]
        inside = rest
        if request.scope.project is not None or request.scope.module is not None:
            resources = self.governor.resources(reader, [each.candidate.ref for each in rest])
            fitting = {each.ref for each in resources if metadata.fits(each, request.scope)}
            inside = [each for each in rest if each.candidate.ref in fitting]
        return [*pinned, *inside[:MOST_CANDIDATES]], len(rest) - len(inside)

    def _with_passages(
        self, reader: Reader, request: ContextBuildRequest, allowed: Sequence[Governed]
    ) -> list[Governed]:
        """Pages with the passages that fit the intent; masked ones have none that could be pointed at."""
        places = [
            at
            for at, each in enumerate(allowed)
            if each.text and not each.redacted and each.ranked.candidate.item.ref.kind == "page"
        ]
        if not places:
            return list(allowed)
        question = self.index.scoped_question(reader, request.intent)
        items = [allowed[at].ranked.candidate.item for at in places]
        with self._timed("package_passages"):
            looked_at = self.index.source.with_passages(reader, question, items)
        found = list(allowed)
        for at, item in zip(places, looked_at, strict=True):
            # Where a sentence runs on to the next page, that page was not decided about.
            own = item if self.governor.sees_everything else _on_its_own_page(item)
            found[at] = replace(found[at], ranked=_showing(found[at].ranked, own))
        return found

    def _assembled(
        self,
        request: ContextBuildRequest,
        ids: Ids,
        answers: Mapping[str, Answer],
        fitted: FittedPackage,
        decided: Decided,
    ) -> ContextPackage:
        now = self._now()
        return ContextPackage(
            context_package_id=ids.package,
            context_build_request_id=ids.request,
            task_id=request.task_id or "",
            trace_id=ids.trace,
            policy_decision_id=decided.decision.id,
            graph_projection_id=answers["graph"].projection if "graph" in answers else "",
            intent=request.intent,
            sources=[
                ContextSource(
                    citation=number,
                    ref=placed.governed.ranked.candidate.ref,
                    kind=placed.governed.ranked.candidate.item.ref.kind,
                    title=placed.governed.ranked.candidate.item.title,
                    origins=sorted(placed.governed.ranked.candidate.origins),
                    pinned=placed.governed.ranked.candidate.pinned,
                    score=placed.governed.ranked.score,
                    parts=placed.governed.ranked.parts,
                    tokens=placed.tokens,
                    projection=placed.projection,
                    classification=placed.governed.classification,
                    link="" if placed.governed.redacted else link_of(placed.governed.ranked.candidate.item),
                    suspicious=list(placed.governed.ranked.candidate.item.signals),
                )
                for number, placed in enumerate(fitted.placed, start=1)
            ],
            token_budget=request.token_budget,
            tokens_used=fitted.tokens,
            coverage=_coverage(request, answers, fitted, decided),
            denied=bool(decided.denied) and not decided.allowed,
            created_at=now.isoformat(),
            expires_at=_expiry(now, request.ttl_seconds, fitted).isoformat(),
            content=fitted.content,
        )

    def _timed(self, stage: str) -> AbstractContextManager[None]:
        return self.index.recorder.time(stage) if self.index.recorder else nullcontext()


def _showing(ranked: Ranked, item: Item) -> Ranked:
    return replace(ranked, candidate=replace(ranked.candidate, item=item))


def _on_its_own_page(item: Item) -> Item:
    own = int(item.ref.part)
    passages = tuple(
        each if each.pages in ((), (own,)) else replace(each, text=item.text[each.start : each.end], pages=(own,))
        for each in item.passages
    )
    return replace(item, passages=passages, pages=())


def _coverage(
    request: ContextBuildRequest, answers: Mapping[str, Answer], fitted: FittedPackage, decided: Decided
) -> PackageCoverage:
    notes = list(dict.fromkeys(note for answer in answers.values() for note in answer.notes))
    if decided.decision.problem:
        notes.append("the policy cannot be used, and so everything is denied; see: ctx policy check")
    if fitted.dropped and not fitted.placed:
        notes.append(f"nothing that was found fits into {request.token_budget} tokens")
    return PackageCoverage(
        reduced=any(answer.status in ("down", "degraded") for answer in answers.values()),
        retrievals=[answer.coverage(name) for name, answer in answers.items()],
        notes=notes,
    )


def _expiry(now: datetime, seconds: int, fitted: FittedPackage) -> datetime:
    """When its time is over, or that of a memory in it, whichever is first."""
    ends = [now + timedelta(seconds=seconds)]
    for placed in fitted.placed:
        end = read_time(placed.governed.ranked.candidate.expires_at or "")
        ends += [] if end is None else [end]
    return min(ends)


def _pinned_out(pinned: Mapping[str, Sequence[str]], denied: set[str], fitted: FittedPackage) -> list[PinnedOut]:
    """Why a pinned ref is not there. Of a document one page is enough."""
    shown = {placed.governed.ranked.candidate.ref for placed in fitted.placed}
    out = []
    for ref, several in pinned.items():
        if not several:
            out.append(PinnedOut(ref=ref, reason="unknown", detail="nothing of yours has this ref"))
        elif all(each in denied for each in several):
            out.append(PinnedOut(ref=ref, reason="denied", detail="the policy does not let you see it"))
        elif not any(each in shown for each in several):
            out.append(PinnedOut(ref=ref, reason="budget", detail="not even a summary of it fits the token budget"))
    return out


def new_id() -> str:
    return uuid.uuid4().hex
