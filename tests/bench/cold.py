"""A cold question beside `import chromadb`, in CPU seconds of whole processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.speed import QUESTION, SAMPLES
from tests.bench.table import line, median, title
from tests.bench.taken import cost

ROUNDS = 5


def run() -> None:
    title(f"A cold process (median of {ROUNDS}, taken in turns)")
    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder) / "index")
        ctx = [sys.executable, "-m", "cli.main"]
        subprocess.run([*ctx, "ingest", str(SAMPLES), "--quiet", "--index", index], check=True, capture_output=True)
        commands = {
            "import chromadb": [sys.executable, "-c", "import chromadb"],
            "ctx ask": [*ctx, "ask", QUESTION, "--index", index],
            "ctx ask --json": [*ctx, "ask", QUESTION, "--json", "--index", index],
            "ctx ask --mode lexical": [*ctx, "ask", QUESTION, "--mode", "lexical", "--index", index],
            "ctx --help": [*ctx, "--help"],
            "ctx --version": [*ctx, "--version"],
        }
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                measured[name].append(cost(command))
    base = median([cpu for cpu, _ in measured["import chromadb"]])
    for name, costs in measured.items():
        cpu, wall = median([c for c, _ in costs]), median([w for _, w in costs])
        line(name, f"{cpu:.2f} s CPU", f"{wall:.2f} s wall, {cpu / base:.2f} of import chromadb")
