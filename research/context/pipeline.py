"""The one way for everything: question → sources, side by side → rank → deduplicate → fit the budget → render.

What governs items (a policy, a redactor) is one more stage before the budget: what may not be shown costs no tokens.
What was found can be fitted into any budget: a smaller room never means another search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import merge
from typing import TYPE_CHECKING

from research.context.fit import Fitted, Renderer, fit
from research.context.tokens import TokenCounter
from research.errors import CtxError
from research.models import AnsweredBy, Confidence, Coverage, Extent, Item, Question, Rewrite, SourceCoverage
from research.parallel import Outcome, Workers
from research.sources.base import Retrieved, Source

if TYPE_CHECKING:
    from research.observe.recorder import Recorder
    from research.store.catalog.reader import Reader

Stage = Callable[[list[Item]], list[Item]]
PassageFinder = Callable[[Question, list[Item]], list[Item]]
Judge = Callable[[Question, Sequence[Item], Coverage], Confidence]

# Items by whose passages confidence is judged, however few are shown.
_JUDGED = 10


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a context may hold."""

    max_tokens: int
    max_items: int


@dataclass(frozen=True, slots=True)
class Least:
    """What is wanted at least: items of a lower score are left out, and all of them where confidence is lower."""

    score: float = 0.0
    confidence: float = 0.0

    def of(self, items: Sequence[Item], confidence: Confidence | None) -> list[Item]:
        unsure = confidence is not None and confidence.value < self.confidence
        return [] if unsure else [item for item in items if item.score >= self.score]


@dataclass(frozen=True, slots=True)
class Context:
    """The items that were chosen, fitted into a budget and rendered."""

    question: Question
    fitted: Fitted
    found: list[Item] = field(default_factory=list)  # as they were before the budget: with the whole text of each
    coverage: Coverage = field(default_factory=Coverage)
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)
    answered_by: AnsweredBy = "pages"
    confidence: Confidence | None = None
    fresh: list[object] = field(default_factory=list)  # vectors that sources have made for the question


def build(
    reader: Reader,
    question: Question,
    sources: Sequence[Source],
    *,
    limit: int,
    budget: Budget,
    renderer: Renderer,
    counter: TokenCounter,
    recorder: Recorder | None = None,
    stages: Sequence[Stage] = (),
    passages: PassageFinder | None = None,
    judge: Judge | None = None,
    least: Least | None = None,
    extent: Extent = "fit",
    workers: Workers | None = None,
    source_seconds: float | None = None,
) -> Context:
    """`limit` items of each source at most; `stages` change what was found before the budget is filled, and `passages`
    finds what of each item fits the question, so that the budget can begin with that. `judge` tells how sure what was
    found is, by the text that was searched; what is not as good as `least` is left out. A source is waited for
    `source_seconds`; `workers` know which hang."""
    started = time.perf_counter()
    with recorder.time("retrieve") if recorder else nullcontext():
        tasks = {source.name: partial(source.retrieve, reader, question, limit) for source in sources}
        retrieved = _answers((workers or Workers("ctx-source")).run_all(tasks, source_seconds))
    items = deduplicate(rank([found.items for found in retrieved]))
    with recorder.time("govern") if recorder else nullcontext():
        for stage in stages:
            items = stage(items)
    searched = next((found.searched for found in retrieved if found.searched), question.text)
    asked = question.searching(searched)
    if passages is not None:
        looked_at = max(_JUDGED, budget.max_items)
        with recorder.time("passages") if recorder else nullcontext():
            items = [*passages(asked, items[:looked_at]), *items[looked_at:]]
    confidence = judge(asked, items, _coverage(retrieved)) if judge is not None else None
    items = (least or Least()).of(items, confidence)[: budget.max_items]
    with recorder.time("fit") if recorder else nullcontext():
        fitted = fit(items, budget.max_tokens, renderer, counter, extent=extent)
    timings = {step: seconds for found in retrieved for step, seconds in found.timings.items()}
    timings["total"] = time.perf_counter() - started
    if recorder:
        recorder.count("items", len(fitted.items))
    rewrites = [rewrite for found in retrieved for rewrite in found.rewrites]
    coverage = _coverage(retrieved).noting(question.notes)
    answered_by: AnsweredBy = "documents" if any(each.answered_by == "documents" for each in retrieved) else "pages"
    fresh = [found.fresh for found in retrieved if found.fresh is not None]
    return Context(question, fitted, items, coverage, timings, searched, rewrites, answered_by, confidence, fresh)


def rank(found: Sequence[Sequence[Item]]) -> list[Item]:
    """What the sources found, best first; the items of each stay in its order."""
    return list(merge(*found, key=lambda item: -item.score))


def deduplicate(items: Sequence[Item]) -> list[Item]:
    """Each thing once: its first, which is its best."""
    best: dict[str, Item] = {}
    for item in items:
        best.setdefault(str(item.ref), item)
    return list(best.values())


def _answers(outcomes: Mapping[str, Outcome[Retrieved]]) -> list[Retrieved]:
    """What the sources found. One that failed or is late is down and the others answer; if all are, that is an
    error."""
    answers = []
    for name, outcome in outcomes.items():
        error = outcome.error
        if error is None:
            answers.append(outcome.result())
            continue
        from research.observe.log import log_failure

        log_failure("search", f"the source {name} failed", error)
        reason = str(error) if outcome.late else f"{type(error).__name__}: {error}"
        answers.append(Retrieved([], SourceCoverage(name, "down", reason)))
    if all(outcome.late for outcome in outcomes.values()):
        raise CtxError("no source answered in time", hint="CTX_SOURCE_SECONDS=60 waits longer; see: ctx doctor")
    if all(outcome.error for outcome in outcomes.values()):
        next(iter(outcomes.values())).result()
    return answers


def _coverage(retrieved: Sequence[Retrieved]) -> Coverage:
    known = next((found.coverage for found in retrieved if found.coverage is not None), Coverage())
    return replace(known, sources=[found.status for found in retrieved])
