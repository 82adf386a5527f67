"""Times that a question names."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from research.search.dates import Asked, nearness, times_in

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What happened on 4 August, 2023?", [Asked(8, 2023, 4)]),
        ("on the 8th of December 2023", [Asked(12, 2023, 8)]),
        ("on August 4th", [Asked(8, 0, 4)]),
        ("in January 2024", [Asked(1, 2024)]),
        ("in May", [Asked(5)]),
        ("You may march in", []),
        ("since Sept. 2020", [Asked(9, 2020)]),
        ("on 2023-08-04", [Asked(8, 2023, 4)]),
        ("in 2023-08", [Asked(8, 2023)]),
        ("am 04.08.2023", [Asked(8, 2023, 4)]),
        ("31.13.2023", []),
        ("in 2023", []),
        ("chapter 4 of the book", []),
        ("yesterday", [Asked(first=date(2026, 11, 17), last=date(2026, 11, 17))]),
        ("today", [Asked(first=date(2026, 11, 18), last=date(2026, 11, 18))]),
        ("last week", [Asked(first=date(2026, 11, 9), last=date(2026, 11, 15))]),
        ("this month", [Asked(first=date(2026, 11, 1), last=date(2026, 11, 18))]),
        ("last year", [Asked(first=date(2025, 1, 1), last=date(2025, 12, 31))]),
        ("a week ago", [Asked(first=date(2026, 11, 8), last=date(2026, 11, 14))]),
        ("two months ago", [Asked(first=date(2026, 9, 4), last=date(2026, 10, 4))]),
        ("99 years ago", [Asked(first=date(1927, 6, 14), last=date(1928, 6, 12))]),
    ],
)
def test_what_a_question_names(question: str, expected: list[Asked]) -> None:
    assert times_in(question, NOW) == expected


def _seconds(*days: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([datetime.fromisoformat(f"{day}T10:00:00+00:00").timestamp() for day in days])


def test_how_near_a_memory_is() -> None:
    created = _seconds("2023-08-04", "2023-08-05", "2023-08-09", "2023-08-30", "2022-08-04", "2023-01-01")
    assert nearness([Asked(8, 2023, 4)], created).tolist() == [1.0, 1.0, 0.6, 0.3, 0.0, 0.0]
    assert nearness([Asked(8, 0, 4)], created).tolist() == [1.0, 1.0, 0.6, 0.3, 1.0, 0.0]
    assert nearness([Asked(8, 2023)], created).tolist() == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    stretch = Asked(first=date(2022, 1, 1), last=date(2022, 12, 31))
    assert nearness([stretch], created).tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert nearness([Asked(2, 2023, 30)], created).tolist() == [0.0] * 6, "there is no such day"
