"""What is seen while a run works: short words, whole, at any width."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from cli.call import Call
from cli.progress import BarObserver, LogObserver, bars, observer_for
from ingest import FileOutcome, PageOutcome, Stage
from tests.in_process import Ran

LONG = "/docs/Annual Report of the Harbour Cooperative 2024, final, corrected.pdf"


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)


def drawn(width: int, files: int, pages: int, chunks: int) -> list[str]:
    """The lines of a run in which every stage is at work."""
    screen, shown = terminal(width), Console(file=io.StringIO(), width=width)
    with bars(screen) as progress:
        observer = BarObserver(progress, clock=itertools.count(step=10).__next__)
        observer.on_plan(files, 10_000_000)
        observer.on_page(LONG, pages, pages)
        stages: list[Stage] = ["embed", "render", "ocr", "visual"]
        for stage in stages:
            observer.on_progress(stage, 0, chunks)
            observer.on_progress(stage, chunks - 1, chunks)
        observer.on_progress("publish", 0, 1)
        shown.print(progress.get_renderable())
    return shown.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("width", [30, 40, 50, 76, 80, 120])
@pytest.mark.parametrize(("files", "pages", "chunks"), [(3, 12, 95), (99_999, 9_999_999, 999_999)])
def test_no_label_is_cut(width: int, files: int, pages: int, chunks: int) -> None:
    lines = drawn(width, files, pages, chunks)
    assert [line.split()[0] for line in lines] == ["read", "embed", "draw", "OCR", "look", "publish"]
    assert all(cell_len(line) <= width for line in lines)
    assert f"0/{files} files" in lines[0]
    assert (f"{pages} pages" in lines[0]) is ("/s " in lines[0]) is (width >= 76)
    for line, unit in zip(lines[1:5], ["chunks", "docs", "pages", "pages"], strict=True):
        assert f"{chunks - 1}/{chunks} {unit}" in line
    assert not any("…" in line for line in lines[1:])
    if width == 120:
        assert "Annual Report of the…inal, corrected.pdf" in lines[0]


def test_files_are_counted_when_they_are_done(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"x" * 400)
    with bars(terminal(80)) as progress:
        observer = BarObserver(progress)
        observer.on_file(FileOutcome(str(file), "unchanged"))  # settled without reading
        observer.on_page(str(file), 1, 2)
        assert progress.tasks == []
        observer.on_plan(2, 1000)
        observer.on_page(str(file), 1, 4)
        assert progress.tasks[0].completed == 100
        observer.on_file(FileOutcome(str(file), "added", pages=4))
        assert progress.tasks[0].completed == 400
        assert progress.tasks[0].fields["note"].startswith("1/2 files  4 pages")
        observer.on_page("/gone/b.pdf", 1, 2)
        assert progress.tasks[0].completed == 400
        observer.on_note("a note \x1b[2J")
    assert "\\x1b[2J" in progress.console.file.getvalue()  # type: ignore[attr-defined]


def test_in_a_log_failures_and_warnings_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        with observer_for(Call(quiet=quiet)) as observer:
            assert isinstance(observer, LogObserver)
            observer.on_note("a note")
            observer.on_warning("a.pdf", "odd")
            observer.on_file(FileOutcome("b.pdf", "failed", reason="no PDF", warnings=("stranger",)))
            observer.on_failed_page(PageOutcome("c.pdf", 3, "read", "killed", "it died"))
    told = capsys.readouterr().err.splitlines()
    assert told[:4] == [
        "ctx: a note",
        "ctx: warning: a.pdf: odd",
        "ctx: failed: b.pdf: no PDF",
        "ctx: warning: b.pdf: stranger",
    ]
    assert told[5] == "ctx: failed: b.pdf: no PDF"
    assert len(told) == 7
    assert "c.pdf" in told[4]


def test_counting_on_a_terminal(on_terminal: Callable[..., Ran], filled: Path, tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"query": "housing bubble", "gold": [["crisis.pdf", 2]]}\n')
    ran = on_terminal(["eval", str(questions), "--mode", "lexical", "--index", str(filled)], columns=50)
    assert ran.code == 0
    assert "1/1 questions" in ran.out
