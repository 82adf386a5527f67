"""This checkout beside another one, in turns: a cold question, warm questions, an ingest.

    git worktree add ../before COMMIT
    make bench ONLY="beside --beside ../before"

Both run in this environment; each has an index of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.speed import QUESTION, SAMPLES
from tests.bench.table import line, median, title
from tests.bench.taken import cost

ROOT = Path(__file__).parents[2]
ROUNDS = 7
INGESTS = 3

# The contract's names are the same in every version.
_WARM = """
import sys, time
from research import ChromaClient, ContextBuilder, SearchEngine
with ChromaClient(sys.argv[1]) as client:
    engine = SearchEngine(client)
    questions = [line for line in open(sys.argv[2], encoding="utf-8").read().splitlines() if line]
    engine.run(questions[0])
    before = time.process_time()
    for question in questions * 4:
        engine.run(question)
    print(time.process_time() - before)
"""


def run(other: Path | None) -> None:
    if other is None:
        return
    title(f"Beside {other} (median of turns; below 1 is less than there)")
    checkouts = {"here": ROOT, "there": other.absolute()}
    with tempfile.TemporaryDirectory() as folder:
        indexes = {name: str(Path(folder) / name) for name in checkouts}
        for name, root in checkouts.items():
            _ctx(root, "ingest", str(SAMPLES), "--quiet", "--index", indexes[name])
        questions = Path(folder) / "questions.txt"
        questions.write_text("\n".join(_questions()), encoding="utf-8")
        cold: dict[str, list[float]] = {name: [] for name in checkouts}
        warm: dict[str, list[float]] = {name: [] for name in checkouts}
        for _ in range(ROUNDS):
            for name, root in checkouts.items():
                cold[name].append(cost(command_in(root, "ask", QUESTION, "--index", indexes[name]))[0])
                command = python_in(root, "-c", _WARM, indexes[name], str(questions))
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                warm[name].append(float(done.stdout))
        ingested: dict[str, list[float]] = {name: [] for name in checkouts}
        for turn in range(INGESTS):
            for name, root in checkouts.items():
                index = str(Path(folder) / f"{name}-{turn}")
                ingested[name].append(
                    cost(command_in(root, "ingest", str(SAMPLES), "--ocr", "off", "--index", index))[0]
                )
    for what, taken in (("cold ask, CPU", cold), ("warm search, CPU", warm), ("ingest, CPU", ingested)):
        here, there = median(taken["here"]), median(taken["there"])
        line(what, f"{here / there:.2f}", f"{here:.2f} s beside {there:.2f} s")


def _questions() -> list[str]:
    import json

    lines = (ROOT / "data" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(each)["query"] for each in lines]


def python_in(root: Path, *args: str) -> list[str]:
    # The folder it runs in comes before what is installed.
    return ["env", "-C", str(root), f"PYTHONPATH={root}", sys.executable, *args]


def command_in(root: Path, *args: str) -> list[str]:
    return python_in(root, "-m", "cli.main", *args)


def _ctx(root: Path, *args: str) -> None:
    subprocess.run(command_in(root, *args), check=True, capture_output=True, env=dict(os.environ))
