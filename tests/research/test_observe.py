"""What ctx tells about itself: nothing by default, and nothing that breaks what is measured."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from research.observe import NullRecorder, frames_of, logger_of


def test_by_default_nothing_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    recorder = NullRecorder()
    with pytest.raises(KeyError), recorder.time("retrieve"), recorder.time("dense"):
        recorder.count("pages", 3, leg="dense")
        recorder.event("published", number=7, seconds=0.5, side="text")
        raise KeyError
    assert caplog.records == []


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
