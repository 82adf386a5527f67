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

from research.context import CitedItems, Fitted, fit_items
from research.errors import CtxError
from research.filters import read_time
from research.governance import AllowAll, MemoryAccessDecision, Principal, Resource, Ruling, resources_of
from research.models import REDACTED, REFERENCE_ONLY, Item, page_link
from research.packages import ranking, retrieval
from research.packages.ranking import Candidate, Ranked
from research.packages.request import (
    ContextBuildRequest,
    ContextPackage,
    ContextSource,
    Excluded,
    PackageCoverage,
    PinnedOut,
    Projection,
)
from research.packages.retrieval import Answer, Retrieve, answer_of
from research.parallel import Call, Workers
from research.settings import FLOOR
from research.store import uses_of

if TYPE_CHECKING:
    from research.governance import PolicyAccess
    from research.index import Index
    from research.store import Catalog, Reader

PURPOSE = "package"
OWNER_RULE = "owner"

Audit = Callable[[MemoryAccessDecision, str], None]


@dataclass(frozen=True, slots=True)
class Governed:
    """A source as it may be shown. `redacted`: what its text is, is what a redactor left; `text`: there is any."""

    ranked: Ranked
    redacted: bool = False
    text: bool = True
    classification: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """What may be shown, in order, and the decision. `nothing`: whoever asks may see nothing of the index."""

    allowed: list[Governed]
    decision: MemoryAccessDecision
    nothing: bool = False


class Governor:
    """Decides for one principal."""

    def __init__(
        self,
        principal: Principal,
        access: AllowAll | PolicyAccess,
        catalog: Callable[[], Catalog],
        audit: Audit,
        default: str = "Internal",
    ) -> None:
        """`catalog` is all of it; `default`: the classification of what nobody has classified."""
        self.principal = principal
        self._access = access
        self._catalog = catalog
        self._audit = audit
        self._default = default
        self._workers = Workers("ctx-package-audit")
        self._recording: list[Call[None]] = []

    @property
    def revision(self) -> str:
        """Changes whenever the policy does."""
        return OWNER_RULE if isinstance(self._access, AllowAll) else self._access.revision

    def recorded(self, decision: MemoryAccessDecision, purpose: str) -> None:
        """Into the audit, while the package is built; `settle` waits for it."""
        self._recording.append(self._workers.start(lambda: self._audit(decision, purpose)))

    def settle(self) -> None:
        """Nothing may be released before this. Raises if a decision could not be recorded."""
        try:
            for each in self._recording:
                each.wait().result()
        except Exception as error:  # noqa: BLE001  what is not recorded is not given out, whatever the reason
            from research.observe import log_failure

            log_failure("governance", "an access could not be recorded", error)
            told = error.message if isinstance(error, CtxError) else type(error).__name__
            raise CtxError(
                f"access could not be recorded, so nothing is released: {told}", hint="see: ctx audit verify"
            ) from None

    def resources(self, reader: Reader, refs: Sequence[str]) -> Sequence[Resource]:
        """What these are to a policy, in their order; by all that is known of them."""
        if not reader.masks.view:
            return resources_of(reader, refs, self.principal, default=self._default)
        with self._catalog().snapshot() as whole:
            return resources_of(whole, refs, self.principal, default=self._default)

    def govern(self, reader: Reader, ranked: Sequence[Ranked]) -> Decided:
        """Nothing of it may be given out before `settle`."""
        if isinstance(self._access, AllowAll):
            return self._as_owner(reader, ranked)
        refs, labels = [each.candidate.ref for each in ranked], reader.masks.labels
        decision = self._access.decided(refs, PURPOSE, audit=self.recorded)
        classes = {each.ref: each.resource.classification for each in decision.rulings}
        allowed = [
            Governed(
                each,
                redacted=each.candidate.ref in labels,
                text=labels.get(each.candidate.ref) != REFERENCE_ONLY,
                classification=classes[each.candidate.ref],
            )
            for each in ranked
        ]
        return Decided(allowed, decision, reader.masks.nothing)

    def _as_owner(self, reader: Reader, ranked: Sequence[Ranked]) -> Decided:
        resources = self.resources(reader, [each.candidate.ref for each in ranked])
        decision = MemoryAccessDecision(
            id=uuid.uuid4().hex,
            principal=self.principal,
            action="read",
            rulings=tuple(Ruling(each, "allow", (OWNER_RULE,)) for each in resources),
            policy=OWNER_RULE,
            decided_at=datetime.now(UTC).isoformat(),
            policies=(OWNER_RULE,),
        )
        self.recorded(decision, PURPOSE)
        classes = {each.ref: each.classification for each in resources}
        return Decided([Governed(each, classification=classes[each.candidate.ref]) for each in ranked], decision)


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
    """Builds packages of one index, for one principal. Cheap to make."""

    def __init__(
        self,
        index: Index,
        principal: Principal,
        governor: Governor,
        *,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.index = index
        self.principal = principal
        self.governor = governor
        self._now = now or (lambda: datetime.now(UTC))

    def build(self, request: ContextBuildRequest, ids: Ids, fitting: Fitting = None) -> Built:
        with self._timed("package_retrieve"):
            answers = self._retrieve(request, ids)
        with self.index.catalog.snapshot() as reader:
            pinned, loaded = self._pinned(reader, request)
            fused = ranking.fuse([loaded, *(answer.candidates for answer in answers.values())])
            found = [each for each in fused if each.named or each.likely >= FLOOR]
            with self._timed("package_rank"):
                ranked, outside = self._ranked(reader, request, found)
            with self._timed("package_govern"):
                decided = self.governor.govern(reader, ranked)
            pins = sum(each.ranked.candidate.pinned for each in decided.allowed)
            allowed = decided.allowed[: max(request.retrieval.limits.sources, pins)]
            items = self._with_passages(reader, request, allowed)
        shown = {str(item.ref): each for each, item in zip(allowed, items, strict=True)}

        def within(tokens: int) -> ContextPackage:
            fitted = fit_items(items, tokens, PackageItems(), self.index.counter)
            placed = [shown[str(item.ref)] for item in fitted.items]
            pinned_out = _pinned_out(pinned, {each.ranked.candidate.ref for each in placed})
            excluded = Excluded(budget=len(decided.allowed) - len(placed), outside=outside)
            package = self._assembled(request, ids, answers, fitted, placed, decided)
            return package.model_copy(update={"pinned_out": pinned_out, "excluded": excluded})

        with self._timed("package_fit"):
            package = fitting(within) if fitting else within(request.token_budget)
        with self._timed("package_audit"):
            self.governor.settle()
        graph = answers.get("graph", Answer())
        return Built(package, [source.ref for source in package.sources], decided.decision, graph.told)

    def _retrieve(self, request: ContextBuildRequest, ids: Ids) -> dict[str, Answer]:
        """All side by side; the graph after what it begins with."""
        wanted, tenant = request.retrieval.sources, self.principal.tenant
        tasks = retrieval.vector_retrievals(self.index, request, self.principal, self.governor.resources)
        running = {name: self._start(name, task) for name, task in tasks.items()}
        if "metadata" in wanted:
            found_exactly = partial(retrieval.by_metadata, self.index, request, tenant, self.governor.resources)
            running["metadata"] = self._start("metadata", found_exactly)
        answers = {name: self._answer(name, call) for name, call in running.items() if name != "metadata"}
        if "graph" in wanted:
            found = [each for answer in answers.values() for each in answer.candidates]
            nearby = partial(
                retrieval.by_graph, self.index, request, tenant, request.pinned, found, name=ids.projection
            )
            answers["graph"] = self._answer("graph", self._start("graph", nearby))
        if "metadata" in wanted:
            answers["metadata"] = self._answer("metadata", running["metadata"])
        return answers

    def _start(self, name: str, retrieve: Retrieve) -> Call[Answer]:
        return self.index.workers.start(retrieve, name)

    def _answer(self, name: str, call: Call[Answer]) -> Answer:
        return answer_of(name, call.wait(self.index.settings.source_seconds))

    def _pinned(self, reader: Reader, request: ContextBuildRequest) -> tuple[dict[str, list[str]], list[Candidate]]:
        """Each pinned ref with the refs of today that it stands for, none if it names nothing; and what they name. Of a
        document the page that fits the intent best has to be there; its others are as good as any that is found."""
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
    ) -> tuple[list[Ranked], int]:
        """Best first, and how many were found that the graph or the metadata brought from outside of the scope."""
        uses = uses_of(reader, self.principal.tenant, [each.ref for each in found])
        ranked = ranking.rank(found, request.retrieval.weights.over(self.index.settings), uses, self._now())
        pinned = [each for each in ranked if each.candidate.pinned]
        rest = [each for each in ranked if not each.candidate.pinned]
        refs = [each.candidate.ref for each in rest]
        within = retrieval.within_scope(reader, request.scope, refs, self.governor.resources)
        inside = [each for each in rest if each.candidate.ref in within]
        return [*pinned, *inside[:MOST_CANDIDATES]], len(rest) - len(inside)

    def _with_passages(self, reader: Reader, request: ContextBuildRequest, allowed: Sequence[Governed]) -> list[Item]:
        """What may be shown, with the passages that fit the intent; what is masked has none that could be pointed
        at."""
        items = [each.ranked.candidate.item for each in allowed]
        open_ones = [item for each, item in zip(allowed, items, strict=True) if each.text and not each.redacted]
        question = self.index.scoped_question(reader, request.intent)
        with self._timed("package_passages"):
            found = self.index.with_passages(reader, question, open_ones)
        looked_at = {str(item.ref): item for item in found}
        return [looked_at.get(str(item.ref), item) for item in items]

    def _assembled(  # noqa: PLR0917  what was asked, found, fitted and decided
        self,
        request: ContextBuildRequest,
        ids: Ids,
        answers: Mapping[str, Answer],
        fitted: Fitted,
        placed: Sequence[Governed],
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
                _source(number, each, item, cost)
                for number, (each, item, cost) in enumerate(zip(placed, fitted.items, fitted.costs, strict=True), 1)
            ],
            token_budget=request.token_budget,
            tokens_used=fitted.tokens,
            coverage=_coverage(request, answers, fitted, decided),
            denied=decided.nothing,
            created_at=now.isoformat(),
            expires_at=_expiry(now, request.ttl_seconds, placed).isoformat(),
            content=fitted.text,
        )

    def _timed(self, stage: str) -> AbstractContextManager[None]:
        return self.index.recorder.time(stage)


class PackageItems(CitedItems):
    """The renderer of a package: numbered citations, and where the whole is of what was cut."""

    def entry(self, item: Item, number: int) -> str:
        if REFERENCE_ONLY in item.labels:
            return self.header(item, number)
        shown = super().entry(item, number)
        return f"{shown}\n(the whole is {item.ref})" if item.cut and REDACTED not in item.labels else shown


def _source(number: int, governed: Governed, item: Item, tokens: int) -> ContextSource:
    ranked = governed.ranked
    return ContextSource(
        citation=number,
        ref=ranked.candidate.ref,
        kind=item.ref.kind,
        title=item.title,
        origins=sorted(ranked.candidate.origins),
        pinned=ranked.candidate.pinned,
        score=ranked.score,
        parts=ranked.parts,
        tokens=tokens,
        projection=_projection(governed, item, ranked.candidate.item),
        classification=governed.classification,
        link="" if governed.redacted else link_of(item),
        suspicious=list(item.signals),
    )


def _projection(governed: Governed, shown: Item, whole: Item) -> Projection:
    if not governed.text:
        return "reference"
    if governed.redacted:
        return "redacted"
    if not shown.cut:
        return "full"
    return "passages" if len(shown.text) >= len(whole.text) * _SUMMARY else "summary"


def _coverage(
    request: ContextBuildRequest, answers: Mapping[str, Answer], fitted: Fitted, decided: Decided
) -> PackageCoverage:
    notes = list(dict.fromkeys(note for answer in answers.values() for note in answer.notes))
    if decided.decision.problem:
        notes.append("the policy cannot be used, and so everything is denied; see: ctx policy check")
    scope = request.scope
    if not decided.allowed and not decided.nothing and (scope.project is not None or scope.module is not None):
        notes.append("nothing of this project and module was found")
    if fitted.dropped and not fitted.items:
        notes.append(f"nothing that was found fits into {request.token_budget} tokens")
    return PackageCoverage(
        reduced=any(answer.status in ("down", "degraded") for answer in answers.values()),
        retrievals=[answer.coverage(name) for name, answer in answers.items()],
        notes=notes,
    )


def _expiry(now: datetime, seconds: int, placed: Sequence[Governed]) -> datetime:
    """When its time is over, or that of a memory in it, whichever is first."""
    ends = [now + timedelta(seconds=seconds)]
    for each in placed:
        end = read_time(each.ranked.candidate.expires_at or "")
        ends += [] if end is None else [end]
    return min(ends)


def _pinned_out(pinned: Mapping[str, Sequence[str]], shown: set[str]) -> list[PinnedOut]:
    """Why a pinned ref is not there. Of a document one page is enough."""
    out = []
    for ref, several in pinned.items():
        if not several:
            out.append(PinnedOut(ref=ref, reason="unknown", detail="nothing of yours has this ref"))
        elif not any(each in shown for each in several):
            out.append(PinnedOut(ref=ref, reason="budget", detail="not even a summary of it fits the token budget"))
    return out


def new_id() -> str:
    return uuid.uuid4().hex
