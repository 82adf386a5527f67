"""Two shapes of folder that strain a run: one very long document, and many very short ones."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf

from tests.bench.made import Words
from tests.bench.table import line, title
from tests.bench.taken import watch

LONG_PAGES, WORDS_A_LONG_PAGE = 2_400, 90
FILES, WORDS_A_FILE = 200, 320
SHEET = pymupdf.Rect(60, 60, 540, 790)


def run() -> None:
    title(f"A document of {LONG_PAGES:,} pages, and {FILES} documents of one page")
    with tempfile.TemporaryDirectory() as folder:
        long, short = Path(folder) / "long", Path(folder) / "short"
        _write(long, 1, LONG_PAGES, WORDS_A_LONG_PAGE)
        _write(short, FILES, 1, WORDS_A_FILE)
        ingest = [sys.executable, "-m", "cli.main", "ingest", "--json"]
        taken = watch([*ingest, str(long), "--index", str(Path(folder) / "one")])
        assert json.loads(taken.stdout)["pages"] == LONG_PAGES
        line("the long one, peak memory of all processes", f"{taken.memory:.0f} MB", "aim: <= 1,024 MB")
        line("  time, page images included", f"{taken.wall:.0f} s", f"{taken.cpu:.0f} s CPU")
        spent = json.loads(
            watch([sys.executable, "-m", "tests.bench.limits", str(short), str(Path(folder) / "many")]).stdout
        )
    whole = spent.pop("whole")
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in spent.items())
    rest = 1 - sum(spent.values()) / whole
    line("the short ones, CPU of all processes", f"{whole:.1f} s", parts)
    line("  spent on anything else", f"{rest:.0%}", "aim: < 20 %; starting, imports and publishing included")


def _write(folder: Path, files: int, pages: int, count: int) -> None:
    folder.mkdir()
    words = Words()
    for number in range(files):
        with pymupdf.open() as document:
            for _ in range(pages):
                document.new_page().insert_textbox(SHEET, words.text(number, count), fontsize=10)
            document.save(folder / f"file-{number:03d}.pdf")


def _account(files: Path, index: Path) -> dict[str, float]:
    """CPU seconds of a run over `files`: the whole, and what its calls for embedding, writing and reading took."""
    from ingest import Observer, run
    from research.encoders.minilm import MiniLMEncoder
    from research.settings import Settings
    from research.store import IndexPaths
    from research.store.documents import Documents
    from research.store.vectors import Chunks

    spent = {"embedding": 0.0, "writing": 0.0}

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                spent[name] += time.process_time() - started

        return wrapped

    MiniLMEncoder()._session  # noqa: B018  the library's start is no embedding
    MiniLMEncoder.embed = timed("embedding", MiniLMEncoder.embed)  # type: ignore[method-assign]
    Documents.add = timed("writing", Documents.add)  # type: ignore[method-assign]
    Chunks.write = timed("writing", Chunks.write)  # type: ignore[method-assign]
    summary = run.ingest(IndexPaths(index), [files], settings=Settings(images=False, ocr="off"), observer=Observer())
    assert summary.pages == len(list(files.iterdir())), summary
    times = os.times()
    whole = times.user + times.system + times.children_user + times.children_system
    return {"whole": whole, "reading": _reading(sorted(files.iterdir()), index), **spent}


def _reading(files: list[Path], folder: Path) -> float:
    """CPU seconds of reading the same files here, once the reader is loaded."""
    from ingest.jobs import Job
    from ingest.worker import Worker
    from research.encoders import DEFAULT

    worker = Worker(io.StringIO())
    jobs = [Job("read", path, "x", folder / "spooled", DEFAULT) for path in files]
    worker.run(jobs[0])
    started = time.process_time()
    for job in jobs:
        worker.run(job)
    return time.process_time() - started


if __name__ == "__main__":
    print(json.dumps(_account(Path(sys.argv[1]), Path(sys.argv[2]))))
