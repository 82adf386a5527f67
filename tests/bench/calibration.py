"""Scores: the curves that make them of evidence, fitted anew, and how often a score is right on data held apart.

make calibrate                 fits every curve and writes research/search/curves.toml
make bench ONLY=reliability    tells of each source what scores say and what is so: each third of the groups in turn is
                               held apart, and scored by a curve of the others
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import research.search.calibration as scores
from research.search import calibrate
from research.search.calibration import FLOOR, features
from tests.bench.asked import Asked, everything
from tests.bench.table import line, title

CURVES = Path(scores.__file__).with_name("curves.toml")
FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.01)
_UNFITTED = "visual = [3.8, 0.0, 0.0, 0.46, 0.8]  # not fitted: there are no weights of a visual model to be had"

# Experiences may recur, and then each of them answers; ours were written to differ, so they cannot tell.
_SEVERAL = ("experiences",)

Floats = NDArray[np.float64]


def run() -> None:
    title("Reliability of scores: what is so / what was told, on groups held apart; goal: within .10")
    for (source, situation), asked in _by_kind(everything()).items():
        _report(f"{source}, {situation}", asked)


def _report(what: str, asked: Sequence[Asked]) -> None:
    told: list[float] = []
    right: list[bool] = []
    best: list[float] = []  # of questions that nothing answers
    groups = sorted({each.group for each in asked})
    for third in range(3):
        held = set(groups[third::3])
        curve = fitted([each for each in asked if each.group not in held])
        for each in (each for each in asked if each.group in held):
            evidence, alone = [entry for entry, _ in each.found], each.situation
            mine = calibrate(each.source, evidence, each.searched, alone=alone, curves={alone: curve})
            told += mine
            right += [good for _, good in each.found]
            best += [] if each.answered else [max(mine, default=0.0)]
    says, so = np.array(told), np.array(right, float)
    for low, high in pairwise(FIFTHS):
        inside = (says >= low) & (says < high)
        if inside.any():
            figure = f"{so[inside].mean():.2f} / {says[inside].mean():.2f}"
            line(f"{what}: {low:.1f} to {min(high, 1.0):.1f}", figure, f"{int(inside.sum())} items")
    line(f"{what}: of what answers, below the floor", f"{(says[so > 0] < FLOOR).mean():.2f}", f"{int(so.sum())} items")
    line(f"{what}: of what nothing answers, something above", f"{np.mean(np.array(best) >= FLOOR):.2f}")


def _by_kind(asked: Iterable[Asked]) -> dict[tuple[str, str], list[Asked]]:
    found: dict[tuple[str, str], list[Asked]] = {}
    for each in asked:
        found.setdefault((each.source, each.situation), []).append(each)
    return found


def fit(rows: Floats, good: Floats, counts: Floats | None = None) -> Floats:
    """The logistic regression of greatest likelihood, by Newton's method; `counts` is what each row weighs."""
    weights = np.zeros(rows.shape[1])
    counts = np.ones(len(good)) if counts is None else counts
    for _ in range(50):
        told = 1 / (1 + np.exp(-rows @ weights))
        hessian = (rows * (counts * told * (1 - told))[:, None]).T @ rows + 1e-6 * np.eye(len(weights))
        step = np.linalg.solve(hessian, rows.T @ (counts * (good - told)))
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def fitted(asked: Sequence[Asked]) -> list[float]:
    """The curve of these: of greatest likelihood, rivals from 0 to 1. None falls with its evidence."""
    from scipy.optimize import minimize

    rows = np.array([features(evidence, each.searched) for each in asked for evidence, _ in each.found])
    good = np.array([float(right) for each in asked for _, right in each.found])
    question = np.array([number for number, each in enumerate(asked) for _ in each.found])

    def unlikelihood(curve: Floats) -> float:
        odds = np.exp(np.clip(rows @ curve[:-1], -30, 30))
        others = np.bincount(question, odds)[question] - odds
        told = np.clip(odds / (1 + odds + _share(curve[-1]) * others), 1e-9, 1 - 1e-9)
        return float(-(good * np.log(told) + (1 - good) * np.log(1 - told)).mean() + 1e-6 * (curve**2).sum())

    begun = np.where(rows.any(axis=0), (2.0, 5.0, -0.5, -1.0), 0.0)
    rivals = (-30, -30) if asked[0].source in _SEVERAL else (None, None)
    bounds = [(0, None), (0, None), (None, None), (None, None), rivals]
    curve = minimize(unlikelihood, np.append(begun, rivals[0] or 0.0), method="L-BFGS-B", bounds=bounds).x
    return [round(float(weight), 2) for weight in (*curve[:-1], _share(curve[-1]))]


def _share(number: float) -> float:
    return float(1 / (1 + np.exp(-number)))


def main() -> int:
    """Fit all curves and write them."""
    curves: dict[str, dict[str, list[float]]] = {}
    counts: list[str] = []
    for (source, situation), asked in _by_kind(everything()).items():
        curves.setdefault(source, {})[situation] = fitted(asked)
        count = f"{len(asked)} questions, {sum(each.answered for each in asked)} of them with answers"
        counts.append(f"#   {source}, {situation}: {count}")
        line(f"{source}, {situation}", " ".join(f"{weight:g}" for weight in curves[source][situation]))
    CURVES.write_text(_written(curves, counts), "utf-8")
    line("written", CURVES.name, "what it is worth: make bench ONLY=reliability")
    return 0


def _written(curves: Mapping[str, Mapping[str, Sequence[float]]], counts: Sequence[str]) -> str:
    lines = [
        "# What makes scores of evidence (calibration.py): ln(sum), cosine, ln(searched), a constant; rivals.",
        f"# Written by `make calibrate` on {datetime.now(UTC):%Y-%m-%d}, from what tests/bench/asked.py asks:",
        *counts,
    ]
    for source, situations in curves.items():
        lines += ["", f"[curves.{source}]", *(f"{name} = {list(curve)}" for name, curve in situations.items())]
        lines += [_UNFITTED] if source == "documents" else []
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
