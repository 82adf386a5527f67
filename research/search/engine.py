"""The engine: runs the legs it is given side by side, fuses what they find, and lets boosters look at the order.

    question → rewriters → legs → fuse → boosters → pages with their text

It knows no leg, rewriter or booster by name. A leg that fails is named in `coverage`, and the rest answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from research.errors import CtxError, UsageError
from research.models import Coverage, LegCoverage, LegScore, Question, Rewrite
from research.search.fusion import Ranked, Weights, fuse, leg_scores, ranks_of
from research.search.legs import Hits, Leg
from research.store.catalog.page_vectors import count_unseen
from research.store.catalog.pages import StoredPage, get_pages, get_pages_with_text, page_ids_of, places_of, totals
from research.store.catalog.reader import Reader

# Deep enough that a page good in both legs is seen by one of them, shallow enough to stay quick.
_DEPTH = 100


class Rewriters(Protocol):
    """What changes the text that is searched, and says so."""

    def before(self, reader: Reader, text: str) -> tuple[str, list[Rewrite]]:
        """The text to search, and what was done to make it of the question."""
        ...

    def expand(self, reader: Reader, text: str, ranked: Sequence[Ranked]) -> Rewrite | None:
        """A longer question by which to rank the pages inside some of the documents that the plain one found."""
        ...

    def merge(self, plain: Sequence[Ranked], expanded: Sequence[Ranked], rewrite: Rewrite) -> list[Ranked]:
        """The plain ranking with those documents' pages in the order of the expanded one."""
        ...


class Booster(Protocol):
    """What changes the order of what was found. Its name stands among the legs of the pages it moved."""

    @property
    def name(self) -> str: ...

    def boost(self, reader: Reader, text: str, ranked: Sequence[Ranked]) -> tuple[list[Ranked], Collection[int]]:
        """The pages in their new order, and which of them it moved. Pages that no leg found may join."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A page with its text, its score and how each leg saw it."""

    page: StoredPage
    text: str  # its markdown; empty for candidates after the results
    score: float  # the weighted sum, 0 to 1
    legs: dict[str, LegScore]


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    found: list[Found]
    coverage: Coverage
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)
    candidates: list[Found] = field(default_factory=list)  # every page that a leg named, where that was asked for


@dataclass(slots=True)
class _LegRun:
    """One leg at work on one question."""

    leg: Leg
    pages: Collection[int] = ()  # that it found itself
    hits: Hits = field(default_factory=dict)
    failure: str = ""
    seconds: float = 0.0

    def attempt(self, step: Callable[[_LegRun], None]) -> None:
        """Whatever happens in a leg, the others answer and coverage tells."""
        if self.failure:
            return
        started = time.perf_counter()
        try:
            step(self)
        except CtxError as error:
            self.failure = error.message
        except Exception as error:  # noqa: BLE001
            self.failure = f"{type(error).__name__}: {error}"
        self.seconds += time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class _Ranking:
    runs: list[_LegRun]
    ranked: list[Ranked]

    def leg_scores(self, page_ids: Sequence[int]) -> list[dict[str, LegScore]]:
        """How each leg saw each of these pages."""
        found = {run.leg.name: run.hits for run in self.runs if not run.failure}
        ranks = {run.leg.name: ranks_of(run.hits, run.pages) for run in self.runs if not run.failure}
        return [leg_scores(page_id, found, ranks) for page_id in page_ids]


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
    ) -> None:
        """`modes` names the legs that each mode asks."""
        self._legs = {leg.name: leg for leg in legs}
        self._modes = modes
        self._weights = weights
        self._rewriters = rewriters
        self._boosters = boosters

    def run(self, reader: Reader, question: Question, limit: int, *, everything: bool = False) -> SearchOutcome:
        """The best `limit` pages; `everything` also brings the candidates that come after them."""
        legs, off = self._asked(reader, question)
        if not question.text.strip() or limit <= 0:
            return SearchOutcome([], _coverage(reader, [], [], []))
        started = time.perf_counter()
        text, rewrites = self._rewriters.before(reader, question.text)
        question = question.searching(text)
        ranking = self._rank(reader, question, legs, max(_DEPTH, limit))
        ranked, moved = ranking.ranked, dict[int, str]()
        if len(legs) > 1:  # a leg alone shows what it finds by itself
            ranked, expansion = self._expanded(reader, question, legs, ranking)
            rewrites += [expansion] if expansion else []
            for booster in self._boosters:
                ranked, pages = booster.boost(reader, text, ranked)
                moved.update(dict.fromkeys(pages, booster.name))
        candidates = _with_pages(reader, ranked if everything else ranked[:limit], limit, ranking, moved)
        timings = {run.leg.name: run.seconds for run in ranking.runs} | {"search": time.perf_counter() - started}
        coverage = _coverage(reader, ranking.runs, off, question.notes)
        return SearchOutcome(
            candidates[:limit], coverage, timings, text, rewrites, candidates if everything else []
        )

    def _asked(self, reader: Reader, question: Question) -> tuple[list[Leg], list[LegCoverage]]:
        """The legs of the mode; those that this index has no side for are off, unless one is asked for alone."""
        if question.mode not in self._modes:
            raise UsageError(f"unknown search mode {question.mode!r}", hint="choose one of: " + ", ".join(self._modes))
        legs = [self._legs[name] for name in self._modes[question.mode]]
        reasons = {leg.name: leg.why_off(reader) for leg in legs} if len(legs) > 1 else {}
        off = [LegCoverage(name, "off", reason) for name, reason in reasons.items() if reason]
        return [leg for leg in legs if not reasons.get(leg.name)], off

    def _rank(self, reader: Reader, question: Question, legs: Sequence[Leg], depth: int) -> _Ranking:
        """Ask every leg for its pages, have every leg score the pages of all, and add up."""
        runs = [_LegRun(leg) for leg in legs]
        if question.documents is None:

            def find(run: _LegRun) -> None:
                run.pages = run.leg.candidates(reader, question, depth)

            _side_by_side(_chains(runs), find)
            pages = sorted({page_id for run in runs if not run.failure for page_id in run.pages})
        else:
            # Inside a few documents every page is scored: exact, and quicker than filtering neighbours.
            pages = sorted(page_ids_of(reader, question.documents))

        def score(run: _LegRun) -> None:
            run.hits = run.leg.score(reader, question, pages)
            run.pages = run.pages if question.documents is None else run.hits

        if question.documents is None:
            # One after the other: each is a millisecond or two, and threads would spend more waiting for each other.
            for run in runs:
                run.attempt(score)
        else:
            _side_by_side(_chains(runs), score)
        found = {run.leg.name: run.hits for run in runs if not run.failure}
        return _Ranking(runs, fuse(found, places_of(reader, pages), self._weights) if found else [])

    def _expanded(
        self, reader: Reader, question: Question, legs: Sequence[Leg], plain: _Ranking
    ) -> tuple[list[Ranked], Rewrite | None]:
        """The ranking as a rewriter's longer question changes it inside the documents it names."""
        rewrite = self._rewriters.expand(reader, question.wording, plain.ranked)
        if rewrite is None:
            return plain.ranked, None
        longer = replace(question.searching(rewrite.after), documents=rewrite.documents)
        expanded = self._rank(reader, longer, legs, _DEPTH)
        return self._rewriters.merge(plain.ranked, expanded.ranked, rewrite), rewrite


def _chains(runs: Sequence[_LegRun]) -> list[list[_LegRun]]:
    """Legs that can work side by side; one that follows another comes after it."""
    chains: list[list[_LegRun]] = []
    for run in runs:
        before = next((chain for chain in chains if chain[-1].leg.name == run.leg.follows), None)
        if before is None:
            chains.append([run])
        else:
            before.append(run)
    return chains


def _side_by_side(chains: Sequence[Sequence[_LegRun]], step: Callable[[_LegRun], None]) -> None:
    """Each chain in a thread of its own."""

    def work(chain: Sequence[_LegRun]) -> None:
        for run in chain:
            run.attempt(step)

    threads = [threading.Thread(target=work, args=(chain,), daemon=True) for chain in chains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _with_pages(
    reader: Reader, ranked: Sequence[Ranked], limit: int, ranking: _Ranking, moved: Mapping[int, str]
) -> list[Found]:
    page_ids = [entry.page_id for entry in ranked]
    pages = get_pages_with_text(reader, page_ids[:limit])
    pages |= {page_id: (page, "") for page_id, page in get_pages(reader, page_ids[limit:]).items()}
    found = []
    for entry, legs in zip(ranked, ranking.leg_scores(page_ids), strict=True):
        score = min(1.0, max(0.0, entry.score))
        if entry.page_id in moved:
            legs[moved[entry.page_id]] = LegScore(None, score, {"place": score})
        found.append(Found(*pages[entry.page_id], score, legs))
    return found


def _coverage(
    reader: Reader, runs: Sequence[_LegRun], off: Sequence[LegCoverage], notes: Sequence[str]
) -> Coverage:
    """What an answer rests on: which legs took part, and which pages some of them cannot see yet."""
    legs = [LegCoverage(run.leg.name, "failed" if run.failure else "ok", run.failure) for run in runs]
    counted = totals(reader)
    return Coverage(
        legs=[*legs, *off],
        notes=list(dict.fromkeys(notes)),
        pages=counted.pages,
        pages_without_vectors=counted.pages_without_vectors,
        pages_without_text=counted.pages_without_text,
        pages_without_visual=count_unseen(reader),
    )
