"""What a score means: how likely it is that an item answers the question, 0 to 1, in every source and at every rank.

    score = 1 / (1 + exp(-(ln(total) · first + cosine · second + ln(searched) · third + fourth)))

The evidence is the item's own: the sum by which it ranks (of a memory that of its words and vectors), its cosine with
the question, and among how many it was found, for the more there are, the more fit by chance. `make calibrate` fits the
numbers in curves.toml, for each source with vectors and by words alone; `make bench ONLY=reliability` shows on data
held apart how often a score is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FLOOR = 0.2
"""What is less likely to answer is shown by no door that shows several sources, or memories. At .15 a twentieth more of
what answers would be shown, and half as much again for questions that nothing answers."""

POOL = 20
"""Items that a source calibrates together, however few are wanted: so a score does not depend on the limit."""

Curves = Mapping[str, Sequence[float]]
"""The weights of the features, by situation."""

_LEAST = 0.001  # of a sum: it has a logarithm


class Evidence(NamedTuple):
    """What speaks for an item. `cosine`: None where it was found by its words alone."""

    total: float
    cosine: float | None


def features(evidence: Evidence, searched: int) -> tuple[float, float, float, float]:
    """What a curve weighs, in the order of its numbers."""
    return math.log(max(evidence.total, _LEAST)), evidence.cosine or 0.0, math.log(max(1, searched)), 1.0


def calibrate(
    source: str, found: Sequence[Evidence], searched: int, *, alone: str = "", curves: Curves | None = None
) -> list[float]:
    """The scores of items in the order of their ranking, which stays: scores that would rise share their mean.
    `alone`: the one leg of documents that was asked. `curves`: others than those of the source."""
    curves = curves or _curves()[source]
    steps: list[tuple[float, int]] = []
    for each in found:
        curve = curves[alone or ("words" if each.cosine is None else "vectors")]
        odds = sum(weight * what for weight, what in zip(curve, features(each, searched), strict=True))
        score, count = 1.0 / (1.0 + math.exp(-odds)), 1
        while steps and steps[-1][0] < score:
            above, several = steps.pop()
            score, count = (score * count + above * several) / (count + several), count + several
        steps.append((score, count))
    return [score for score, count in steps for _ in range(count)]


@cache
def _curves() -> Mapping[str, Curves]:
    import tomllib

    text = Path(__file__).with_name("curves.toml").read_text("utf-8")
    curves: Mapping[str, Curves] = tomllib.loads(text)["curves"]
    return curves
