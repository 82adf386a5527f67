"""The one way for everything: question → sources, side by side → rank → deduplicate → fit the budget → render.

What governs items (a policy, a redactor) is one more stage before the budget: what may not be shown costs no tokens.
What was found can be fitted into any budget: a smaller room never means another search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import merge
from typing import TYPE_CHECKING, Protocol

from research.context.fit import Fitted, Plan, Renderer, fit_items
from research.context.tokens import TokenCounter
from research.errors import CtxError
from research.models import (
    NEWER_VERSION,
    AnsweredBy,
    Confidence,
    Coverage,
    Extent,
    Item,
    Question,
    Retrieved,
    Rewrite,
    SourceCoverage,
)
from research.observe import NULL_RECORDER
from research.parallel import Outcome, Workers
from research.text import one_line

if TYPE_CHECKING:
    from research.observe import Recorder
    from research.store import Reader

Stage = Callable[[list[Item]], list[Item]]
PassageFinder = Callable[[Question, list[Item]], list[Item]]
Judge = Callable[[Question, Sequence[Item], Coverage], Confidence]

# Items by whose passages confidence is judged, however few are shown.
_JUDGED = 10
# Of the best score of all, and of the best of its own kind, that an item has to reach to be of use beside them:
# measured where a question goes to every source (RETRIEVAL.md, Scores).
_OF_BEST, _OF_ITS_KIND = 0.3, 0.68
_RIVALS = (
    "page",
    "memory",
)  # of which one answers as a rule: their scores share its chances, and fall far with the rank


class Source(Protocol):
    """Scores of its items are calibrated: how likely it is that this answers the question, 0 to 1."""

    @property
    def name(self) -> str: ...

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        """At most `limit` items, best first. `reader` is the catalog as this question sees it."""
        ...


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is wanted at least: items of a lower score are left out, and all of them where confidence is lower."""

    score: float = 0.0
    confidence: float = 0.0

    def of(self, items: Sequence[Item], confidence: Confidence | None) -> list[Item]:
        unsure = confidence is not None and confidence.value < self.confidence
        return [] if unsure else [item for item in items if item.score >= self.score]


@dataclass(frozen=True, slots=True)
class Found:
    """What a question found, before any budget: ranked, each thing once, with what of it fits the question."""

    question: Question
    items: list[Item] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)
    answered_by: AnsweredBy = "pages"
    confidence: Confidence | None = None
    fresh: list[object] = field(default_factory=list)  # vectors that sources have made for the question
    duplicates: int = 0  # items that another one of a higher score says already
    recorder: Recorder = NULL_RECORDER

    def within(
        self,
        max_tokens: int,
        renderer: Renderer,
        counter: TokenCounter,
        *,
        extent: Extent = "fit",
        plan: Plan | None = None,
    ) -> Context:
        """As much of it as a budget holds."""
        started = time.perf_counter()
        with self.recorder.time("fit"):
            fitted = fit_items(self.items, max_tokens, renderer, counter, extent=extent, plan=plan)
        self.recorder.count("items", len(fitted.items))
        total = self.timings.get("total", 0.0) + time.perf_counter() - started
        return Context(replace(self, timings={**self.timings, "total": total}), fitted)


@dataclass(frozen=True, slots=True)
class Context:
    """What was found, and as much of it as fits a budget, rendered."""

    found: Found
    fitted: Fitted


@dataclass(frozen=True, slots=True)
class Sieve:
    """What becomes of items between the search and the budget. `stages` change them; `passages` finds what of each fits
    the question, so that the budget can begin with that; `judge` tells how sure what was found is; what does not reach
    `thresholds` is left out, and what comes after the first `most`. `floor`: the least score of what is
    shown of several sources, and `beside_best`: more where better items say what it would (`least_scores`). `unique`:
    what sources say alike is said once; `same_file`: of code and a commit of one file only the better one stays."""

    stages: Sequence[Stage] = ()
    passages: PassageFinder | None = None
    judge: Judge | None = None
    thresholds: Thresholds = Thresholds()
    most: int | None = None
    floor: float = 0.0
    beside_best: bool = False
    unique: bool = True
    same_file: bool = False


def find(
    reader: Reader,
    question: Question,
    sources: Sequence[Source],
    *,
    limit: int,
    sieve: Sieve,
    recorder: Recorder = NULL_RECORDER,
    workers: Workers | None = None,
    source_seconds: float | None = None,
) -> Found:
    """`limit` items of each source at most. A source is waited for `source_seconds`; `workers` know which hang."""
    started = time.perf_counter()
    with recorder.time("retrieve"):
        tasks = {source.name: partial(source.retrieve, reader, question, limit) for source in sources}
        retrieved = answers((workers or Workers("ctx-source")).run_all(tasks, source_seconds))
    return sifted(question, retrieved, sieve, recorder=recorder, seconds=time.perf_counter() - started)


def sifted(
    question: Question,
    retrieved: Sequence[Retrieved],
    sieve: Sieve,
    *,
    recorder: Recorder = NULL_RECORDER,
    seconds: float = 0.0,
) -> Found:
    """What remains of what the sources found in so many seconds."""
    started = time.perf_counter()
    several = deduplicate(rank([found.items for found in retrieved]))
    items = several
    if sieve.unique and len(retrieved) > 1:
        from research.context.duplicates import without_duplicates

        items = without_duplicates(several, same_file=sieve.same_file)
    duplicates = len(several) - len(items)
    least = least_scores(((item.ref.kind, item.score) for item in items), sieve.floor) if sieve.beside_best else {}
    items = [item for item in items if item.score >= least.get(item.ref.kind, sieve.floor)]
    with recorder.time("govern"):
        for stage in sieve.stages:
            items = stage(items)
    searched = next((found.searched for found in retrieved if found.searched), question.text)
    asked = question.searching(searched)
    if sieve.passages is not None:
        looked_at = len(items) if sieve.most is None else max(_JUDGED, sieve.most)
        with recorder.time("passages"):
            items = [*sieve.passages(asked, items[:looked_at]), *items[looked_at:]]
    confidence = sieve.judge(asked, items, _coverage(retrieved)) if sieve.judge is not None else None
    items = sieve.thresholds.of(items, confidence)[: sieve.most]
    answered_by: AnsweredBy = "documents" if any(each.answered_by == "documents" for each in retrieved) else "pages"
    timings = {step: spent for found in retrieved for step, spent in found.timings.items()}
    return Found(
        question,
        items,
        _coverage(retrieved).noting(
            notes_on(items, [*(note for found in retrieved for note in found.notes), *question.notes])
        ),
        {**timings, "total": seconds + time.perf_counter() - started},
        searched,
        [rewrite for found in retrieved for rewrite in found.rewrites],
        answered_by,
        confidence,
        [found.fresh for found in retrieved if found.fresh is not None],
        duplicates,
        recorder,
    )


def notes_on(items: Sequence[Item], notes: Sequence[str]) -> list[str]:
    """The notes without those on versions of documents of which nothing is shown."""
    names = {one_line(str(item.metadata.get("filename", ""))) for item in items}
    return [note for note in notes if NEWER_VERSION not in note or not names.isdisjoint(note.split(NEWER_VERSION))]


def rank(found: Sequence[Sequence[Item]]) -> list[Item]:
    """What the sources found, best first; the items of each stay in its order."""
    return list(merge(*found, key=lambda item: -item.score))


def deduplicate(items: Sequence[Item]) -> list[Item]:
    """Each thing once: its first, which is its best."""
    best: dict[str, Item] = {}
    for item in items:
        best.setdefault(str(item.ref), item)
    return list(best.values())


def least_scores(scored: Iterable[tuple[str, float]], floor: float) -> dict[str, float]:
    """What an item of each kind has to score to be shown: the floor, and more where better ones say what it would. The
    budget is filled as far as useful items reach."""
    best: dict[str, float] = {}
    for kind, score in scored:
        best[kind] = max(score, best.get(kind, 0.0))
    most = max(best.values(), default=0.0)
    of_kind = {kind: 0.0 if kind in _RIVALS else _OF_ITS_KIND for kind in best}
    return {kind: max(floor, _OF_BEST * most, of_kind[kind] * own) for kind, own in best.items()}


def answers(outcomes: Mapping[str, Outcome[Retrieved]]) -> list[Retrieved]:
    """What the sources found. One that failed or is late is down and the others answer; if all are, that is an
    error."""
    found = []
    for name, outcome in outcomes.items():
        error = outcome.error
        if error is None:
            found.append(outcome.result())
            continue
        from research.observe import log_failure

        log_failure("search", f"the source {name} failed", error)
        reason = str(error) if outcome.late else f"{type(error).__name__}: {error}"
        found.append(Retrieved([], SourceCoverage(name, "down", reason)))
    if all(outcome.late for outcome in outcomes.values()):
        raise CtxError("no source answered in time", hint="CTX_SOURCE_SECONDS=60 waits longer; see: ctx doctor")
    if all(outcome.error for outcome in outcomes.values()):
        next(iter(outcomes.values())).result()
    return found


def _coverage(retrieved: Sequence[Retrieved]) -> Coverage:
    known = next((found.coverage for found in retrieved if found.coverage is not None), Coverage())
    return replace(known, sources=[found.status for found in retrieved])
