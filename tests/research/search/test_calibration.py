"""Scores mean how likely an item answers: the same in every source, at every rank, and they change no order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.search.calibration import Evidence, calibrate

SITUATIONS = [
    *((source, alone) for source in ("memories", "experiences", "code", "commits", "documents") for alone in ("",)),
    ("documents", "dense"),
    ("documents", "visual"),
]
SUMS = st.lists(
    st.tuples(st.floats(-0.1, 3), st.none() | st.floats(-0.2, 1)).map(lambda each: Evidence(*each)), max_size=20
)


@pytest.mark.parametrize(("source", "alone"), SITUATIONS)
@given(found=SUMS, searched=st.integers(0, 10**6))
def test_scores_are_shares_and_never_rise(source: str, alone: str, found: list[Evidence], searched: int) -> None:
    scores = calibrate(source, found, searched, alone=alone)
    assert len(scores) == len(found)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(("source", "alone"), SITUATIONS)
def test_more_evidence_is_a_higher_score_whatever_the_rank(source: str, alone: str) -> None:
    first, other = Evidence(0.9, 0.6), Evidence(0.3, 0.2)
    [strong], [weak] = calibrate(source, [first], 100, alone=alone), calibrate(source, [other], 100, alone=alone)
    assert strong > weak
    one, two, last = calibrate(source, [first, first, other], 100, alone=alone)
    assert one == two > last


def test_as_good_rivals_share_what_one_of_them_answers_and_several_commits_may_answer() -> None:
    evidence = Evidence(0.9, 0.6)
    pages, commits = (calibrate(source, [evidence] * 4, 100) for source in ("documents", "commits"))
    assert 0.15 < pages[0] < 0.35
    assert commits[0] == pytest.approx(calibrate("commits", [evidence], 100)[0])


def test_where_the_order_goes_against_the_evidence_the_score_is_shared() -> None:
    weak, strong = Evidence(0.3, 0.2), Evidence(0.3, 0.6)
    right = calibrate("memories", [strong, weak], 20)
    assert right[0] > right[1]
    assert calibrate("memories", [weak, strong], 20) == pytest.approx([sum(right) / 2] * 2)


def test_without_vectors_words_have_a_curve_of_their_own() -> None:
    [by_words], [unlike] = (
        calibrate("memories", [Evidence(0.3, None)], 20),
        calibrate("memories", [Evidence(0.3, 0.0)], 20),
    )
    assert by_words > unlike
