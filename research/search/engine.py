"""SearchEngine: runs the legs side by side and fuses what they find."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from research.errors import CtxError, UsageError
from research.models import Coverage, LegCoverage, LegScore, MatchedRegion
from research.search.coverage import measure
from research.search.dense import DenseLeg, QuestionVectors
from research.search.fusion import fuse, ranks_of
from research.search.legs import Hit, Hits, Leg
from research.search.lexical import LexicalLeg
from research.search.named_pages import lift
from research.search.places import places_in
from research.search.ratios import spelled_out
from research.search.visual import VisualLeg
from research.search.wording import without_instructions
from research.store.catalog.pages import StoredPage, get_pages, page_ids_of, places_of
from research.store.client import ChromaClient

if TYPE_CHECKING:
    from research.encoders.base import TextEncoder

Mode = Literal["hybrid", "text", "visual", "lexical", "dense"]

_LEGS_OF: dict[str, tuple[str, ...]] = {
    "hybrid": ("lexical", "dense", "visual"),
    "text": ("lexical", "dense"),
    "visual": ("visual",),
    "lexical": ("lexical",),
    "dense": ("dense",),
}
# Deep enough that a page good in both legs is seen by one of them, shallow enough to stay quick.
_DEPTH = 100


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
    regions: list[MatchedRegion] = field(default_factory=list)
    visual_match: bool = False

    def result(self) -> SearchResult:
        metadata: dict[str, Any] = self.page.metadata()
        metadata["legs"] = {name: leg.__dict__ for name, leg in self.legs.items()}
        metadata["visual_match"] = self.visual_match
        metadata["regions"] = [asdict(region) for region in self.regions]
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
    candidates: list[Found] = field(default_factory=list)  # every page that a leg named, where that was asked for


@dataclass
class _LegRun:
    """One leg at work in a thread of its own."""

    leg: Leg
    task: Callable[[Leg], Hits]
    hits: Hits = field(default_factory=dict)
    failure: str = ""
    seconds: float = 0.0
    unscored: bool = False  # `hits` are the pages found, their scores come with those of the others' pages

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

    def __init__(
        self,
        chroma_client: ChromaClient,
        *,
        encoder: TextEncoder | None = None,
        device: str = "auto",
        named_encoders: Sequence[str] = (),
    ) -> None:
        """`device` is where a visual model runs, if one filled the index. `named_encoders` are those the user names,
        and so allows to be loaded, beside those named to an earlier ingest."""
        self.client = chroma_client
        questions = QuestionVectors(chroma_client, encoder, named_encoders)
        dense = DenseLeg(chroma_client, questions)
        self._visual = VisualLeg(chroma_client, dense, questions, device, named_encoders)
        self._lexical = LexicalLeg(chroma_client.catalog)
        self._legs: dict[str, Leg] = {
            "lexical": self._lexical,
            "dense": dense,
            "visual": self._visual,
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
        everything: bool = False,
    ) -> SearchOutcome:
        """`search` with its coverage and timings. `documents` restricts it to these ids; `everything` also brings the
        candidates that come after the results."""
        if search_mode not in get_args(Mode):
            raise UsageError(f"unknown search mode {search_mode!r}", hint="choose one of: " + ", ".join(get_args(Mode)))
        if not query.strip() or num_results <= 0:
            return SearchOutcome([], measure(self.client.catalog, []), {})
        started = time.perf_counter()
        names = _LEGS_OF[search_mode]
        off = self._visual.why_off() if search_mode == "hybrid" else ""
        query = _searched(query)
        legs = [name for name in names if not (off and name == "visual")]
        runs = self._run_legs(legs, query, max(_DEPTH, num_results), documents)
        candidates = self._fuse(runs, query, None if everything else num_results)
        found = candidates[:num_results]
        if any(run.leg is self._visual and not run.failure for run in runs):
            found = self._placed(found, query, num_results)
        timings = {f"{run.leg.name}": run.seconds for run in runs}
        timings["search"] = time.perf_counter() - started
        covered = [_coverage(run) for run in runs] + ([LegCoverage("visual", "off", off)] if off else [])
        coverage = measure(self.client.catalog, covered)
        return SearchOutcome(found, coverage, timings, candidates if everything else [])

    def places(self, query: str, page_id: int) -> tuple[list[MatchedRegion], str]:
        """Where on one page the answer to a question seems to stand, and why a visual model could not say, if so."""
        query = _searched(query)
        problem = ""
        if not self._visual.why_off() and not self._visual.shares_text:
            try:
                return self._visual.matched(query, [page_id])[page_id], ""
            except CtxError as error:
                problem = error.message
        return self._visual.matched_closely(query, page_id), problem

    def _run_legs(self, names: Sequence[str], query: str, depth: int, documents: Sequence[str] | None) -> list[_LegRun]:
        if documents is None:
            runs = [_LegRun(self._legs[name], lambda leg: leg.find(query, depth)) for name in names]
            for run in runs if len(runs) > 1 else ():
                if run.leg is self._lexical:
                    run.task = lambda _: dict.fromkeys(self._lexical.find_pages(query, depth), Hit(0.0))
                    run.unscored = True
            _side_by_side(self._groups(runs, lambda dense: self._visual.beyond(query, depth, dense)))
        else:
            # Inside a few documents every page is scored: exact, and quicker than filtering neighbours.
            pages = sorted(page_ids_of(self.client.catalog, documents))
            runs = [_LegRun(self._legs[name], lambda leg: leg.score(query, pages)) for name in names]
            _side_by_side(self._groups(runs, lambda dense: self._visual.beyond_of(query, pages, dense)))
        return runs

    def _groups(self, runs: list[_LegRun], beyond: Callable[[Hits], Hits]) -> list[list[_LegRun]]:
        """Legs that can work side by side. A visual leg that shares the text side's vectors comes after the dense one
        and goes `beyond` what that found."""
        dense = next((run for run in runs if run.leg.name == "dense"), None)
        visual = next((run for run in runs if run.leg is self._visual), None)
        if dense is None or visual is None:
            return [[run] for run in runs]
        if not self._visual.shares_text:
            import numpy  # noqa: F401  two threads that import it at once both fail

            return [[run] for run in runs]
        visual.task = lambda _: beyond(_sound_hits(dense))
        return [*([run] for run in runs if run is not dense and run is not visual), [dense, visual]]

    def _placed(self, found: list[Found], query: str, num_results: int) -> list[Found]:
        """With the places on each page that match, as the visual leg sees them."""
        regions = self._visual.matched(query, [entry.page.page_id for entry in found])
        placed = []
        for entry in found:
            rank = entry.legs["visual"].rank if "visual" in entry.legs else None
            match = rank is not None and rank <= num_results
            placed.append(replace(entry, regions=regions[entry.page.page_id], visual_match=match))
        return placed

    def _scoring_beyond(self, query: str, runs: list[_LegRun], candidates: set[int]) -> Callable[[Hits], Hits]:
        """The visual leg's scores of pages that only others found, from the dense leg's scores of the same."""
        found = {run.leg.name: run.hits for run in runs}

        def score(again: Hits) -> Hits:
            unseen = sorted(candidates - found["visual"].keys())
            return self._visual.beyond_of(query, unseen, {**again, **found["dense"]}) if unseen else {}

        return score

    def _fuse(self, runs: list[_LegRun], query: str, limit: int | None) -> list[Found]:
        """Give every candidate the score of every leg, then add up."""
        sound = [run for run in runs if not run.failure]
        candidates = {page_id for run in sound for page_id in run.hits}
        seconds = [_LegRun(run.leg, _scoring(query, sorted(candidates - _scored(run).keys()))) for run in sound]
        # One after the other: each is a millisecond or two, and threads would spend more waiting for each other.
        for group in self._groups(seconds, self._scoring_beyond(query, sound, candidates)):
            _run_all(group)
        ranks: dict[str, dict[int, int]] = {}
        found: dict[str, Hits] = {}
        for run, second in zip(sound, seconds, strict=True):
            run.seconds += second.seconds
            run.failure = second.failure
            found[run.leg.name] = {**second.hits, **_scored(run)}
            ranks[run.leg.name] = ranks_of({p: hit for p, hit in found[run.leg.name].items() if p in run.hits})
        known = places_of(self.client.catalog, sorted(candidates))
        places = places_in(query) if len(runs) > 1 else None  # a leg alone shows what it finds by itself
        fused = fuse(found, ranks, known, None if places else limit, shares_text=self._visual.shares_text)
        if places:
            documents = {page_id: doc_id for page_id, (_, _, doc_id) in known.items()}
            fused = lift(self.client.catalog, places, fused, documents)[:limit]
        pages = get_pages(self.client.catalog, [entry.page_id for entry in fused])
        sound_pages = (entry for entry in fused if entry.page_id in pages)  # one may have been removed just now
        return [Found(pages[entry.page_id], min(1.0, max(0.0, entry.score)), entry.legs) for entry in sound_pages]


def _searched(query: str) -> str:
    """The question as the legs get it."""
    return spelled_out(without_instructions(query))


def _scored(run: _LegRun) -> Hits:
    """The pages of a leg whose scores are known."""
    return {} if run.unscored else run.hits


def _scoring(query: str, unseen: list[int]) -> Callable[[Leg], Hits]:
    """The task of scoring pages that only other legs have found."""
    return lambda leg: leg.score(query, unseen) if unseen else {}


def _side_by_side(groups: Sequence[Sequence[_LegRun]]) -> None:
    """The first group in this thread, the others each in one of its own; inside a group one after the other."""
    threads = [threading.Thread(target=_run_all, args=(group,), daemon=True) for group in groups[1:]]
    for thread in threads:
        thread.start()
    for group in groups[:1]:
        _run_all(group)
    for thread in threads:
        thread.join()


def _run_all(runs: Sequence[_LegRun]) -> None:
    for run in runs:
        run()


def _sound_hits(run: _LegRun) -> Hits:
    """What a leg found, for another that builds on it and cannot without."""
    if run.failure:
        raise CtxError(run.failure)
    return run.hits


def _coverage(run: _LegRun) -> LegCoverage:
    return LegCoverage(run.leg.name, "failed" if run.failure else "ok", run.failure)
