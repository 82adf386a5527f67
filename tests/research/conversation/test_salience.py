"""Salience as both seeds have it, and times as they come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.conversation.salience import Candidate, Scored, apply_salience, rank, recency_boost
from research.filters import read_time
from tests.research.conversation.making import NOW


@pytest.mark.parametrize(
    ("days", "boost"),
    # seed 000 §15.4, then what only seed 001 has
    [(0, 1.000), (1, 0.967), (7, 0.792), (14, 0.627), (30, 0.368), (60, 0.135), (90, 0.05)],
)
def test_the_recency_table(days: int, boost: float) -> None:
    told = (NOW - timedelta(days=days)).isoformat()
    assert recency_boost(told, NOW) == pytest.approx(boost, abs=0.0005 if days < 90 else 0.005)


@pytest.mark.parametrize(
    ("score", "days", "recency", "final"),
    [
        (0.95, 1, 0.97, 0.96),  # recent, high relevance
        (0.90, 60, 0.14, 0.67),  # old, high relevance
        (0.60, 2, 0.94, 0.70),  # recent, low relevance
        (0.55, 90, 0.05, 0.40),  # old, low relevance
    ],
)
def test_the_salience_table(score: float, days: int, recency: float, final: float) -> None:
    metadata = {"timestamp": (NOW - timedelta(days=days)).isoformat()}
    [scored] = apply_salience([Candidate("m", "text", score, metadata)], NOW)
    assert scored.recency == pytest.approx(recency, abs=0.005)
    assert scored.score == pytest.approx(final, abs=0.005)


@pytest.mark.parametrize(
    "told",
    [
        "2025-12-10T10:00:00Z",
        "2025-12-10T10:00:00+00:00",
        "2025-12-10T12:00:00+02:00",
        "2025-12-10T10:00:00",  # nobody says where: UTC
        " 2025-12-10 10:00:00 ",
        datetime(2025, 12, 10, 10, 0),
        datetime(2025, 12, 10, 4, 0, tzinfo=timezone(timedelta(hours=-6))),
        1765360800,
        1765360800.0,
        1765360800000,
    ],
)
def test_a_time_in_any_form_is_the_same_time(told: Any) -> None:
    assert read_time(told) == datetime(2025, 12, 10, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize("told", [None, "", "yesterday", "0000-00-00", {}, [], True, 1e300, float("nan"), "9" * 400])
def test_without_a_time_that_can_be_read_it_is_half(told: Any) -> None:
    assert recency_boost(told, NOW) == 0.5


def test_the_future_is_today_and_a_date_is_its_midnight() -> None:
    assert recency_boost("2031-01-01T00:00:00Z", NOW) == 1.0
    assert recency_boost("9999-12-31T23:59:59-12:00", NOW) in (0.5, 1.0)  # beyond the calendar in UTC
    assert read_time("2025-12-10") == datetime(2025, 12, 10, tzinfo=UTC)


def test_created_at_stands_in_for_a_timestamp() -> None:
    told = Candidate("m", "text", 1.0, {"created_at": (NOW - timedelta(days=30)).isoformat()})
    assert apply_salience([told], NOW)[0].recency == pytest.approx(0.368, abs=0.001)


@given(score=st.floats(0, 1), days=st.floats(0, 3650), older=st.floats(0.5, 3650))
def test_recent_memories_score_higher_than_old_ones(score: float, days: float, older: float) -> None:
    times = [NOW - timedelta(days=days), NOW - timedelta(days=days + older)]
    young, old = apply_salience([Candidate("m", "t", score, {"timestamp": time}) for time in times], NOW)
    assert young.score >= old.score
    assert 0.0 <= old.score <= young.score <= 1.0


def test_what_scores_the_same_is_ordered_by_relevance_and_then_as_it_came() -> None:
    scored = [Scored(Candidate(name, "t", score), 0.5, 0.5) for name, score in (("a", 0.1), ("b", 0.9), ("c", 0.9))]
    assert [each.candidate.id for each in rank(scored, 3)] == ["b", "c", "a"]
    assert [each.candidate.id for each in rank(scored, 1)] == ["b"]
    assert rank(scored, 0) == rank(scored, -1) == []
