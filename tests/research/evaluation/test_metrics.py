"""The figures agree with an independent computation by their definitions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.evaluation.scoring import METRICS, figures, percentile, score

pages = st.tuples(st.sampled_from("ab"), st.integers(1, 9))


@given(st.lists(pages, unique=True, max_size=18), st.sets(pages, min_size=1, max_size=7))
def test_every_figure_is_what_its_name_says(ranked: list[tuple[str, int]], gold: set[tuple[str, int]]) -> None:
    ranks = sorted(ranked.index(page) + 1 for page in gold if page in ranked)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, 6) if rank <= len(gold))
    wanted = {
        "hit@1": 1.0 if ranks and ranks[0] <= 1 else 0.0,
        "hit@5": 1.0 if ranks and ranks[0] <= 5 else 0.0,
        "hit@10": 1.0 if ranks and ranks[0] <= 10 else 0.0,
        "MRR@10": 1 / ranks[0] if ranks and ranks[0] <= 10 else 0.0,
        "nDCG@5": sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 5) / ideal,
    }
    assert score(ranked, gold) == pytest.approx(wanted)


def test_means_and_intervals() -> None:
    scores = [dict.fromkeys(METRICS, float(n < 30)) for n in range(100)]
    found = figures(scores)
    assert list(found) == list(METRICS)
    for figure in found.values():
        assert figure.mean == pytest.approx(0.3)
        # The binomial interval of 30 in 100.
        assert figure.low == pytest.approx(0.3 - 1.96 * math.sqrt(0.21 / 100), abs=0.02)
        assert figure.high == pytest.approx(0.3 + 1.96 * math.sqrt(0.21 / 100), abs=0.02)
    assert figures(scores) == found, "the same run prints the same intervals"


def test_one_question_has_no_spread() -> None:
    (figure, *_) = figures([dict.fromkeys(METRICS, 1.0)]).values()
    assert (figure.low, figure.mean, figure.high) == (1.0, 1.0, 1.0)


def test_percentiles() -> None:
    values = [float(n) for n in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95)) == (50.0, 95.0)
    assert percentile([3.0], 0.95) == 3.0
