"""Ctrl-C and SIGTERM end a run within two seconds, whatever it is doing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.running import STAGES, assert_ended, descendants, finish, start, wait_until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("engine", ["rapidocr", "auto"])
def test_every_stage_ends_within_two_seconds(tmp_path: Path, number: signal.Signals, engine: str) -> None:
    docs, root = make_corpus(tmp_path / "docs", 90, scans=6), tmp_path / "index"
    slow = {}
    for stage, reached in STAGES.items():
        process = start("ingest", str(docs), "--ocr", "auto", "--ocr-engine", engine, root=root)
        if not wait_until(lambda reached=reached: reached(root), process):  # type: ignore[misc]
            finish(process)
            continue
        family = descendants(process.pid)
        begun = time.monotonic()
        os.killpg(process.pid, number)
        code, _, err = finish(process)
        seconds = time.monotonic() - begun
        print(f"{stage}: {seconds:.2f} s")
        assert_ended(family)
        assert_whole(root)
        if code == 0:  # it was just done
            continue
        assert code == 130, err
        assert "go on with: ctx ingest" in err
        if seconds > 2.0:
            slow[stage] = seconds
    assert slow == {}
