"""ctx ingest: what it says and how it ends. What it does to the index is tested with `ingest`."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ingest.report import FileOutcome, IngestSummary, Observer
from research.store.lock import write_lock
from research.store.paths import IndexPaths
from tests.conftest import MakePdf

EVIL = "-evil\n[bold]\x1b[31m.pdf"


@pytest.fixture
def shelf(tmp_path: Path, make_pdf) -> Path:
    """Two sound files and one that is none, with a name to match."""
    folder = tmp_path / "shelf"
    make_pdf("banks.pdf", ["The housing bubble burst in 2008.", "Stress tests followed."], folder)
    make_pdf("garden.pdf", ["Tomatoes need sun and water."], folder)
    (folder / EVIL).write_bytes(b"no PDF at all")
    return folder


def test_a_folder_from_the_first_run_to_the_answer(spawn, call, shelf: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    first = spawn("ingest", str(shelf), "--index", index)
    assert first.code == 4, first.err
    lines = first.out.splitlines()
    assert lines[0] == "added 2, failed 1"
    assert re.match(r"3 pages, \d+ chunks, [\d.]+ s, [\d.]+ pages/s$", lines[1])
    assert lines[2].startswith(f"failed: {shelf}/-evil\\n[bold]\\x1b[31m.pdf: ")
    assert "ctx: failed: " in first.err
    assert "ctx: error: 1 of 3 files failed; the others are in the index" in first.err

    answer = call("ask", "what burst", "--json", "--index", index)
    assert (answer.document["sources"][0]["filename"], answer.document["sources"][0]["page"]) == ("banks.pdf", 1)

    (shelf / EVIL).unlink()
    again = spawn("ingest", str(shelf), "--json", "--index", index)
    assert again.code == 0, again.err
    assert again.document["schema"] == "ctx.ingest/1"
    assert (again.document["unchanged"], again.document["added"], again.document["pages"]) == (2, 0, 0)
    assert len(again.document["files"]) == 2


def test_on_a_terminal_there_is_a_bar(on_terminal, shelf: Path, tmp_path: Path) -> None:
    ran = on_terminal(["ingest", str(shelf), "--index", str(tmp_path / "index")], columns=120)
    assert ran.code == 4
    for word in ("reading", "embedding", "publishing", "3/3 files", "chunks/s"):
        assert word in ran.out
    assert "\x1b[31m.pdf" not in ran.out
    assert "added 2, failed 1\n" in ran.out


def test_paths_that_lead_nowhere(call, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    missing = call("ingest", str(tmp_path / "nope"), "--json", "--index", index)
    assert missing.code == 2
    assert "no such file or folder" in missing.document["error"]
    (tmp_path / "empty").mkdir()
    empty = call("ingest", str(tmp_path / "empty"), "--index", index)
    assert empty.code == 3
    assert "no PDF files in" in empty.err
    assert not Path(index).exists()


def test_a_second_ingest_names_the_first(call, shelf: Path, tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    paths.create()
    with write_lock(paths.lock):
        ran = call("ingest", str(shelf), "--wait", "0.1", "--json", "--index", str(paths.root))
    assert ran.code == 1
    assert f"process {os.getpid()} is writing this index" in ran.document["error"]
    assert "--wait" in ran.document["hint"]


@pytest.fixture
def fake_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, object]]]:
    """A run that is stopped by a signal in its middle; what it was called with is noted."""
    calls: list[dict[str, object]] = []

    def ingest(paths: Sequence[Path], index: IndexPaths, *, observer: Observer, **options: object) -> IngestSummary:
        calls.append({"paths": paths, **options})
        summary = IngestSummary(pending_chunks=7, seconds=1.0)
        for outcome in (
            FileOutcome("/a.pdf", "added", "id", 3, warnings=("page 2 has no text",)),
            FileOutcome("/b\n.pdf", "failed", code="damaged", reason="it is\ndamaged"),
            FileOutcome("/c.pdf", "copy", "id"),
        ):
            summary.files.append(outcome)
            observer.finished(outcome)
        try:
            if os.environ.get("STOP"):
                os.kill(os.getpid(), int(os.environ["STOP"]))
        except KeyboardInterrupt:
            summary.interrupted = True
        return summary

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("ingest.run.ingest", ingest)
    yield calls
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_says_what_was_kept_and_how_to_go_on(
    call, fake_run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    monkeypatch.setenv("STOP", str(int(number)))
    ran = call("ingest", "a folder", "b", "--json", "--index", str(tmp_path))
    assert ran.code == 130
    assert ran.document["interrupted"]
    assert "interrupted; 1 documents of this run are kept, 7 chunks wait for vectors" in ran.err
    assert f"hint: go on with: ctx ingest 'a folder' b --index {tmp_path}\n" in ran.err


def test_a_log_hears_failures_and_warnings_one_line_each(call, fake_run, tmp_path: Path) -> None:
    ran = call("ingest", "x", "--index", str(tmp_path))
    assert ran.code == 4
    assert ran.err.splitlines()[:2] == [
        "ctx: warning: /a.pdf: page 2 has no text",
        r"ctx: failed: /b\n.pdf: it is\ndamaged",
    ]
    assert ran.out.splitlines() == [
        "added 1, copies 1, failed 1",
        "0 pages, 0 chunks, 1.0 s",
        "warning: /a.pdf: page 2 has no text",
        r"failed: /b\n.pdf: it is\ndamaged",
    ]


def test_quiet_tells_failures_only(call, fake_run, tmp_path: Path) -> None:
    ran = call("ingest", "x", "--quiet", "--index", str(tmp_path))
    assert ran.out == ""
    assert "warning" not in ran.err
    assert r"ctx: failed: /b\n.pdf" in ran.err


@pytest.mark.parametrize(("options", "wait"), [([], 0.0), (["--wait"], -1.0), (["--wait", "5"], 5.0)])
def test_wait(call, fake_run, tmp_path: Path, options: list[str], wait: float) -> None:
    call("ingest", "x", *options, "--index", str(tmp_path))
    assert fake_run[0]["wait"] == wait
    assert fake_run[0]["paths"] == [Path("x")]


def test_a_model_that_is_none_costs_the_visual_side_only(call, make_pdf: MakePdf, tmp_path: Path) -> None:
    make_pdf("a.pdf", ["The walrus has tusks."], tmp_path / "docs")
    (tmp_path / "nomodel").mkdir()
    where = ("--index", str(tmp_path / "index"))
    ran = call(
        "ingest", str(tmp_path / "docs"), "--visual", str(tmp_path / "nomodel"), "--ocr", "off", "--json", *where
    )
    assert ran.code == 1
    assert ran.document["added"] == 1
    assert "is no model" in ran.document["visual_error"]
    assert "ctx: error: the visual side was left as it was" in ran.err
    asked = call("ask", "What has tusks?", "--json", *where)
    assert asked.code == 0
    assert asked.document["sources"][0]["filename"] == "a.pdf"
    visual = next(leg for leg in asked.document["coverage"]["legs"] if leg["name"] == "visual")
    assert visual["status"] == "off"
    status = call("status", "--json", *where).document
    assert status["visual_encoder"] == ""
