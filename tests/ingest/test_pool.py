"""Reading processes: they read, fail, die and hang, and the pool goes on."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pymupdf
import pytest

from ingest.jobs import DocumentRead, Event, Failed, Job, PageStarted, read_pages
from ingest.pool import Limits, Pool
from ingest.worker import Worker
from research.errors import IndexUnusableError

MakePdf = Callable[..., Path]


def _job(path: Path, tmp_path: Path, **extra: object) -> Job:
    return Job("read", path, path.stem, tmp_path / f"{path.name}.jsonl", **extra)  # type: ignore[arg-type]


@cache
def _many_pages() -> bytes:
    with pymupdf.open() as document:
        for number in range(80):
            text = f"Page {number} " + "word " * 300
            document.new_page().insert_textbox(pymupdf.Rect(72, 72, 520, 760), text, fontsize=11)
        data: bytes = document.tobytes()
    return data


def _long(path: Path) -> Path:
    """A document that is being read for a while."""
    path.write_bytes(_many_pages())
    return path


def _children() -> list[int]:
    """The reading processes this one has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
            command = (entry.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"ingest.worker" in command:
            found.append(int(entry.parent.name))
    return found


def _ends(events: list[Event]) -> list[DocumentRead | Failed]:
    """How each job ended: a failure of page 0 is of the whole job."""
    return [e for e in events if isinstance(e, DocumentRead) or (isinstance(e, Failed) and not e.page)]


def test_documents_are_read_and_bad_ones_told(make_pdf: MakePdf, tmp_path: Path) -> None:
    good = [make_pdf(f"{n}.pdf", [f"Document {n}", "Second page", ""]) for n in range(3)]
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"no PDF")
    gone = tmp_path / "gone.pdf"
    with Pool(2) as pool:
        events = list(pool.run([_job(path, tmp_path) for path in (good[0], bad, good[1], gone, good[2])]))
        assert len(_children()) <= 2
    assert _children() == []
    ends = {event.job.path.name: event for event in _ends(events)}
    for path in good:
        event = ends[path.name]
        assert isinstance(event, DocumentRead)
        assert (event.pages, event.without_text, event.warnings) == (3, 1, ())
        pages = list(read_pages(event.job.output))
        assert [page.number for page, _ in pages] == [1, 2, 3]
        assert [len(chunks) for _, chunks in pages] == [1, 1, 0]
    codes = {name: event.code for name, event in ends.items() if isinstance(event, Failed)}
    assert codes == {"bad.pdf": "not_a_pdf", "gone.pdf": "unreadable"}


def test_nothing_to_read_starts_nothing() -> None:
    with Pool(2) as pool:
        assert list(pool.run([])) == []
        assert _children() == []


def test_every_page_is_named_before_it_is_touched(make_pdf: MakePdf, tmp_path: Path) -> None:
    """The last page named is the one to leave out when the process dies, so none may be passed over."""
    path = make_pdf("many.pdf", [f"Page {n}" for n in range(30)])
    out = io.StringIO()
    Worker(out).run(Job("read", path, "d", tmp_path / "s"))
    messages = [json.loads(line) for line in out.getvalue().splitlines()]
    first = [message["page"] for message in messages if message["event"] == "page"][:30]
    assert first == list(range(1, 31))
    assert messages[-1] == {
        "event": "read",
        "title": messages[-1]["title"],
        "pages": 30,
        "without_text": 0,
        "warnings": [],
    }


def test_a_killed_process_costs_nothing(make_pdf: MakePdf, tmp_path: Path) -> None:
    long = _long(tmp_path / "long.pdf")
    after = make_pdf("after.pdf", ["Another"])
    events: list[Event] = []
    killed: list[int] = []
    with Pool(1) as pool:
        for event in pool.run([_job(long, tmp_path), _job(after, tmp_path)]):
            events.append(event)
            if isinstance(event, PageStarted) and not killed:
                killed = _children()
                os.kill(killed[0], signal.SIGKILL)
    assert killed
    ends = _ends(events)
    assert [type(end) for end in ends] == [DocumentRead, DocumentRead]
    pages = [page for page, _ in read_pages(ends[0].job.output)]
    assert len(pages) == 80
    assert [page.number for page in pages if page.error] == []


@pytest.mark.slow
def test_a_process_that_keeps_dying_costs_its_document_only(make_pdf: MakePdf, tmp_path: Path) -> None:
    long = _long(tmp_path / "long.pdf")
    after = make_pdf("after.pdf", ["Another"])
    ends = []
    with Pool(1) as pool:
        for event in pool.run([_job(long, tmp_path), _job(after, tmp_path)]):
            if isinstance(event, PageStarted) and event.job.path == long:
                for pid in _children():
                    os.kill(pid, signal.SIGKILL)
            ends += _ends([event])
    assert isinstance(ends[0], Failed)
    assert ends[0].code == "killed"
    assert len(ends[0].job.failed_attempts) <= 8, "on whichever pages it dies"
    assert isinstance(ends[1], DocumentRead)


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(60, 60, 0), "timeout"),
        pytest.param(Limits(60, 0, 60), "timeout", marks=pytest.mark.slow),
        (Limits(0, 60, 60), "killed"),
    ],
)
def test_a_document_beyond_its_time_is_given_up(tmp_path: Path, limits: Limits, code: str) -> None:
    path = _long(tmp_path / "a.pdf")
    with Pool(1, {"read": limits}) as pool:
        [end] = _ends(list(pool.run([_job(path, tmp_path)])))
    assert isinstance(end, Failed)
    assert end.code == code, "a process that never came to the document says nothing of it"
    assert _children() == []


@pytest.mark.slow
def test_time_in_which_nobody_watched_is_not_held_against_a_page(tmp_path: Path) -> None:
    """Ctrl-Z stops all processes of the command, and whoever takes the pages may be busy. Here the clock leaps."""
    path = _long(tmp_path / "long.pdf")
    seconds = 0.0
    events: list[Event] = []
    with Pool(1, {"read": Limits(60.0, 2.0, 60.0)}, clock=lambda: seconds) as pool:
        for event in pool.run([_job(path, tmp_path)]):
            seconds += 0 if events else 100
            events.append(event)
    [end] = _ends(events)
    assert isinstance(end, DocumentRead)
    assert end.job.failed_attempts == ()


def test_deaths_are_logged_and_nothing_is_said(
    make_pdf: MakePdf, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    path = make_pdf("a.pdf", ["One"])
    with Pool(1, {"read": Limits(0, 60, 60)}) as pool:
        list(pool.run([_job(path, tmp_path)]))
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("ctx.ingest", "WARNING"),
        ("ctx.ingest", "ERROR"),
    ]
    assert capfd.readouterr() == ("", "")


def test_a_spool_that_cannot_be_written_is_told(make_pdf: MakePdf, tmp_path: Path) -> None:
    job = Job("read", make_pdf("a.pdf", ["One"]), "d", tmp_path / "nowhere" / "spool")
    with Pool(1) as pool, pytest.raises(IndexUnusableError, match="was removed"):
        list(pool.run([job]))
    assert _children() == []


def test_leaving_early_ends_the_processes(make_pdf: MakePdf, tmp_path: Path) -> None:
    path = make_pdf("long.pdf", [f"Page {n}" for n in range(100)])
    with pytest.raises(KeyboardInterrupt), Pool(1) as pool:
        for _ in pool.run([_job(path, tmp_path)]):
            raise KeyboardInterrupt
    assert _children() == []


def test_a_bug_of_ours_is_told_as_one_and_the_next_document_is_read(
    make_pdf: MakePdf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Played by a task that no reading process knows: it raises where any slip of ours would."""
    path = make_pdf("a.pdf", ["One"])
    unknown = Job("unknown", path, "d", tmp_path / "x.jsonl")  # type: ignore[arg-type]
    limits = dict.fromkeys(("unknown", "read"), Limits(60, 60, 60))
    with Pool(1, limits) as pool:  # type: ignore[arg-type]
        failed, read = _ends(list(pool.run([unknown, _job(path, tmp_path)])))
    assert isinstance(failed, Failed)
    assert (failed.code, failed.reason) == ("internal", "a bug in ctx, not in the file: KeyError: 'unknown'")
    assert "worker.py" in failed.trace
    assert isinstance(read, DocumentRead)
    assert (read.job.failed_attempts, read.pages) == ((), 1), "by the same process"
    [record] = caplog.records
    assert (record.name, record.levelname) == ("ctx.ingest", "ERROR")
    assert "worker.py" in record.getMessage()
