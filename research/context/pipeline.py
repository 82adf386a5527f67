"""The one way for everything: question → sources, side by side → rank → deduplicate → fit the budget → render.

What governs items (a policy, a redactor) is one more stage before the budget: what may not be shown costs no tokens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from heapq import merge
from typing import TYPE_CHECKING

from research.context.budget import Budget, Fitted, Renderer, fit
from research.context.tokens import TokenCounter
from research.models import Coverage, Item, Question, Rewrite, SourceCoverage
from research.sources.base import Retrieved, Source

if TYPE_CHECKING:
    from research.observe.recorder import Recorder
    from research.store.catalog.reader import Reader

Stage = Callable[[list[Item]], list[Item]]


@dataclass(frozen=True, slots=True)
class Context:
    """The items that were chosen, fitted into a budget and rendered."""

    question: Question
    fitted: Fitted
    coverage: Coverage = field(default_factory=Coverage)
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)


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
) -> Context:
    """`limit` items of each source at most; `stages` change what was found before the budget is filled."""
    started = time.perf_counter()
    with recorder.time("retrieve") if recorder else nullcontext():
        retrieved = _retrieve(reader, question, sources, limit)
    items = deduplicate(rank([found.items for found in retrieved]))
    for stage in stages:
        items = stage(items)
    with recorder.time("fit") if recorder else nullcontext():
        fitted = fit(items[: budget.max_items], budget.max_tokens, renderer, counter)
    timings = {step: seconds for found in retrieved for step, seconds in found.timings.items()}
    timings["total"] = time.perf_counter() - started
    if recorder:
        recorder.count("items", len(fitted.items))
    searched = next((found.searched for found in retrieved if found.searched), question.text)
    rewrites = [rewrite for found in retrieved for rewrite in found.rewrites]
    return Context(question, fitted, _coverage(retrieved), timings, searched, rewrites)


def rank(found: Sequence[Sequence[Item]]) -> list[Item]:
    """What the sources found, best first; the items of each stay in its order."""
    return list(merge(*found, key=lambda item: -item.score))


def deduplicate(items: Sequence[Item]) -> list[Item]:
    """Each thing once: its first, which is its best."""
    best: dict[str, Item] = {}
    for item in items:
        best.setdefault(str(item.ref), item)
    return list(best.values())


def _retrieve(reader: Reader, question: Question, sources: Sequence[Source], limit: int) -> list[Retrieved]:
    """Each source in a thread of its own. One that fails is down and the others answer; if all do, that is an error."""
    answers: dict[str, Retrieved] = {}
    failures: dict[str, Exception] = {}

    def ask(source: Source) -> None:
        try:
            answers[source.name] = source.retrieve(reader, question, limit)
        except Exception as error:  # noqa: BLE001  whatever happens in a source, the others answer and coverage tells
            failures[source.name] = error
            reason = f"{type(error).__name__}: {error}"
            answers[source.name] = Retrieved([], SourceCoverage(source.name, "down", reason))

    threads = [threading.Thread(target=ask, args=(source,), daemon=True) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(failures) == len(sources):
        raise next(iter(failures.values()))
    return [answers[source.name] for source in sources]


def _coverage(retrieved: Sequence[Retrieved]) -> Coverage:
    known = next((found.coverage for found in retrieved if found.coverage is not None), Coverage())
    return replace(known, sources=[found.status for found in retrieved])
