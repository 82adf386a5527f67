"""How often a page with a score really answers: the curve that turns a sum into `Item.score`, fitted and checked.

Of every set the first ten pages of its own questions, and of as many that belong to other sets and have no answer here.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest import ingest
from research.evaluation.questions import Question, document_key, read_questions
from research.index import Index
from research.settings import Settings
from research.sources.documents import MODES, calibrated
from tests.bench.table import line, title

_QUESTIONS = 80  # of a set
_BINS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 1.01)

Floats = NDArray[np.float64]


def run(sets: Path) -> None:
    names = [path.parent.name for path in sorted(sets.glob("*/qrels.jsonl")) if (path.parent / "pdfs").is_dir()]
    if not names:
        return
    title("Calibration of scores (development sets, half of the questions foreign)")
    questions = {name: read_questions(sets / name / "qrels.jsonl") for name in names}
    pages: dict[str, list[tuple[float, bool]]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            index = Index(Path(folder) / name, Settings(images=False))
            ingest(index, [sets / name / "pdfs"])
            own = questions[name][:_QUESTIONS]
            foreign = [q for other in names if other != name for q in questions[other]][:: len(names)][: len(own)]
            with index:
                for mode in MODES:
                    pages[mode] += _pages(index, mode, own)
                    pages[mode] += [(score, False) for score, _ in _pages(index, mode, foreign)]
    for mode, found in pages.items():
        _report(mode, np.array([score for score, _ in found]), np.array([good for _, good in found], dtype=float))


def _pages(index: Index, mode: str, questions: list[Question]) -> list[tuple[float, bool]]:
    found = []
    for question in questions:
        gold = {(document_key(document), page) for document, page in question.gold}
        for each in index.rank(question.query, 10, mode).found:
            found.append((each.score, (document_key(each.page.filename), each.page.page) in gold))
    return found


def _report(mode: str, totals: Floats, good: Floats) -> None:
    steepness, middle = fit(totals, good)
    line(f"{mode}: fitted", f"{steepness:.1f}, {middle:.2f}", "steepness, middle")
    scores = np.array([calibrated(float(total), mode) for total in totals])
    for low, high in pairwise(_BINS):
        inside = (scores >= low) & (scores < high)
        if inside.any():
            what = f"{mode}: scores of {low:.2f} to {min(1.0, high):.2f}, {int(inside.sum())} pages"
            line(what, f"{good[inside].mean():.2f} good", f"told {scores[inside].mean():.2f}")


def fit(totals: Floats, good: Floats) -> tuple[float, float]:
    """Steepness and middle of the logistic curve of greatest likelihood, by Newton's method."""
    x = np.stack([totals, np.ones_like(totals)], axis=1)
    weights = np.zeros(2)
    for _ in range(50):
        told = 1 / (1 + np.exp(-x @ weights))
        hessian = (x * (told * (1 - told))[:, None]).T @ x + 1e-6 * np.eye(2)
        step = np.linalg.solve(hessian, x.T @ (good - told))
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return float(weights[0]), float(-weights[1] / weights[0])
