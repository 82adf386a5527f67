"""Fusion: a weighted sum that depends on scores and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.search.engine import fuse, leg_scores
from research.search.legs import Hit, Hits, Ranked, Weights

PAGES = range(1, 9)
SCORES = st.floats(min_value=-1, max_value=1.5, allow_nan=False).map(lambda value: round(value, 6))
HITS = st.dictionaries(st.sampled_from(PAGES), SCORES, max_size=8).map(
    lambda scores: {page: Hit(score) for page, score in scores.items()}
)
# Names and pages may agree between documents; the id never does.
ORDER = {page: ("same.pdf", page % 2, f"{page:016x}") for page in PAGES}


def _fuse(found: dict[str, Hits]) -> list[Ranked]:
    return fuse(found, ORDER)


@given(HITS, HITS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_never_matters(lexical: Hits, dense: Hits, random: object) -> None:
    def shuffled(hits: Hits) -> Hits:
        items = list(hits.items())
        random.shuffle(items)  # type: ignore[attr-defined]
        return dict(items)

    straight = _fuse({"lexical": lexical, "dense": dense})
    other = _fuse({"dense": shuffled(dense), "lexical": shuffled(lexical)})
    assert [page.page_id for page in straight] == [page.page_id for page in other]


@given(HITS, HITS)
def test_every_page_of_every_leg_comes_once_best_first(lexical: Hits, dense: Hits) -> None:
    fused = _fuse({"lexical": lexical, "dense": dense})
    assert sorted(page.page_id for page in fused) == sorted(lexical.keys() | dense.keys())
    scores = [round(page.score, 6) for page in fused]
    assert scores == sorted(scores, reverse=True)
    found = {"lexical": lexical, "dense": dense}
    seen = leg_scores({name: (hits, ()) for name, hits in found.items()}, [page.page_id for page in fused])
    for page, scores in zip(fused, seen, strict=True):
        assert set(scores) == {name for name, hits in found.items() if page.page_id in hits}


@given(HITS, HITS, st.sampled_from(PAGES), st.floats(min_value=0.001, max_value=1))
def test_a_better_score_never_lowers_a_page(lexical: Hits, dense: Hits, page_id: int, more: float) -> None:
    lexical = {**lexical, page_id: lexical.get(page_id, Hit(0.1))}
    raised = {**lexical, page_id: Hit(lexical[page_id].score + more)}

    def place(hits: Hits) -> int:
        return [page.page_id for page in _fuse({"lexical": hits, "dense": dense})].index(page_id)

    assert place(raised) <= place(lexical)


@given(HITS, st.sampled_from(["lexical", "dense", "visual"]))
def test_a_leg_alone_keeps_its_scores_and_its_order(hits: Hits, name: str) -> None:
    fused = _fuse({name: hits})
    assert [page.score for page in fused] == [hits[page.page_id].score for page in fused]
    scores = [page.score for page in fused]
    assert scores == sorted(scores, reverse=True)


def test_pages_that_are_gone_are_left_out() -> None:
    assert [page.page_id for page in fuse({"dense": {1: Hit(0.5), 99: Hit(0.9)}}, ORDER)] == [1]


def test_nothing_in_nothing_out() -> None:
    assert fuse({}, {}) == []


def test_a_page_only_scored_afterwards_has_no_rank() -> None:
    hits = {1: Hit(0.4), 2: Hit(0.5), 3: Hit(0.9)}
    assert [scores["dense"].rank for scores in leg_scores({"dense": (hits, [1, 2])}, [1, 2, 3])] == [2, 1, None]


def test_a_gain_adds_to_the_others_and_a_blend_takes_its_share() -> None:
    weights = Weights(shares={"lexical": 0.5, "dense": 0.5}, gains={"lines": 0.2}, blends={"lines": 0.25})
    text = {"lexical": {1: Hit(0.4), 2: Hit(0.4)}, "dense": {1: Hit(0.8), 2: Hit(0.8)}}
    gained = fuse({**text, "lines": {1: Hit(0.9, gain=0.1)}}, ORDER, weights)
    assert [(page.page_id, round(page.score, 6)) for page in gained] == [(1, 0.62), (2, 0.6)]
    blended = fuse({**text, "lines": {1: Hit(0.2)}}, ORDER, weights)
    assert [(page.page_id, round(page.score, 6)) for page in blended] == [(2, 0.6), (1, 0.5)]
