"""What ctx tells about itself: nothing by default, and nothing that breaks what is measured."""

from __future__ import annotations

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from research.observe import NullRecorder, Recorder, frames_of, logger_of
from research.observe.recorder import LoggingRecorder


def _use(recorder: Recorder) -> None:
    with recorder.time("retrieve"), recorder.time("dense"):
        recorder.count("pages", 3, leg="dense")
    recorder.count("questions")
    recorder.event("published", number=7, seconds=0.5, side="text")


def test_by_default_nothing_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    _use(NullRecorder())
    assert caplog.records == []


def test_the_log_hears_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ctx")
    _use(LoggingRecorder())
    assert {record.name for record in caplog.records} == {"ctx.recorder"}
    lines = [(record.levelname, record.getMessage().partition(" ms")[0]) for record in caplog.records]
    timed = [(level, line.rpartition(": ")[0]) for level, line in lines if line.startswith("time")]
    assert timed == [("DEBUG", "time dense"), ("DEBUG", "time retrieve")]
    assert [line for line in lines if not line[1].startswith("time")] == [
        ("DEBUG", "count pages: 3 leg=dense"),
        ("DEBUG", "count questions: 1"),
        ("INFO", "event published number=7 seconds=0.5 side=text"),
    ]


def test_what_fails_is_measured_and_goes_on_failing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ctx.recorder")
    for recorder in (NullRecorder(), LoggingRecorder(logging.getLogger("ctx.recorder"))):
        with pytest.raises(KeyError), recorder.time("rank"):
            raise KeyError
    assert [record.getMessage().endswith(" ms, failed") for record in caplog.records] == [True]


def test_many_threads_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ctx.recorder")
    for recorder in (NullRecorder(), LoggingRecorder()):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(_use, [recorder] * 100))
    assert len(caplog.records) == 100 * 5


def test_warnings_reach_nobody_who_did_not_ask() -> None:
    code = "from research.observe.recorder import logger_of\nlogger_of('store').error('nobody asked')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert logger_of("store").name == "ctx.store"


def test_a_traceback_without_its_messages() -> None:
    secret = "the text of a page"
    try:
        try:
            _ = {}[secret]
        finally:
            int(secret)
    except ValueError as error:
        error.__context__.__cause__ = error  # type: ignore[union-attr]  a loop ends
        told = frames_of(error)
    assert secret not in told
    assert told.index("builtins.KeyError") < told.index("builtins.ValueError")
    assert told.startswith("Traceback (most recent call last):\n")
