"""The one way for everything: question → sources, side by side → rank → deduplicate → fit the budget → render.

What governs items (a policy, a redactor) is one more stage before the budget: what may not be shown costs no tokens.
The budget holds exactly: `Fitted.tokens` is the count of what is rendered, and never above the limit.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from heapq import merge
from typing import TYPE_CHECKING, Protocol

from research.context.tokens import RunningCount, TokenCounter
from research.models import AnsweredBy, Confidence, Coverage, Extent, Item, Question, Rewrite, SourceCoverage
from research.sources.base import Retrieved, Source
from research.text import SENTENCE_BREAK

if TYPE_CHECKING:
    from research.observe.recorder import Recorder
    from research.store.catalog.reader import Reader

Stage = Callable[[list[Item]], list[Item]]
PassageFinder = Callable[[Question, list[Item]], list[Item]]
Judge = Callable[[Question, Sequence[Item], Coverage], Confidence]

CUT_MARK = "[…]"

# Items by whose passages confidence is judged, however few are shown.
_JUDGED = 10

# A cut source must still say something: fewer tokens than this and it is dropped instead.
LEAST_BODY_TOKENS = 16

_PARAGRAPH_END = re.compile(r"\n{2,}|\n(?=[-|#>*]|\d+\.)")
_SENTENCE_END = re.compile(rf"{SENTENCE_BREAK.pattern}|\n")  # lines of a list or table count as sentences
_WORD_END = re.compile(r"(?<=\S)(?=\s)")


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


class Renderer(Protocol):
    """How an item stands in the text: a header line with its number, and its text below."""

    @property
    def separator(self) -> str: ...

    def header(self, item: Item, number: int) -> str: ...

    def body(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits: the text, its items in order, its exact tokens, and the items that were left out."""

    text: str
    items: list[Item]
    tokens: int
    dropped: list[Item]
    as_asked: bool = False  # whatever is cut was not asked for: passages were, and they are all there

    @property
    def truncated(self) -> bool:
        return bool(self.dropped) or (not self.as_asked and any(item.cut for item in self.items))


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
) -> Context:
    """`limit` items of each source at most; `stages` change what was found before the budget is filled, and `passages`
    finds what of each item fits the question, so that the budget can begin with that. `judge` tells how sure what was
    found is, by the text that was searched; what is not as good as `least` is left out."""
    started = time.perf_counter()
    with recorder.time("retrieve") if recorder else nullcontext():
        retrieved = _retrieve(reader, question, sources, limit)
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
        fitted = fit(_unmarked(items), budget.max_tokens, renderer, counter, extent=extent)
    timings = {step: seconds for found in retrieved for step, seconds in found.timings.items()}
    timings["total"] = time.perf_counter() - started
    if recorder:
        recorder.count("items", len(fitted.items))
    rewrites = [rewrite for found in retrieved for rewrite in found.rewrites]
    coverage = _coverage(retrieved).noting(question.notes)
    answered_by: AnsweredBy = "documents" if any(each.answered_by == "documents" for each in retrieved) else "pages"
    fresh = [found.fresh for found in retrieved if found.fresh is not None]
    return Context(question, fitted, items, coverage, timings, searched, rewrites, answered_by, confidence, fresh)


def _unmarked(items: Sequence[Item]) -> list[Item]:
    """The items without anything in their text that reads like the mark of a page break."""
    from research.context.page_breaks import neutralize_page_marks

    return [replace(item, text=neutralize_page_marks(item.text)) for item in items]


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
    """The sources side by side. One that fails is down and the others answer; if all do, that is an error."""
    answers: dict[str, Retrieved] = {}
    failures: dict[str, Exception] = {}

    def ask(source: Source) -> None:
        try:
            answers[source.name] = source.retrieve(reader, question, limit)
        except Exception as error:  # noqa: BLE001  whatever happens in a source, the others answer and coverage tells
            failures[source.name] = error
            reason = f"{type(error).__name__}: {error}"
            answers[source.name] = Retrieved([], SourceCoverage(source.name, "down", reason))
            from research.observe.log import log_failure

            log_failure("search", f"the source {source.name} failed", error)

    # The first in this thread, the others in threads with its context: a recorder finds the question's trace in it.
    threads = [threading.Thread(target=copy_context().run, args=(ask, source), daemon=True) for source in sources[1:]]
    for thread in threads:
        thread.start()
    for source in sources[:1]:
        ask(source)
    for thread in threads:
        thread.join()
    if len(failures) == len(sources):
        raise next(iter(failures.values()))
    return [answers[source.name] for source in sources]


def _coverage(retrieved: Sequence[Retrieved]) -> Coverage:
    known = next((found.coverage for found in retrieved if found.coverage is not None), Coverage())
    return replace(known, sources=[found.status for found in retrieved])


def fit(
    items: Sequence[Item], max_tokens: int, renderer: Renderer, counter: TokenCounter, *, extent: Extent = "fit"
) -> Fitted:
    """As much of the items as fits. Those with passages grow from them to whole pages while there is room; `extent`
    "passages" leaves it at them. Without passages, or if "pages" are asked for, items are taken whole and in order: the
    one that crosses the budget is cut, the rest are dropped."""
    run_on = any(len(passage.pages) > 1 for item in items for passage in item.passages)
    if extent != "passages" and not run_on:
        whole = _fit_whole(items, max_tokens, renderer, counter)
        if extent == "pages" or not whole.truncated:
            return whole
    if extent == "pages" or not any(item.passages for item in items):
        return _fit_whole(items, max_tokens, renderer, counter)
    from research.context.growth import fit_passages

    return fit_passages(items, max_tokens, renderer, counter, only=extent == "passages")


def _fit_whole(items: Sequence[Item], max_tokens: int, renderer: Renderer, counter: TokenCounter) -> Fitted:
    text, count = "", RunningCount(counter)
    kept: list[Item] = []
    for number, item in enumerate(items, start=1):
        head = f"{renderer.separator if text else ''}{renderer.header(item, number)}\n"
        added = head + renderer.body(item.text)
        longer = count.plus(added)
        if longer.tokens <= max_tokens:
            text, count = text + added, longer
            kept.append(item)
            continue
        cut = _cut(count.plus(head), item, max_tokens, renderer, counter)
        if cut is not None:
            last = head + renderer.body(cut.text)
            longer = count.plus(last)
            # Without its last heading a text is shorter, though not always in tokens.
            if longer.tokens <= max_tokens:
                text, count = text + last, longer
                kept.append(cut)
        break
    return Fitted(text, kept, count.tokens, list(items[len(kept) :]))


def _cut(head: RunningCount, item: Item, max_tokens: int, renderer: Renderer, counter: TokenCounter) -> Item | None:
    """The item shortened to what is left of the budget after its header; None if nothing useful fits."""
    whole = item.text.strip()  # as it is, so that the item keeps its page's own text
    room = max_tokens - head.tokens
    if room < LEAST_BODY_TOKENS:
        return None
    for ends in (_PARAGRAPH_END, _SENTENCE_END, _WORD_END):
        stops = [match.start() for match in ends.finditer(whole) if match.start() > 0]
        length = _longest(head, whole, stops, max_tokens, renderer)
        kept = _without_last_heading(whole[:length])
        # A paragraph break is the best place, unless it would waste most of the room.
        if kept and (counter.count(kept) >= room // 2 or (ends is _WORD_END)):
            return replace(item, text=f"{kept}\n{CUT_MARK}", cut=True)
    return None


def _without_last_heading(text: str) -> str:
    """A heading whose text was cut away promises what does not follow."""
    lines = text.rstrip().split("\n")
    while lines and (not lines[-1].strip() or lines[-1].startswith("#")):
        lines.pop()
    return "\n".join(lines)


def _longest(head: RunningCount, whole: str, stops: list[int], max_tokens: int, renderer: Renderer) -> int:
    """The last stop at which head, text and cut mark stay within the budget, by bisection."""

    def fits(stop: int) -> bool:
        return head.plus(f"{renderer.body(whole[:stop])}\n{CUT_MARK}").tokens <= max_tokens

    low, high = 0, len(stops)
    while low < high:
        middle = (low + high) // 2
        if fits(stops[middle]):
            low = middle + 1
        else:
            high = middle
    # Counts grow with the text but for the joint at the cut mark, so the answer is proved, not assumed.
    while low > 0 and not fits(stops[low - 1]):
        low -= 1
    return stops[low - 1] if low else 0
