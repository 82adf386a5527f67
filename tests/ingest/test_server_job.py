"""The process of an ingest that a server runs: what it says, how it ends, and whom it waits for."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.report import FileOutcome, IngestSummary, PageOutcome, Stage
from ingest.server_job import Reporter, _LogLines, _settings, bounded, run, start_job
from research.observe import NAME, in_full, logger_of
from research.settings import Settings
from research.store import Catalog, IndexPaths, write_lock
from tests.conftest import MakePdf
from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.running import PATIENCE, assert_ended, descendants, wait_until

QUICK = Settings(ocr="off", images=False)

Message = dict[str, Any]


def told(process: subprocess.Popen[bytes]) -> Iterator[Message]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def finish(process: subprocess.Popen[bytes]) -> list[Message]:
    with process:
        said = list(told(process))
        assert process.wait(PATIENCE) == 0
    return said


def test_it_tells_of_every_file_and_stage_and_sums_up(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs, root = tmp_path / "docs", tmp_path / "index"
    make_pdf("walrus.pdf", ["The walrus has tusks.", "And whiskers."], docs)
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    said = finish(start_job(root, Settings(ocr="off"), [docs]))
    files = {message["filename"]: message for message in said if message["event"] == "file"}
    assert {name: file["result"] for name, file in files.items()} == {"walrus.pdf": "added", "broken.pdf": "failed"}
    assert files["broken.pdf"]["code"] == "damaged"
    stages = list(dict.fromkeys(message["stage"] for message in said if message["event"] == "progress"))
    assert stages == ["read", "embed", "render", "publish"]
    reading = [message for message in said if message.get("stage") == "read"]
    assert (reading[0]["done"], reading[0]["total"]) == (0, 2)
    assert reading[-1]["done"] == 2
    assert said[-1]["event"] == "done"
    assert (said[-1]["summary"]["added"], said[-1]["summary"]["failed"]) == (1, 1)
    with Catalog(IndexPaths(root)) as catalog:
        assert [document.filename for document in catalog.documents.all()] == ["walrus.pdf"]
    assert {path.stat().st_mode & 0o077 for path in root.rglob("*")} == {0}, "all that it made is private"


@pytest.mark.slow
def test_a_signal_ends_it_in_good_order_and_the_next_goes_on(tmp_path: Path, endless_tesseract: Path) -> None:
    docs, root = make_corpus(tmp_path / "docs", 2, scans=1), tmp_path / "index"
    with start_job(root, Settings(images=False, ocr_engine="tesseract"), [docs]) as process:
        assert wait_until(endless_tesseract.exists, process)
        family = descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        said = list(told(process))
        assert process.wait(PATIENCE) == 0
    assert_ended(family)
    assert said[-1]["event"] == "done"
    assert said[-1]["summary"]["interrupted"]
    assert assert_whole(root) == 2
    summary = finish(start_job(root, QUICK, [docs]))[-1]["summary"]
    assert (summary["unchanged"], summary["interrupted"]) == (2, False)


@pytest.mark.slow
def test_it_waits_for_another_writer_and_says_so(make_pdf: MakePdf, tmp_path: Path) -> None:
    pdf, root = make_pdf("a.pdf", ["The walrus has tusks."]), tmp_path / "index"
    with write_lock(IndexPaths(root)):
        process = start_job(root, QUICK, [pdf])
        messages = told(process)
        waits = [next(messages), next(messages)]
    assert [message["event"] for message in waits] == ["progress", "note"]
    assert waits[0]["stage"] == "wait"
    assert "this ingest waits" in waits[1]["message"]
    with process:
        assert list(messages)[-1]["summary"]["added"] == 1


def test_one_that_waits_ends_at_a_signal(make_pdf: MakePdf, tmp_path: Path) -> None:
    pdf, root = make_pdf("a.pdf", ["The walrus has tusks."]), tmp_path / "index"
    with write_lock(IndexPaths(root)):
        process = start_job(root, QUICK, [pdf])
        messages = told(process)
        assert [next(messages)["event"], next(messages)["event"]] == ["progress", "note"]
        process.terminate()
        with process:
            assert list(messages)[-1]["summary"]["interrupted"]


def in_process(root: Path, *paths: Path) -> list[Message]:
    said: list[Message] = []
    request = {
        "index": str(root),
        "paths": [str(path) for path in paths],
        "settings": {"ocr": "off", "images": False, "allowed_encoders": []},
    }
    run(request, lambda event, **message: said.append({"event": event, **message}))
    return said


@pytest.mark.slow
def test_a_file_that_is_gone_costs_only_itself(make_pdf: MakePdf, tmp_path: Path) -> None:
    pdf, root = make_pdf("a.pdf", ["The walrus has tusks."]), tmp_path / "index"
    said = in_process(root, tmp_path / "gone.pdf", pdf)
    assert [(file["filename"], file["code"]) for file in said[-1]["summary"]["files"]] == [
        ("gone.pdf", "gone"),
        ("a.pdf", ""),
    ]
    only = in_process(root, tmp_path / "gone.pdf")
    assert [message["event"] for message in only] == ["file", "done"]


def test_what_stops_a_run_is_told_with_its_hint(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    [failed] = in_process(tmp_path / "index", tmp_path / "empty")
    assert (failed["event"], failed["kind"]) == ("failed", "NothingFoundError")
    assert "no PDF files" in failed["error"]
    assert failed["hint"]


def test_our_own_mistake_is_told_as_one() -> None:
    said: list[Message] = []
    run({}, lambda event, **message: said.append({"event": event, **message}))
    [failed] = said
    assert (failed["event"], failed["kind"], failed["error"]) == ("failed", "internal", "an unexpected error: KeyError")


def test_progress_is_told_a_few_times_a_second() -> None:
    said: list[Message] = []
    now = [0.0]
    reporter = Reporter(lambda event, **message: said.append({"event": event, **message}), lambda: now[0])
    reporter.on_plan(2, 1000)
    for page in range(1, 101):
        now[0] += 0.01
        reporter.on_page("/docs/a.pdf", page, 100)
    assert 4 <= len(said) <= 6
    assert said[-1]["file"] == "a.pdf"
    said.clear()
    reporter.on_file(FileOutcome("/docs/a.pdf", "added"))
    reporter.on_file(FileOutcome("/docs/b.pdf", "added"))
    assert [message["event"] for message in said] == ["file", "file", "progress"]
    assert (said[-1]["done"], said[-1]["total"]) == (2, 2), "the last of a stage is always told"
    said.clear()
    stages: list[Stage] = ["embed", "render", "ocr", "visual", "publish"]
    for stage in stages:
        reporter.on_progress(stage, 0, 5)
    assert [message["stage"] for message in said] == stages
    said.clear()
    reporter.on_note("by the way")
    reporter.on_warning("/docs/a.pdf", "odd")
    reporter.on_failed_page(PageOutcome("/docs/a.pdf", 3, "read", "timeout", "too slow"))
    assert [message["event"] for message in said] == ["note", "note", "page"]
    assert said[1]["message"] == "a.pdf: odd"


def test_a_summary_is_cut_to_what_can_be_kept_with_the_failures_first() -> None:
    files = [FileOutcome(f"/docs/{number}.pdf", "unchanged") for number in range(1500)]
    summary = IngestSummary(files=[*files, FileOutcome("/docs/bad.pdf", "failed")]).to_dict()
    cut = bounded(summary)
    assert len(cut["files"]) == 1000
    assert cut["files"][0]["filename"] == "bad.pdf"
    assert cut["cut"] == {"files": 1501}
    assert cut["unchanged"] == 1500
    short = IngestSummary(files=files[:3]).to_dict()
    assert bounded(short) == short


def test_settings_arrive_as_they_were() -> None:
    settings = Settings(ocr="force", allowed_encoders=("a/b", "c/d"), request_timeout=7)
    sent = json.loads(json.dumps({"ocr": "force", "allowed_encoders": ("a/b", "c/d"), "request_timeout": 7}))
    assert _settings(sent) == settings


def test_what_it_logs_goes_to_the_server_with_and_without_the_words_of_documents() -> None:
    said: list[Message] = []
    handler = _LogLines(lambda event, **message: said.append({"event": event, **message}))
    logging.getLogger(NAME).addHandler(handler)
    try:
        logger_of("ingest").warning("short", extra=in_full("the long text"))
        word = "secret"
        try:
            int(word)
        except ValueError:
            logger_of("ingest").exception("it failed")
    finally:
        logging.getLogger(NAME).removeHandler(handler)
    assert (said[0]["message"], said[0]["full"], said[0]["level"]) == ("short", "the long text", logging.WARNING)
    assert "ValueError" in said[1]["message"]
    assert "secret" not in said[1]["message"]


def test_nobody_listening_ends_it(make_pdf: MakePdf, tmp_path: Path) -> None:
    pdf, root = make_pdf("a.pdf", ["The walrus has tusks."]), tmp_path / "index"
    with write_lock(IndexPaths(root)):
        process = start_job(root, QUICK, [pdf])
        assert process.stdout is not None
        next(told(process))
        process.stdout.close()
    assert process.wait(PATIENCE) == 0
    assert not (root / "write.pid").exists()
