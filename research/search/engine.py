"""The engine: runs the legs it is given side by side, fuses what they find, and lets boosters look at the order.

    question → rewriters → legs → fuse → boosters → orders → pages with their text

It knows no leg, rewriter, booster or reranker by name. A leg that fails is named in `coverage`, and the rest answers.

Fusion is a weighted sum of scores that are already on one scale. Rank fusion throws away how sure a leg is and so falls
behind its better leg; scores that do not depend on the other results can simply be added.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from research.errors import CtxError, UsageError
from research.models import AnsweredBy, Coverage, FoundPart, LegCoverage, LegScore, Question, Rewrite
from research.observe import NULL_RECORDER
from research.parallel import Workers
from research.search.legs import (
    DEFAULT_WEIGHTS,
    Boosted,
    Booster,
    Chosen,
    Found,
    Hits,
    Leg,
    PageOrder,
    Ranked,
    Reranked,
    SearchOutcome,
    Weights,
    pages_with_text,
    places,
)
from research.search.rewriters import Rewriters
from research.store import Reader, StoredPage
from research.units import Structure

if TYPE_CHECKING:
    from research.observe import Recorder
    from research.store import Scope

_LEGS = Workers("ctx-leg")

# Inside so many pages all are scored, which is exact and quick; beyond that the legs find, and what is outside goes.
_MOST_SCORED = 5000
_MOST_NAMED = 50  # of the first pages are ranked again without the name that chose their document
_DEEPER = 4  # times as many pages are asked for where too few were inside


@dataclass(slots=True)
class _LegRun:
    """One leg at work on one question."""

    leg: Leg
    pages: Collection[int] = ()  # that it found itself
    hits: Hits = field(default_factory=dict)
    failure: str = ""
    seconds: float = 0.0

    def score(self, reader: Reader, question: Question, pages: Sequence[int], *, own: bool = False) -> None:
        """Have the leg score the pages of all; `own`: those it would find itself are its own."""
        if not self.failure:
            with self.attempt():
                self.hits = self.leg.score(reader, question, pages)
                if own:
                    self.pages = {page_id for page_id, hit in self.hits.items() if hit.found}

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Whatever happens in a leg, the others answer and coverage tells."""
        started = time.perf_counter()
        try:
            yield
        except CtxError as error:
            self.failure = error.message
        except Exception as error:  # noqa: BLE001
            self.failure = f"{type(error).__name__}: {error}"
            from research.observe import log_failure

            log_failure("search", f"the {self.leg.name} leg failed", error)
        self.seconds += time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class _Ranking:
    runs: list[_LegRun]
    ranked: list[Ranked]


@dataclass(frozen=True, slots=True)
class _Changes:
    """What rewriters and boosters did to a question and the order of its answer."""

    rewrites: list[Rewrite]
    scores: dict[int, dict[str, LegScore]] = field(default_factory=dict)  # page_id → name of what moved it → how
    chosen: Chosen = field(default_factory=Chosen)
    parts: dict[int, FoundPart] = field(default_factory=dict)

    def moved(self, name: str, pages: Sequence[Ranked], *, ranked: bool = True) -> None:
        for rank, page in enumerate(pages, start=1):
            how = LegScore(rank, page.score) if ranked else LegScore(None, page.score, {"place": page.score})
            self.scores.setdefault(page.page_id, {})[name] = how
        self.chosen.boosted.update(page.page_id for page in pages if not ranked)

    def reranked(self, name: str, scores: Mapping[int, LegScore]) -> None:
        for page_id, how in scores.items():
            self.scores.setdefault(page_id, {})[name] = how


class Engine:
    """Searches what it is given to read. Keeps nothing of a question, so many threads may use it."""

    def __init__(
        self,
        legs: Sequence[Leg],
        *,
        modes: Mapping[str, Sequence[str]],
        weights: Weights,
        rewriters: Rewriters,
        boosters: Sequence[Booster] = (),
        order: PageOrder | None = None,
        reranker: PageOrder | None = None,
        last: PageOrder | None = None,
        recorder: Recorder = NULL_RECORDER,
    ) -> None:
        """`modes` names the legs that each mode asks. `order` looks at what several legs found together, `reranker` at
        what any found, and `last` has the last word in modes of several legs."""
        self._legs = {leg.name: leg for leg in legs}
        self._modes = modes
        self._weights = weights
        self._rewriters = rewriters
        self._boosters = boosters
        self._orders = (order, reranker, last)
        self._recorder = recorder

    def run(self, reader: Reader, question: Question, limit: int, *, everything: bool = False) -> SearchOutcome:
        """The best `limit` pages; `everything` also brings the candidates that come after them."""
        legs, off = self._asked(reader, question)
        if not question.text.strip() or limit <= 0:
            return SearchOutcome([], _coverage(reader, [], [], []))
        started = time.perf_counter()
        text, rewrites = question.wording, list[Rewrite]()
        with _or_noted(question, "rewriting"):
            text, rewrites = self._rewriters.before(text, reader)
        question = question.searching(text)
        ranking = self._rank(reader, question, legs, limit)
        ranked: Sequence[Ranked] = ranking.ranked
        timings = {run.leg.name: run.seconds for run in ranking.runs}
        changes = _Changes([*question.rewrites, *rewrites])
        answered_by: AnsweredBy = "pages"
        if len(legs) > 1:  # a leg alone shows what it finds by itself
            with _or_noted(question, "rewriting"):
                ranked = self._reranked(reader, question, legs, ranking, changes)
            if question.about:
                ranked = focused(ranked, question.about)
            for booster in self._boosters:
                boosted = Boosted(ranked)
                with _or_noted(question, f"the booster {booster.name}"):
                    boosted = booster.boost(question, reader, ranked)
                ranked = _inside(reader, question, boosted.ranked)
                if boosted.answered_by != "pages":
                    answered_by = boosted.answered_by
                moved = [entry for entry in ranked if entry.page_id in boosted.pages]
                changes.moved(booster.name, moved, ranked=False)
                changes.parts.update(boosted.parts)
        applying = (len(legs) > 1, True, len(self._modes[question.mode]) > 1)
        for order, applies in zip(self._orders, applying, strict=True):
            if order is not None and applies and answered_by == "pages":
                before = time.perf_counter()
                reranked = Reranked(ranked)
                with _or_noted(question, order.name):
                    reranked = order.rerank(reader, question, ranked, changes.chosen)
                ranked = reranked.ranked
                changes.reranked(order.name, reranked.scores)
                timings[order.name] = time.perf_counter() - before
        pages = pages_with_text(reader, question, [entry.page_id for entry in ranked[:limit]])
        candidates = _with_pages(reader, ranked if everything else ranked[:limit], pages, ranking, changes)
        timings["search"] = time.perf_counter() - started
        coverage = _coverage(reader, ranking.runs, off, question.notes)
        return SearchOutcome(
            candidates[:limit], coverage, timings, text, changes.rewrites, candidates if everything else [], answered_by
        )

    def _asked(self, reader: Reader, question: Question) -> tuple[list[Leg], list[LegCoverage]]:
        """The legs of the mode; those that this index has no side for are off, unless one is asked for alone."""
        if question.mode not in self._modes:
            raise UsageError(f"unknown search mode {question.mode!r}", hint="choose one of: " + ", ".join(self._modes))
        legs = [self._legs[name] for name in self._modes[question.mode]]
        reasons = {leg.name: leg.why_off(reader) for leg in legs} if len(legs) > 1 else {}
        off = [LegCoverage(name, "off", reason) for name, reason in reasons.items() if reason]
        return [leg for leg in legs if not reasons.get(leg.name)], off

    def _rank(
        self, reader: Reader, question: Question, legs: Sequence[Leg], limit: int, *, among: Sequence[int] | None = None
    ) -> _Ranking:
        """Ask every leg for its pages, have every leg score the pages of all, or those `among`, and add up."""
        runs = [_LegRun(leg) for leg in legs]
        scope = _scope(question)
        if among is None and scope is not None and scope.count(reader) <= _MOST_SCORED:
            among = scope.page_ids(reader)
        if among is None:
            chains = _chains(runs).items()
            tasks = {name: partial(_find, chain, reader, question, limit, scope) for name, chain in chains}
            for outcome in _LEGS.run_all(tasks).values():
                outcome.result()
            pages = sorted({page_id for run in runs if not run.failure for page_id in run.pages})
            # One after the other: each is a millisecond or two, and threads would spend more waiting for each other.
            for run in runs:
                run.score(reader, question, pages)
        else:
            # Inside a few documents every page is scored: exact, and quicker than filtering neighbours. What no leg
            # would have found in the whole index is not found here either: a filter only takes away.
            for run in runs:
                run.score(reader, question, among, own=True)
            pages = sorted({page_id for run in runs if not run.failure for page_id in run.pages})
        with self._recorder.time("fuse"):
            found = {run.leg.name: run.hits for run in runs if not run.failure}
            return _Ranking(runs, fuse(found, places(reader, question, pages), self._weights) if found else [])

    def _reranked(
        self, reader: Reader, question: Question, legs: Sequence[Leg], plain: _Ranking, changes: _Changes
    ) -> Sequence[Ranked]:
        """With the pages of some documents ranked by another text, where a rewriter has one; `changes` hears of it."""
        ranked: Sequence[Ranked] = plain.ranked
        for reranking in self._rewriters.rerankings(question, list(changes.rewrites), reader, ranked):
            other = replace(question.searching(reranking.question), documents=reranking.documents)
            among = [page.page_id for page in ranked[:_MOST_NAMED] if page.doc_id in reranking.documents]
            if not reranking.named:  # pages that the first text did not find may come in
                from research.store import Scope

                among = Scope(frozenset(reranking.documents), question.pages).page_ids(reader)
            again = self._rank(reader, other, legs, 0, among=among).ranked
            ranked = self._rewriters.merge(ranked, again, reranking)
            if reranking.rewrite is not None:
                changes.rewrites.append(reranking.rewrite)
                changes.moved(reranking.rewrite.name, again)
                changes.chosen.by_lines.update(page.page_id for page in again)
            else:  # by a name
                changes.chosen.documents.update(reranking.documents)
        return ranked


def _scope(question: Question) -> Scope | None:
    """Where the question may be answered from; None: everywhere."""
    if question.documents is None and not question.pages:
        return None
    from research.store import Scope

    return Scope(None if question.documents is None else frozenset(question.documents), question.pages)


def _inside(reader: Reader, question: Question, ranked: Sequence[Ranked]) -> Sequence[Ranked]:
    """Without the pages that the question may not be answered from: a booster looks where it likes."""
    scope = _scope(question)
    if scope is None:
        return ranked
    kept = scope.keep(reader, [entry.page_id for entry in ranked])
    return [entry for entry in ranked if entry.page_id in kept]


@contextmanager
def _or_noted(question: Question, what: str) -> Iterator[None]:
    """What changes the question or the order of its answer fails alone: the plain answer stands, and a note tells."""
    try:
        yield
    except CtxError:
        raise
    except Exception as error:  # noqa: BLE001
        from research.observe import log_failure

        log_failure("search", f"{what} failed", error)
        question.notes.append(f"{what} failed ({type(error).__name__}); the answer is without it")


def focused(ranked: Sequence[Ranked], about: Mapping[str, float]) -> list[Ranked]:
    """The ranking as if the pages of the documents that a conversation is about had scored so much more. Each place
    keeps its score: that a document was talked about makes nobody surer that a page of it answers."""
    order = sorted(ranked, key=lambda page: -round(page.score + about.get(page.doc_id, 0.0), 6))
    return [page._replace(score=place.score) for page, place in zip(order, ranked, strict=True)]


def _find(chain: Sequence[_LegRun], reader: Reader, question: Question, limit: int, scope: Scope | None) -> None:
    """Ask legs for their own pages, one after the other, and for more of them until enough are inside the scope."""
    for run in chain:
        with run.attempt():
            wanted = depth = max(limit, run.leg.depth)
            if scope is None:
                run.pages = run.leg.candidates(reader, question, depth)
                continue
            everything = reader.pages.totals().pages
            depth = min(everything, wanted * everything // max(1, scope.count(reader)))
            while True:
                found = run.leg.candidates(reader, question, depth)
                run.pages = scope.keep(reader, found)
                if len(run.pages) >= wanted or depth >= everything or len(found) < depth:
                    break
                depth = min(everything, _DEEPER * depth)


def _chains(runs: Sequence[_LegRun]) -> dict[str, list[_LegRun]]:
    """The legs that may work beside each other; one that follows another stands behind it."""
    chains: dict[str, list[_LegRun]] = {}
    for run in runs:
        before = next((chain for chain in chains.values() if chain[-1].leg.name == run.leg.follows), None)
        if before is None:
            chains[run.leg.name] = [run]
        else:
            before.append(run)
    return chains


def _with_pages(
    reader: Reader,
    ranked: Sequence[Ranked],
    pages: Mapping[int, tuple[StoredPage, Structure]],
    ranking: _Ranking,
    changes: _Changes,
) -> list[Found]:
    page_ids = [entry.page_id for entry in ranked]
    others = reader.pages.get_many([page_id for page_id in page_ids if page_id not in pages])
    pages = {**pages, **{page_id: (page, Structure("")) for page_id, page in others.items()}}
    scores = leg_scores({run.leg.name: (run.hits, run.pages) for run in ranking.runs if not run.failure}, page_ids)
    found = []
    for entry, legs in zip(ranked, scores, strict=True):
        score = min(1.0, max(0.0, entry.score))
        moved, part = changes.scores.get(entry.page_id, {}), changes.parts.get(entry.page_id)
        found.append(Found(*pages[entry.page_id], score, legs | moved, part))
    return found


def _coverage(reader: Reader, runs: Sequence[_LegRun], off: Sequence[LegCoverage], notes: Sequence[str]) -> Coverage:
    """What an answer rests on: which legs took part, and which pages some of them cannot see yet."""
    legs = [LegCoverage(run.leg.name, "failed" if run.failure else "ok", run.failure) for run in runs]
    counted = reader.pages.totals()
    return Coverage(
        legs=[*legs, *off],
        notes=list(dict.fromkeys(notes)),
        pages=counted.pages,
        pages_without_vectors=counted.pages_without_vectors,
        pages_without_text=counted.pages_without_text,
        pages_without_visual=reader.visual.count_unseen(),
    )


def fuse(
    found: Mapping[str, Hits], order: Mapping[int, tuple[str, int, str]], weights: Weights = DEFAULT_WEIGHTS
) -> list[Ranked]:
    """The pages by weighted sum, best first. `found` holds every leg's score of every candidate it knows.

    A leg that stands alone counts in full, whatever its weight beside others. Equal scores (twin pages of two
    documents) stand in `order` (filename, page, doc_id), so that the answer does not depend on which document was
    ingested first.
    """
    totals = _totals(found, weights)
    # Rounded, because twins differ in the last bits: by the order of adding, and by their place in a matrix of float32.
    ordered = sorted(
        [(-round(score, 6), order[page_id], page_id) for page_id, score in totals.items() if page_id in order]
    )
    return [Ranked(page_id, place[2], totals[page_id]) for _, place, page_id in ordered]


def leg_scores(found: Mapping[str, tuple[Hits, Collection[int]]], page_ids: Sequence[int]) -> list[dict[str, LegScore]]:
    """How each leg saw each of these pages, by its hits; ranks are among the pages that it found itself."""
    scores: list[dict[str, LegScore]] = [{} for _ in page_ids]
    for name, (hits, own) in found.items():
        ordered = sorted([(-hits[page_id].score, page_id) for page_id in own if page_id in hits])
        ranks = {page_id: rank for rank, (_, page_id) in enumerate(ordered, start=1)}
        for page_id, of_page in zip(page_ids, scores, strict=True):
            if (hit := hits.get(page_id)) is not None:
                of_page[name] = LegScore(ranks.get(page_id), hit.score, dict(hit.parts))
    return scores


def _totals(found: Mapping[str, Hits], weights: Weights) -> dict[int, float]:
    if len(found) == 1:
        return {page_id: hit.score for hits in found.values() for page_id, hit in hits.items()}
    totals: dict[int, float] = {}
    whole = sum(weights.shares.get(name, 0.0) for name in found)
    for name, weight in weights.shares.items():
        for page_id, hit in found.get(name, {}).items():
            totals[page_id] = totals.get(page_id, 0.0) + weight / whole * hit.score
    for name in found.keys() - weights.shares.keys():
        for page_id, hit in found[name].items():
            known = totals.get(page_id, 0.0)
            if hit.gain is not None:
                totals[page_id] = known + weights.gains[name] * hit.gain
            else:  # a page it has not seen yet is judged by the others alone
                totals[page_id] = (1 - weights.blends[name]) * known + weights.blends[name] * hit.score
    return totals
