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
    pages: dict[str, list[tuple[float, int, bool]]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            index = Index(Path(folder) / name, Settings(images=False))
            ingest(index, [sets / name / "pdfs"])
            own = questions[name][:_QUESTIONS]
            foreign = [q for other in names if other != name for q in questions[other]][:: len(names)][: len(own)]
            with index:
                for mode in MODES:
                    pages[mode] += _pages(index, mode, own)
                    pages[mode] += [(total, rank, False) for total, rank, _ in _pages(index, mode, foreign)]
    for mode, found in pages.items():
        _report(mode, found)


def _pages(index: Index, mode: str, questions: list[Question]) -> list[tuple[float, int, bool]]:
    found = []
    for question in questions:
        gold = {(document_key(document), page) for document, page in question.gold}
        for rank, each in enumerate(index.rank(question.query, 10, mode).found, start=1):
            found.append((each.score, rank, (document_key(each.page.filename), each.page.page) in gold))
    return found


def _report(mode: str, found: list[tuple[float, int, bool]]) -> None:
    good = np.array([right for _, _, right in found], dtype=float)
    features = np.array([(total, -np.log(rank), 1.0) for total, rank, _ in found])
    line(f"{mode}: fitted", ", ".join(f"{weight:.1f}" for weight in fit(features, good)), "by sum, by rank, always")
    scores = np.array([calibrated(total, rank, mode) for total, rank, _ in found])
    for low, high in pairwise(_BINS):
        inside = (scores >= low) & (scores < high)
        if inside.any():
            what = f"{mode}: scores of {low:.2f} to {min(1.0, high):.2f}, {int(inside.sum())} pages"
            line(what, f"{good[inside].mean():.2f} good", f"told {scores[inside].mean():.2f}")


def fit(features: Floats, good: Floats, counts: Floats | None = None) -> Floats:
    """The logistic regression of greatest likelihood, by Newton's method; `counts` is what each row weighs."""
    weights = np.zeros(features.shape[1])
    counts = np.ones(len(good)) if counts is None else counts
    for _ in range(50):
        told = 1 / (1 + np.exp(-features @ weights))
        hessian = (features * (counts * told * (1 - told))[:, None]).T @ features + 1e-6 * np.eye(len(weights))
        step = np.linalg.solve(hessian, features.T @ (counts * (good - told)))
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights
