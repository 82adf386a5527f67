"""One open `Index` asked by many threads, while commands in other processes ingest, replace and remove documents."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from research import Index
from tests.conftest import write_pdf
from tests.soak.corpus import QUESTIONS, make_corpus
from tests.soak.running import run

_QUIET = ("--no-images", "--quiet")


@dataclass
class OpenIndex:
    """Asks until `seconds` have passed and `generations` were published; what went wrong is in `problems`.

    Each document that changes carries a mark, an invented word. Once its document is replaced or removed, and the index
    refreshed, no answer may hold it.
    """

    folder: Path
    threads: int
    seconds: float
    generations: int
    pause: float = 0.0  # seconds of a thread between two questions
    problems: list[str] = field(default_factory=list)
    answers: int = 0
    published: int = 0
    samples: list[tuple[float, int, int]] = field(default_factory=list)  # seconds, resident kB, descriptors

    def __post_init__(self) -> None:
        self._root = self.folder / "index"
        self._docs = make_corpus(self.folder / "docs", 12)
        self._marks = (f"quokka{number}" for number in count())
        self._gone: set[str] = set()
        self._done = threading.Event()

    def run(self) -> None:
        self._command("ingest", str(self._docs), *_QUIET)
        started = time.monotonic()
        with Index.open(self._root) as index:
            for question in QUESTIONS:
                index.ask(question)
            workers = [threading.Thread(target=self._guard, args=(self._ask, index, n)) for n in range(self.threads)]
            workers.append(threading.Thread(target=self._guard, args=(self._change, index, started)))
            for worker in workers:
                worker.start()
            while any(worker.is_alive() for worker in workers):
                self.samples.append((time.monotonic() - started, resident(), descriptors()))
                time.sleep(1.0)
            for worker in workers:
                worker.join()

    def _guard(self, work: object, index: Index, argument: float) -> None:
        try:
            work(index, argument)  # type: ignore[operator]
        except Exception as error:  # noqa: BLE001  a thread's failure must reach the test
            self.problems.append(f"{type(error).__name__}: {error}")
            self._done.set()

    def _ask(self, index: Index, number: float) -> None:
        for turn in count(int(number)):
            if self._done.wait(self.pause):
                return
            gone = set(self._gone)
            question = f"{QUESTIONS[turn % len(QUESTIONS)]} quokka"
            if turn % 3:
                answer = index.ask(question)
                text, scores, coverage = (
                    answer.formatted_text,
                    [s.relevance_score for s in answer.sources],
                    answer.coverage,
                )
            else:
                results = index.search(question)
                text = " ".join(result.snippet for result in results.results)
                scores, coverage = [result.relevance_score for result in results.results], results.coverage
            self.answers += 1
            self._expect(bool(scores), "no answer")
            self._expect(all(0.0 <= score <= 1.0 for score in scores), f"scores {scores}")
            self._expect(all(leg.status == "ok" for leg in coverage.legs), f"coverage {coverage.legs}")
            self._expect(not gone & set(text.replace(".", " ").split()), f"removed, and found: {text[:200]}")

    def _change(self, index: Index, started: float) -> None:
        """Adds a document, changes it and removes it, until there were enough publications and time."""
        before = newest(self._root)
        while self.published < self.generations or time.monotonic() - started < self.seconds:
            first, second = next(self._marks), next(self._marks)
            name = f"changing-{first}.pdf"
            for mark in (first, second):
                write_pdf(self._docs / name, [f"The {mark} quokka waits at the quay.", f"Boats of the {mark} quokka."])
                self._command("ingest", str(self._docs), *_QUIET)
                index.refresh()
                if mark == second:
                    self._gone.add(first)
            self._command("remove", name, "--yes")
            index.refresh()
            self._gone.add(second)
            self._expect(name not in {info.filename for info in index.documents.list()}, f"{name} is still listed")
            (self._docs / name).unlink()
            self.published = newest(self._root) - before
        self._done.set()

    def _command(self, *args: str) -> None:
        code, _, err = run(*args, root=self._root)
        self._expect(code == 0, f"ctx {args[0]} ended with {code}: {err}")

    def _expect(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)


def newest(root: Path) -> int:
    """The number of the newest generation."""
    return max(int(path.name.removeprefix("gen-")) for path in (root / "chroma").glob("gen-*"))


def resident() -> int:
    """kB of this process in memory, without what the allocator only keeps for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
