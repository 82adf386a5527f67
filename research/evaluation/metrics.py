"""How good a ranking is: hit@k, MRR@10, nDCG@5 of one question, their means, and how far the means can be trusted."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from research.evaluation.questions import PageKey

METRICS = ("hit@1", "hit@5", "hit@10", "MRR@10", "nDCG@5")

_SAMPLES = 1000
_TAIL = 0.025  # on either side, for an interval of 95 %


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions and its bootstrap interval of 95 %."""

    mean: float
    low: float
    high: float


def score(ranked: Sequence[PageKey], gold: Collection[PageKey]) -> dict[str, float]:
    """One question's figures, by the names in `METRICS`. `ranked` holds no page twice."""
    right = [page in gold for page in ranked[:10]]
    rank = first_rank(ranked[:10], gold)
    gain = sum(_discount(n) for n, found in enumerate(right[:5]) if found)
    most = sum(_discount(n) for n in range(min(5, len(gold))))
    return {
        "hit@1": float(any(right[:1])),
        "hit@5": float(any(right[:5])),
        "hit@10": float(any(right)),
        "MRR@10": 0.0 if rank is None else 1 / rank,
        "nDCG@5": gain / most,
    }


def first_rank(ranked: Sequence[PageKey], gold: Collection[PageKey]) -> int | None:
    """Rank, from 1, of the first page that is gold."""
    return next((n for n, page in enumerate(ranked, start=1) if page in gold), None)


def figures(scores: Sequence[dict[str, float]]) -> dict[str, Figure]:
    """Every metric's mean over the questions; all of them see the same resamples, so they can be compared."""
    import numpy as np

    if not scores:
        return {}
    values = np.array([[one[name] for name in METRICS] for one in scores])
    chosen = np.random.default_rng(0).integers(0, len(scores), (_SAMPLES, len(scores)))
    means = np.stack([values[rows].mean(axis=0) for rows in chosen])
    low, high = np.quantile(means, [_TAIL, 1 - _TAIL], axis=0)
    columns = zip(METRICS, values.mean(axis=0), low, high, strict=True)
    return {name: Figure(float(mean), float(least), float(most)) for name, mean, least, most in columns}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def _discount(n: int) -> float:
    return 1 / math.log2(n + 2)
