"""What is of use beside the best: a floor, and parts of the best scores."""

from __future__ import annotations

import pytest

from research.context import least_scores


def test_far_below_the_best_of_all_or_of_its_kind_is_not_shown() -> None:
    least = least_scores([("memory", 0.9), ("code", 0.5), ("code", 0.3), ("page", 0.1)], 0.15)
    assert least == pytest.approx({"memory": 0.27, "code": 0.34, "page": 0.27})
    assert least_scores([("code", 0.2)], 0.15) == pytest.approx({"code": 0.15}), "never below the floor"
    assert least_scores([], 0.15) == {}
