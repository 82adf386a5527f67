"""How asking grows with the index: 1,000, 10,000 and 100,000 pages, filled without PDFs or an encoder.

python -m tests.bench growth [--pages N …] [--keep FOLDER]

`--keep` leaves the filled indexes in a folder and takes them from there the next time: filling is the long part.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from research import ChromaClient, SearchEngine
from tests.bench.made import fill, questions
from tests.bench.table import line, median, title
from tests.bench.taken import cost

ROUNDS = 5
WARM_QUESTIONS = 60
CHUNKS_A_PAGE = 3
# Chroma takes some 500 records a second; with three chunks a page the largest size would take half an hour.
LARGE, CHUNKS_A_LARGE_PAGE = 50_000, 1


@dataclass(frozen=True, slots=True)
class Warm:
    """One process that asks many questions; milliseconds and megabytes."""

    p50: float
    p95: float
    cpu: float
    memory: float


def run(sizes: list[int], keep: Path | None = None) -> None:
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        title("Filling (made text and vectors, through the real store)")
        roots = {pages: _filled(folder / f"pages-{pages}", pages) for pages in sorted(sizes)}
        title(f"Asking as the index grows (cold: median of {ROUNDS}, taken in turns; warm: {WARM_QUESTIONS} questions)")
        cold = _cold(roots)
        least = cold[min(roots)][0]
        for pages, root in roots.items():
            cpu, wall = cold[pages]
            warm = _warm(root)
            print(f"{pages:,} pages")
            grown = f"{cpu / least:.2f} of the smallest, aim: <= 2"
            line("  cold ctx ask", f"{cpu:.2f} s CPU", f"{wall:.2f} s wall, {grown}")
            line("  warm hybrid search", f"{warm.p50:.0f} ms p50", f"{warm.p95:.0f} ms p95, {warm.cpu:.0f} ms CPU")
            line("  peak memory of the asking process", f"{warm.memory:.0f} MB")
            line("  on disk", f"{_size(root) / pages / 1024:.1f} kB a page")


def _filled(root: Path, pages: int) -> Path:
    chunks = CHUNKS_A_LARGE_PAGE if pages >= LARGE else CHUNKS_A_PAGE
    done = root / "filled"
    if done.exists():
        line(f"{pages:,} pages", "kept", f"{chunks} chunks a page")
        return root
    shutil.rmtree(root, ignore_errors=True)
    took = fill(root, pages, chunks)
    done.touch()
    line(
        f"{pages:,} pages, {chunks} chunks a page",
        f"{took.text + took.vectors + took.publishing:.0f} s",
        f"text {took.text:.0f} s, vectors {took.vectors:.0f} s, collections {took.publishing:.0f} s",
    )
    return root


def _cold(roots: dict[int, Path]) -> dict[int, tuple[float, float]]:
    """pages → CPU and wall seconds of the real command, a new process a question."""
    asked = list(questions(ROUNDS))
    taken: dict[int, list[tuple[float, float]]] = {pages: [] for pages in roots}
    for question in asked:
        for pages, root in roots.items():
            taken[pages].append(cost([sys.executable, "-m", "cli.main", "ask", question, "--index", str(root)]))
    return {pages: (median([c for c, _ in costs]), median([w for _, w in costs])) for pages, costs in taken.items()}


def _warm(root: Path) -> Warm:
    """In a process of its own, whose peak memory is that of asking alone."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.growth", str(root)], check=True, capture_output=True, text=True
    )
    return Warm(**json.loads(done.stdout))


def _ask_many(root: Path) -> Warm:
    first, *asked = questions(WARM_QUESTIONS + 1)
    walls, cpus = [], []
    with ChromaClient(root) as client:
        engine = SearchEngine(client)
        engine.run(first, 10)
        for question in asked:
            started, cpu = time.perf_counter(), time.process_time()
            outcome = engine.run(question, 10)
            walls.append((time.perf_counter() - started) * 1e3)
            cpus.append((time.process_time() - cpu) * 1e3)
            assert outcome.coverage.complete and outcome.found
    return Warm(median(walls), sorted(walls)[int(0.95 * len(walls))], median(cpus), _peak())


def _peak() -> float:
    """Megabytes of this program alone: the system's own count includes what its parent was before it started it."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(text.split()[1]) for text in lines if text.startswith("VmHWM")) / 1024


def _size(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


if __name__ == "__main__":
    warm = _ask_many(Path(sys.argv[1]))
    print(json.dumps({"p50": warm.p50, "p95": warm.p95, "cpu": warm.cpu, "memory": warm.memory}))
