"""Builds one package: retrievals side by side, one score, one decision about all candidates, then the budget.

The owner without a policy reads everything, and a decision says so all the same: every package has one, and an entry of
the audit. For anybody else the retrievals have read nothing that is denied.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from research.context import CitedItems, Fitted, fit_items, least_scores, notes_on
from research.filters import read_time
from research.governance import (
    AllowAll,
    MemoryAccessDecision,
    Principal,
    Resource,
    Ruling,
    record_access,
    resources_of,
)
from research.models import REDACTED, REFERENCE_ONLY, Item, page_link
from research.packages import ranking, retrieval
from research.packages.ranking import Candidate
from research.packages.request import (
    ContextBuildRequest,
    ContextPackage,
    ContextSource,
    Excluded,
    PackageCoverage,
    PinnedOut,
    Projection,
)
from research.packages.retrieval import Answer, answer_of
from research.parallel import Call
from research.settings import FLOOR

if TYPE_CHECKING:
    from research.governance import PolicyAccess
    from research.index import Index
    from research.store import Reader

PURPOSE = "package"
OWNER_RULE = "owner"

Audit = Callable[[MemoryAccessDecision, str], object]


def link_of(item: Item) -> str:
    """A file at its page or line; of what has no file its ref, by which ctx finds it."""
    if item.ref.kind == "page":
        return page_link(str(item.metadata.get("source_path", "")), int(item.ref.part))
    if item.ref.kind == "code":
        return page_link(item.ref.key, 1).removesuffix("#page=1") + f"#L{item.metadata.get('start_line', 1)}"
    return str(item.ref)


MOST_CANDIDATES = 200
"""That one decision is made about, besides those that are pinned."""

_OF_A_PINNED_DOCUMENT = 0.5  # what its pages that fit the intent count at least
_SUMMARY = 0.1  # of a text; less of it is a summary


Fitting = Callable[[Callable[[int], ContextPackage]], ContextPackage] | None
"""Chooses among packages of what was found, which differ in how many tokens they may have; None: as requested."""


@dataclass(frozen=True, slots=True)
class Built:
    """A package, and what its record needs besides it."""

    package: ContextPackage
    decision: MemoryAccessDecision
    projection: Mapping[str, Any] = field(default_factory=dict)  # the graph's, if there is one


def revision_of(access: AllowAll | PolicyAccess) -> str:
    """Return another text whenever the policy changes."""
    return OWNER_RULE if isinstance(access, AllowAll) else access.revision


class PackageBuilder:
    """Builds packages of one index, for one principal. Cheap to make."""

    def __init__(self, index: Index, principal: Principal, audit: Audit, now: Callable[[], datetime]) -> None:
        self.index = index
        self.principal = principal
        self._audit = audit
        self._now = now

    def build(self, request: ContextBuildRequest, package_id: str, fitting: Fitting = None) -> Built:
        """Build a package for a request that has its id and trace."""
        with self._timed("package_retrieve"):
            answers = self._retrieve(request)
        with self.index.catalog.snapshot() as reader:
            pinned, loaded = self._pinned(reader, request)
            fused = ranking.fuse([loaded, *(answer.candidates for answer in answers.values())])
            least = least_scores(((each.item.ref.kind, each.likely) for each in fused if not each.named), FLOOR)
            found = [each for each in fused if each.named or each.likely >= least[each.item.ref.kind]]
            with self._timed("package_rank"):
                ranked, outside = self._ranked(reader, request, found)
            with self._timed("package_govern"):
                decision = self._govern(reader, ranked)
            pins = sum(each.pinned for each in ranked)
            allowed = ranked[: max(request.retrieval.limits.sources, pins)]
            items = self._with_passages(reader, request, allowed)
            nothing = reader.masks.nothing
        shown = {str(item.ref): each for each, item in zip(allowed, items, strict=True)}
        graph = answers.get("graph", Answer())

        def within(tokens: int) -> ContextPackage:
            fitted = fit_items(items, tokens, PackageItems(), self.index.counter)
            placed = [shown[str(item.ref)] for item in fitted.items]
            now = self._now()
            return ContextPackage(
                context_package_id=package_id,
                context_build_request_id=request.id or "",
                task_id=request.task_id or "",
                trace_id=request.trace_id or "",
                policy_decision_id=decision.id,
                graph_projection_id=graph.projection,
                intent=request.intent,
                sources=[
                    _source(number, each, item, cost)
                    for number, (each, item, cost) in enumerate(zip(placed, fitted.items, fitted.costs, strict=True), 1)
                ],
                pinned_out=_pinned_out(pinned, {each.ref for each in placed}),
                excluded=Excluded(budget=len(ranked) - len(placed), outside=outside),
                token_budget=request.token_budget,
                tokens_used=fitted.tokens,
                coverage=_coverage(request, answers, fitted, decision, empty=not ranked and not nothing),
                denied=nothing,
                created_at=now.isoformat(),
                expires_at=_expiry(now, request.ttl_seconds, placed).isoformat(),
                content=fitted.text,
            )

        with self._timed("package_fit"):
            package = fitting(within) if fitting else within(request.token_budget)
        return Built(package, decision, graph.told)

    def resources(self, reader: Reader, refs: Sequence[str]) -> Sequence[Resource]:
        """Return what these are to a policy, in their order; by all that is known of them."""
        default = self.index.settings.default_classification
        if not reader.masks.view:
            return resources_of(reader, refs, self.principal, default=default)
        with self.index.unrestricted().catalog.snapshot() as whole:
            return resources_of(whole, refs, self.principal, default=default)

    def _govern(self, reader: Reader, ranked: Sequence[Candidate]) -> MemoryAccessDecision:
        """Note how each may be shown, and return the decision, once it is on record."""
        refs, access, labels = [each.ref for each in ranked], self.index.access, reader.masks.labels
        if isinstance(access, AllowAll):
            decision = MemoryAccessDecision(
                id=uuid.uuid4().hex,
                principal=self.principal,
                action="read",
                rulings=tuple(Ruling(each, "allow", (OWNER_RULE,)) for each in self.resources(reader, refs)),
                policy=OWNER_RULE,
                decided_at=datetime.now(UTC).isoformat(),
                policies=(OWNER_RULE,),
            )
            record_access(self._audit, decision, PURPOSE)
        else:
            decision = access.decided(refs, PURPOSE, audit=self._audit)
        classes = {each.ref: each.resource.classification for each in decision.rulings}
        for each in ranked:
            each.redacted, each.text = each.ref in labels, labels.get(each.ref) != REFERENCE_ONLY
            each.classification = classes[each.ref]
        return decision

    def _retrieve(self, request: ContextBuildRequest) -> dict[str, Answer]:
        """All side by side; the graph after what it begins with."""
        wanted, tenant = request.retrieval.sources, self.principal.tenant
        tasks = retrieval.vector_retrievals(self.index, request, self.principal, self.resources)
        if "metadata" in wanted:
            tasks["metadata"] = partial(retrieval.by_metadata, self.index, request, tenant, self.resources)
        running = {name: self.index.workers.start(task, name) for name, task in tasks.items()}
        last = running.pop("metadata", None)
        answers = {name: self._answer(name, call) for name, call in running.items()}
        if "graph" in wanted:
            found = [each for answer in answers.values() for each in answer.candidates]
            nearby = partial(retrieval.by_graph, self.index, request, tenant, request.pinned, found)
            answers["graph"] = self._answer("graph", self.index.workers.start(nearby, "graph"))
        if last is not None:
            answers["metadata"] = self._answer("metadata", last)
        return answers

    def _answer(self, name: str, call: Call[Answer]) -> Answer:
        return answer_of(name, call.wait(self.index.settings.source_seconds))

    def _pinned(self, reader: Reader, request: ContextBuildRequest) -> tuple[dict[str, list[str]], list[Candidate]]:
        """Return each pinned ref with the refs of today that it stands for, and what they name. Of a document the page
        that fits the intent best has to be there; its others are as good as any that is found."""
        meant = ranking.pinned_refs(self.index, reader, request.pinned, request.intent)
        refs = list(dict.fromkeys(ref for several in meant.values() for ref in several))
        loaded = ranking.load(self.index, reader, refs, self.principal.tenant)
        known = {text: [loaded[ref].ref for ref in several if ref in loaded] for text, several in meant.items()}
        first = {several[0] for several in known.values() if several}
        for each in loaded.values():
            each.pinned = each.ref in first
            each.semantic = max(each.semantic, _OF_A_PINNED_DOCUMENT)
        return known, list(loaded.values())

    def _ranked(
        self, reader: Reader, request: ContextBuildRequest, found: Sequence[Candidate]
    ) -> tuple[list[Candidate], int]:
        """Return the best first, and how many the graph or the metadata brought from outside of the scope."""
        uses = reader.packages.uses(self.principal.tenant, [each.ref for each in found])
        ranked = ranking.rank(found, request.retrieval.weights.over(self.index.settings), uses, self._now())
        pinned = [each for each in ranked if each.pinned]
        rest = ranked[len(pinned) :]
        within = retrieval.within_scope(reader, request.scope, [each.ref for each in rest], self.resources)
        inside = [each for each in rest if each.ref in within]
        return [*pinned, *inside[:MOST_CANDIDATES]], len(rest) - len(inside)

    def _with_passages(self, reader: Reader, request: ContextBuildRequest, allowed: Sequence[Candidate]) -> list[Item]:
        """Return what may be shown, with the passages that fit the intent; what is masked has none that could be
        pointed at."""
        question = self.index.scoped_question(reader, request.intent)
        open_ones = [each.item for each in allowed if each.text and not each.redacted]
        with self._timed("package_passages"):
            found = {str(item.ref): item for item in self.index.with_passages(reader, question, open_ones)}
        return [found.get(each.ref, each.item) for each in allowed]

    def _timed(self, stage: str) -> AbstractContextManager[None]:
        return self.index.recorder.time(stage)


class PackageItems(CitedItems):
    """The renderer of a package: numbered citations, and where the whole is of what was cut."""

    def entry(self, item: Item, number: int) -> str:
        if REFERENCE_ONLY in item.labels:
            return self.header(item, number)
        shown = super().entry(item, number)
        return f"{shown}\n(the whole is {item.ref})" if item.cut and REDACTED not in item.labels else shown


def _source(number: int, candidate: Candidate, item: Item, tokens: int) -> ContextSource:
    return ContextSource(
        citation=number,
        ref=candidate.ref,
        kind=item.ref.kind,
        title=item.title,
        origins=sorted(candidate.origins),
        pinned=candidate.pinned,
        score=candidate.score,
        parts=candidate.parts,
        tokens=tokens,
        projection=_projection(candidate, item),
        classification=candidate.classification,
        link="" if candidate.redacted else link_of(item),
        suspicious=list(item.signals),
    )


def _projection(candidate: Candidate, shown: Item) -> Projection:
    if not candidate.text:
        return "reference"
    if candidate.redacted:
        return "redacted"
    if not shown.cut:
        return "full"
    return "passages" if len(shown.text) >= len(candidate.item.text) * _SUMMARY else "summary"


def _coverage(
    request: ContextBuildRequest,
    answers: Mapping[str, Answer],
    fitted: Fitted,
    decision: MemoryAccessDecision,
    *,
    empty: bool,
) -> PackageCoverage:
    notes = list(dict.fromkeys(note for answer in answers.values() for note in answer.notes))
    notes = notes_on(fitted.items, notes)
    if decision.problem:
        notes.append("the policy cannot be used, and so everything is denied; see: ctx policy check")
    if empty and (request.scope.project is not None or request.scope.module is not None):
        notes.append("nothing of this project and module was found")
    if fitted.dropped and not fitted.items:
        notes.append(f"nothing that was found fits into {request.token_budget} tokens")
    return PackageCoverage(
        reduced=any(answer.status in ("down", "degraded") for answer in answers.values()),
        retrievals=[answer.coverage(name) for name, answer in answers.items()],
        notes=notes,
    )


def _expiry(now: datetime, seconds: int, placed: Sequence[Candidate]) -> datetime:
    """When its time is over, or that of a memory in it, whichever is first."""
    ends = (read_time(each.expires_at) for each in placed)
    return min([now + timedelta(seconds=seconds), *(end for end in ends if end is not None)])


def _pinned_out(pinned: Mapping[str, Sequence[str]], shown: set[str]) -> list[PinnedOut]:
    """Why a pinned ref is not there. Of a document one page is enough."""
    out = []
    for ref, several in pinned.items():
        if not several:
            out.append(PinnedOut(ref=ref, reason="unknown", detail="nothing of yours has this ref"))
        elif not any(each in shown for each in several):
            out.append(PinnedOut(ref=ref, reason="budget", detail="not even a summary of it fits the token budget"))
    return out
