"""What a score means: how likely it is that an item answers the question, 0 to 1, in every source and at every rank.

    odds  = exp(ln(total) · first + cosine · second + ln(searched) · third + fourth)
    score = odds / (1 + odds + rivals · odds of the others)

The evidence is the item's own: the sum by which it ranks (of a memory that of its words and vectors), its cosine with
the question, and among how many it was found, for the more there are, the more fit by chance. Where one of them answers
as a rule, as of pages and memories, others that fit as well take from it; where several do, as of commits, they do not.
`make calibrate` fits the five numbers in curves.toml, for each source with vectors and by words alone; `make bench
ONLY=reliability` shows on data held apart how often a score is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from research.settings import FLOOR

POOL = 10
"""Items that a source calibrates together, however few are wanted: so a score does not depend on the limit."""

Curves = Mapping[str, Sequence[float]]
"""By situation the weights of the features, and of rivals."""

_AS_WELL = 0.25  # of the best one's odds: rivals do not take what fits so well below the floor
_LEAST = 0.001  # of a sum: it has a logarithm
_MOST = 30.0  # of the logarithm of odds: there is no overflow


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
    own = [curves[alone or ("words" if each.cosine is None else "vectors")] for each in found]
    odds = [_odds(curve, each, searched) for curve, each in zip(own, found, strict=True)]
    together, best, steps = sum(odds[:POOL]), max(odds, default=0.0), list[tuple[float, int]]()
    for place, (each, curve) in enumerate(zip(odds, own, strict=True)):
        others = together - each if place < POOL else together
        score, count = each / (1.0 + each + curve[-1] * max(0.0, others)), 1
        if each >= _AS_WELL * best:  # who asks about what ten memories tell is shown them
            score = max(score, min(FLOOR, each / (1.0 + each)))
        while steps and steps[-1][0] < score:
            above, several = steps.pop()
            score, count = (score * count + above * several) / (count + several), count + several
        steps.append((score, count))
    return [score for score, count in steps for _ in range(count)]


def _odds(curve: Sequence[float], evidence: Evidence, searched: int) -> float:
    total = sum(weight * what for weight, what in zip(curve[:-1], features(evidence, searched), strict=True))
    return math.exp(max(-_MOST, min(_MOST, total)))


@cache
def _curves() -> Mapping[str, Curves]:
    import tomllib

    text = Path(__file__).with_name("curves.toml").read_text("utf-8")
    curves: Mapping[str, Curves] = tomllib.loads(text)["curves"]
    return curves
