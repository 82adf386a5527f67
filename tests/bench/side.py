"""Side by side with the plain script people write today, on the same documents and questions, in one run."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from research.evaluation import Question, read_questions
from research.evaluation.questions import document_key
from tests.bench.quality import DATA
from tests.bench.table import median, title
from tests.bench.taken import Taken, watch

COLD_ROUNDS = 3
HERE = Path(__file__).parent
PLAIN = [sys.executable, str(HERE / "plain_script.py")]
OURS = [sys.executable, str(HERE / "our_script.py")]
CTX = [sys.executable, "-m", "cli.main"]


def run(eval_folder: Path) -> None:
    azure = eval_folder / "azure"
    _one_set("data/samples", DATA / "samples", read_questions(DATA / "questions.jsonl"))
    if azure.is_dir():
        _one_set("azure", azure / "pdfs", read_questions(azure / "qrels.jsonl"))


def _one_set(name: str, documents: Path, questions: list[Question]) -> None:
    title(f"Side by side on {name}: PyMuPDF + 200-word chunks + chromadb + sentence-transformers, and ctx")
    asked = [question.query for question in questions]
    with tempfile.TemporaryDirectory() as folder:
        database, index = str(Path(folder) / "plain"), str(Path(folder) / "index")
        plain = watch([*PLAIN, "ingest", str(documents), database])
        pages = int(json.loads(plain.stdout)["pages"])
        text_only = ["--no-images", "--ocr", "off"]
        ours = watch([*CTX, "ingest", str(documents), *text_only, "--json", "--index", index])
        drawn = watch([*CTX, "ingest", str(documents), "--json", "--index", str(Path(folder) / "drawn")])
        plain_cold, our_cold = [], []
        for question in asked[:COLD_ROUNDS]:
            plain_cold.append(watch([*PLAIN, "ask", database, question]))
            our_cold.append(watch([*CTX, "ask", question, "--index", index]))
        plain_warm, our_warm = watch([*PLAIN, "ask", database, *asked]), watch([*OURS, index, *asked])
    print(f"{pages} pages, {len(asked)} questions\n\n{'':<42}{'plain script':>14}{'ctx':>12}   ctx is")
    _rate("ingest, pages/s", pages / plain.wall, pages / ours.wall)
    _rate("ingest with page images and OCR, pages/s", pages / plain.wall, pages / drawn.wall)
    _less("ingest, CPU s a 100 pages", 100 * plain.cpu / pages, 100 * ours.cpu / pages)
    _less("ingest, peak MB of all processes", plain.memory, ours.memory)
    _less("cold answer, s", _middle(plain_cold, "wall"), _middle(our_cold, "wall"))
    _less("cold answer, CPU s", _middle(plain_cold, "cpu"), _middle(our_cold, "cpu"))
    _less("cold answer, peak MB", _middle(plain_cold, "memory"), _middle(our_cold, "memory"))
    _less("warm answer p50, ms", _p50(plain_warm), _p50(our_warm))
    _less("many answers, peak MB", plain_warm.memory, our_warm.memory)
    for depth in (1, 5, 10):
        _rate(f"hit@{depth}", _hits(plain_warm, questions, depth), _hits(our_warm, questions, depth))


def _middle(taken: list[Taken], field: str) -> float:
    return median([float(getattr(one, field)) for one in taken])


def _p50(taken: Taken) -> float:
    """Milliseconds a question; the first one, which loads things, is left out."""
    return 1e3 * median([json.loads(text)["seconds"] for text in taken.stdout.splitlines()[1:]])


def _hits(taken: Taken, questions: list[Question], depth: int) -> float:
    """Share of questions with a right page among the first distinct pages."""
    hits = 0
    for text, question in zip(taken.stdout.splitlines(), questions, strict=True):
        pages = dict.fromkeys((document_key(name), int(page)) for name, page in json.loads(text)["pages"])
        hits += not set(list(pages)[:depth]).isdisjoint((document_key(name), page) for name, page in question.gold)
    return hits / len(questions)


def _rate(what: str, plain: float, ours: float) -> None:
    _row(what, plain, ours, ours / plain if plain else float("inf"))


def _less(what: str, plain: float, ours: float) -> None:
    _row(what, plain, ours, plain / ours)


def _row(what: str, plain: float, ours: float, better: float) -> None:
    verdict = f"{better:.2f}x" + ("" if better > 1 else "   NOT AHEAD" if better < 1 else "   equal")
    print(f"{what:<42}{plain:>14.3g}{ours:>12.3g}   {verdict}", flush=True)
