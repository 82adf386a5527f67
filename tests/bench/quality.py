"""Hits on questions with known pages: our own set always, the development sets where they lie beside the project."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from ingest import Observer, ingest
from research import ChromaClient, SearchEngine
from research.evaluation import METRICS, Question, ask_all, look_up, read_questions, summarise
from research.settings import Settings
from research.store import IndexPaths
from tests.bench.table import line, title

DATA = Path(__file__).parents[2] / "data"


def run(eval_folder: Path) -> None:
    title(f"Right pages ({' / '.join(METRICS)})")
    sets = [("data/samples", DATA / "samples", DATA / "questions.jsonl")]
    for name in ("azure", "financebench-dev", "mmlongbench-dev", "scanned-dev"):
        folder = eval_folder / name
        if folder.is_dir():
            sets.append((name, folder / "pdfs", folder / "qrels.jsonl"))
    for name, documents, questions in sets:
        with tempfile.TemporaryDirectory() as folder:
            _one_set(name, documents, read_questions(questions), Path(folder) / "index")


def _one_set(name: str, documents: Path, questions: list[Question], root: Path) -> None:
    started = time.perf_counter()
    summary = ingest(IndexPaths(root), [documents], settings=Settings(images=False), observer=Observer())
    took = time.perf_counter() - started
    read = f"{summary.ocr_pages} read by OCR, " if summary.ocr_pages else ""
    line(name, f"{summary.pages} pages", f"{read}ingested in {took:.0f} s, {len(questions)} questions")
    with ChromaClient(root) as client:
        golds = look_up(client.catalog, questions).askable
        engine = SearchEngine(client)
        report = summarise(list(ask_all(engine, golds, "hybrid")), "hybrid", field=_slice_of(questions))
        # The text legs alone: what `regions` adds or takes.
        without = summarise(list(ask_all(engine, golds, "text")), "text").rankings[0]
    for row in (*report.rankings, without, *report.slices):
        sort = f"{report.field} {row.name}" if row in report.slices else row.name
        line(f"  {sort}", " ".join(f"{row.figures[metric].mean:.3f}" for metric in METRICS))
    line("  a question, warm", f"{report.latency.p50 * 1000:.0f} ms", f"p95 {report.latency.p95 * 1000:.0f} ms")


def _slice_of(questions: list[Question]) -> str | None:
    """Pages without a text layer apart, where the set knows which they are."""
    known = any("image_only" in question.fields.get("meta", {}) for question in questions)
    return "meta.image_only" if known else None
