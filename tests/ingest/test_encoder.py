"""The text encoder of a run: loaded beside the reading, and nothing of it left behind."""

from __future__ import annotations

import threading

import pytest

from ingest.encoder import RunEncoder
from research.errors import CtxError


def test_a_run_that_fails_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    encoder = RunEncoder()
    with pytest.raises(ValueError, match="something else"), encoder.loading():
        raise ValueError("something else")
    assert set(threading.enumerate()) == before


def test_a_run_that_is_stopped_leaves_none_that_a_program_would_wait_for() -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), RunEncoder().loading():
        raise KeyboardInterrupt
    left = set(threading.enumerate()) - before
    assert all(thread.daemon for thread in left)
    for thread in left:
        thread.join()


def test_an_encoder_that_cannot_be_loaded_is_logged_and_met_when_it_is_needed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    encoder = RunEncoder("sentence-transformers:/nowhere/at/all")
    with encoder.loading():
        pass
    [record] = caplog.records
    assert (record.name, record.levelname) == ("ctx.ingest", "WARNING")
    assert record.exc_info is not None
    with pytest.raises(CtxError):
        encoder.load()
