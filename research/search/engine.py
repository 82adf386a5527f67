"""SearchEngine: runs the legs side by side and fuses what they find."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from research.errors import CtxError, UsageError
from research.models import Coverage, LegCoverage, LegScore
from research.search.coverage import measure
from research.search.dense import DenseLeg, QuestionVectors
from research.search.fusion import fuse, ranks_of
from research.search.legs import Hits, Leg
from research.search.lexical import LexicalLeg
from research.search.visual import VisualLeg
from research.store.client import ChromaClient
from research.store.pages import StoredPage, get_pages, page_ids_of, places_of

if TYPE_CHECKING:
    from research.encoders.base import TextEncoder

Mode = Literal["hybrid", "text", "visual", "lexical", "dense"]

_LEGS_OF: dict[str, tuple[str, ...]] = {
    "hybrid": ("lexical", "dense"),
    "text": ("lexical", "dense"),
    "visual": ("visual",),
    "lexical": ("lexical",),
    "dense": ("dense",),
}
# Deep enough that a page good in both legs is seen by one of them, shallow enough to stay quick.
_DEPTH = 200


class SearchResult(TypedDict):
    """One page found, as the contract has it: a plain dictionary."""

    doc_id: str
    page: int
    score: float
    filename: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A page with its score and how each leg saw it."""

    page: StoredPage
    score: float
    legs: dict[str, LegScore]

    def result(self) -> SearchResult:
        metadata: dict[str, Any] = self.page.metadata()
        metadata["legs"] = {name: leg.__dict__ for name, leg in self.legs.items()}
        return SearchResult(
            doc_id=self.page.doc_id,
            page=self.page.page,
            score=self.score,
            filename=self.page.filename,
            metadata=metadata,
        )


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    found: list[Found]
    coverage: Coverage
    timings: dict[str, float]


@dataclass
class _LegRun:
    """One leg at work in a thread of its own."""

    leg: Leg
    task: Callable[[Leg], Hits]
    hits: Hits = field(default_factory=dict)
    failure: str = ""
    seconds: float = 0.0

    def __call__(self) -> None:
        started = time.perf_counter()
        try:
            self.hits = self.task(self.leg)
        except CtxError as error:
            self.failure = error.message
        except Exception as error:  # noqa: BLE001  whatever happens in a leg, the others answer and coverage tells
            self.failure = f"{type(error).__name__}: {error}"
        self.seconds += time.perf_counter() - started


class SearchEngine:
    """Searches an open index. Safe to use for many questions; loads what it needs with the first."""

    def __init__(self, chroma_client: ChromaClient, *, encoder: TextEncoder | None = None) -> None:
        self.client = chroma_client
        questions = QuestionVectors(chroma_client, encoder)
        self._legs: dict[str, Leg] = {
            "lexical": LexicalLeg(chroma_client.catalog),
            "dense": DenseLeg(chroma_client, questions),
            "visual": VisualLeg(chroma_client, questions),
        }

    async def search(self, query: str, num_results: int = 10, search_mode: str = "hybrid") -> list[SearchResult]:
        """Ranked pages. Modes: hybrid, text, visual; lexical and dense for one leg alone."""
        import asyncio

        outcome = await asyncio.to_thread(self.run, query, num_results, search_mode)
        return [found.result() for found in outcome.found]

    def run(
        self,
        query: str,
        num_results: int = 10,
        search_mode: str = "hybrid",
        *,
        documents: Sequence[str] | None = None,
    ) -> SearchOutcome:
        """`search` with its coverage and timings. `documents` restricts it to these ids."""
        if search_mode not in get_args(Mode):
            raise UsageError(f"unknown search mode {search_mode!r}", hint="choose one of: " + ", ".join(get_args(Mode)))
        if not query.strip() or num_results <= 0:
            return SearchOutcome([], measure(self.client.catalog, []), {})
        started = time.perf_counter()
        runs = self._run_legs(_LEGS_OF[search_mode], query, max(_DEPTH, num_results), documents)
        found = self._fuse(runs, query, num_results)
        timings = {f"{run.leg.name}": run.seconds for run in runs}
        timings["search"] = time.perf_counter() - started
        coverage = measure(self.client.catalog, [_coverage(run) for run in runs])
        return SearchOutcome(found, coverage, timings)

    def _run_legs(self, names: Sequence[str], query: str, depth: int, documents: Sequence[str] | None) -> list[_LegRun]:
        if documents is None:
            runs = [_LegRun(self._legs[name], lambda leg: leg.find(query, depth)) for name in names]
        else:
            # Inside a few documents every page is scored: exact, and quicker than filtering neighbours.
            pages = sorted(page_ids_of(self.client.catalog, documents))
            runs = [_LegRun(self._legs[name], lambda leg: leg.score(query, pages)) for name in names]
        _side_by_side(runs)
        return runs

    def _fuse(self, runs: list[_LegRun], query: str, num_results: int) -> list[Found]:
        """Give every candidate the score of every leg, then add up."""
        sound = [run for run in runs if not run.failure]
        candidates = {page_id for run in sound for page_id in run.hits}
        ranks = {run.leg.name: ranks_of(run.hits) for run in sound}
        seconds = [_LegRun(run.leg, _scoring(query, sorted(candidates - run.hits.keys()))) for run in sound]
        _side_by_side(seconds)
        found: dict[str, Hits] = {}
        for run, second in zip(sound, seconds, strict=True):
            run.seconds += second.seconds
            run.failure = second.failure
            found[run.leg.name] = {**second.hits, **run.hits}
        fused = fuse(found, ranks, places_of(self.client.catalog, sorted(candidates)), num_results)
        pages = get_pages(self.client.catalog, [entry.page_id for entry in fused])
        sound_pages = (entry for entry in fused if entry.page_id in pages)  # one may have been removed just now
        return [Found(pages[entry.page_id], min(1.0, max(0.0, entry.score)), entry.legs) for entry in sound_pages]


def _scoring(query: str, unseen: list[int]) -> Callable[[Leg], Hits]:
    """The task of scoring pages that only other legs have found."""
    return lambda leg: leg.score(query, unseen) if unseen else {}


def _side_by_side(tasks: Sequence[Callable[[], None]]) -> None:
    """The first in this thread, the others each in one of its own."""
    threads = [threading.Thread(target=task, daemon=True) for task in tasks[1:]]
    for thread in threads:
        thread.start()
    for task in tasks[:1]:
        task()
    for thread in threads:
        thread.join()


def _coverage(run: _LegRun) -> LegCoverage:
    return LegCoverage(run.leg.name, "failed" if run.failure else "ok", run.failure)
