"""`ctx ask --batch` beside a process a question: throughput, and whether the answers are the same.

    make bench ONLY="batch --questions 300"

The questions are our own, then those of the evaluation sets, asked of an index of data/samples. Processes run one after
the other, as a script would start them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from tests.bench.speed import SAMPLES
from tests.bench.table import line, title
from tests.bench.taken import Taken, watch

DATA = Path(__file__).parents[2] / "data"
GOAL = 10
_CTX = [sys.executable, "-m", "cli.main"]
_FINE = (0, 3)  # some questions are about other documents
_OF_A_BATCH = ("id", "line", "timings")


def run(evaluation: Path, count: int) -> None:
    title(f"A batch of {count} questions beside {count} processes")
    with tempfile.TemporaryDirectory() as folder:
        index, lines = str(Path(folder) / "index"), Path(folder) / "questions.txt"
        watch([*_CTX, "ingest", str(SAMPLES), "--no-images", "--quiet", "--index", index], memory=False)
        questions = _questions(evaluation, count)
        lines.write_text("".join(f"{question}\n" for question in questions), encoding="utf-8")
        batch = watch([*_CTX, "ask", "--batch", str(lines), "--index", index], fine=_FINE)
        ask = [*_CTX, "ask", "--json", "--index", index, "--"]
        alone = [watch([*ask, question], memory=False, fine=_FINE) for question in questions]
    wall, cpu = sum(taken.wall for taken in alone), sum(taken.cpu for taken in alone)
    line("batch", f"{count / batch.wall:.1f} questions/s", f"{batch.cpu / count:.3f} s CPU each, {batch.memory:.0f} MB")
    line("processes", f"{count / wall:.1f} questions/s", f"{cpu / count:.3f} s CPU each")
    line("throughput", f"{wall / batch.wall:.1f} times", f"at least {GOAL}; in CPU {cpu / batch.cpu:.1f} times")
    different = _different(batch, alone)
    line("other results", f"{len(different)} of {count}", ", ".join(questions[n] for n in different[:3]))


def _questions(evaluation: Path, count: int) -> list[str]:
    files = [DATA / "questions.jsonl", DATA / "no-harm" / "questions.jsonl", *sorted(evaluation.glob("*/qrels.jsonl"))]
    texts = [file.read_text(encoding="utf-8").splitlines() for file in files]
    asked = [" ".join(str(json.loads(entry)["query"]).split()) for entries in texts for entry in entries]
    return list(islice(cycle(dict.fromkeys(asked)), count))


def _different(batch: Taken, alone: list[Taken]) -> list[int]:
    """Which questions have another document, aside from what a batch adds and how long it took."""
    documents = [_bare(json.loads(entry)) for entry in batch.stdout.splitlines()]
    others = [_bare(json.loads(taken.stdout)) for taken in alone]
    return [n for n, (one, other) in enumerate(zip(documents, others, strict=True)) if one != other]


def _bare(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in _OF_A_BATCH}
