"""Hits on questions with known pages: our own set always, the development sets where they lie beside the project."""

from __future__ import annotations

import json
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ingest.report import SilentObserver
from ingest.run import ingest
from research import ChromaClient, SearchEngine
from research.settings import Settings
from research.store.paths import IndexPaths
from tests.bench.table import line, title

DATA = Path(__file__).parents[2] / "data"
MODES = ("lexical", "dense", "hybrid")


@dataclass(frozen=True, slots=True)
class Question:
    query: str
    gold: frozenset[tuple[str, int]]


def run(eval_folder: Path) -> None:
    title("Right pages (hit@1 / hit@5 / hit@10 / MRR@10)")
    sets = [("data/samples", DATA / "samples", DATA / "questions.jsonl")]
    for name in ("azure", "financebench-dev", "mmlongbench-dev"):
        folder = eval_folder / name
        if folder.is_dir():
            sets.append((name, folder / "pdfs", folder / "qrels.jsonl"))
    for name, documents, questions in sets:
        with tempfile.TemporaryDirectory() as folder:
            _one_set(name, documents, read_questions(questions), Path(folder) / "index")


def _one_set(name: str, documents: Path, questions: list[Question], root: Path) -> None:
    started = time.perf_counter()
    summary = ingest([documents], IndexPaths(root), settings=Settings(), observer=SilentObserver())
    took = time.perf_counter() - started
    line(name, f"{summary.pages} pages", f"ingested in {took:.0f} s, {len(questions)} questions")
    with ChromaClient(root) as client:
        engine = SearchEngine(client)
        for mode in MODES:
            figures = [_figures(engine, question, mode) for question in questions]
            means = [sum(column) / len(figures) for column in zip(*figures, strict=True)]
            line(f"  {mode}", " ".join(f"{mean:.3f}" for mean in means))


def _figures(engine: SearchEngine, question: Question, mode: str) -> tuple[float, float, float, float]:
    found = engine.run(question.query, 10, mode).found
    rank = next(
        (n for n, f in enumerate(found, start=1) if (norm(f.page.filename), f.page.page) in question.gold), math.inf
    )
    return float(rank <= 1), float(rank <= 5), float(rank <= 10), 1 / rank


def read_questions(path: Path) -> list[Question]:
    entries = [json.loads(text) for text in path.read_text().splitlines() if text.strip()]
    return [Question(e["query"], frozenset((norm(d), int(p)) for d, p in e["gold"])) for e in entries]


def norm(name: str) -> str:
    return name.lower().removesuffix(".pdf")
