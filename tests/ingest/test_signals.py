"""Ctrl-C and SIGTERM at every stage of a real run: exit 130, a word on what was kept, nobody left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.running import PATIENCE, STAGES, assert_ended, descendants, finish, kill, start, wait_until


@pytest.mark.slow
def test_a_run_is_stopped_at_each_stage_and_goes_on(tmp_path: Path) -> None:
    docs, root = make_corpus(tmp_path / "my docs", 30), tmp_path / "index"
    stopped = 0
    for stage, number in (
        ("reading", signal.SIGINT),
        ("embedding", signal.SIGTERM),
        ("drawing", signal.SIGINT),
        ("publishing", signal.SIGINT),
    ):
        process = start("ingest", str(docs), root=root)
        reached = wait_until(lambda stage=stage: STAGES[stage](root), process)  # type: ignore[misc]
        family = descendants(process.pid)
        if reached and process.poll() is None:
            os.killpg(process.pid, number)
        code, _, said = finish(process)
        assert_ended(family)
        assert_whole(root)
        assert not (root / "spool").exists()
        assert not (root / "chroma" / "draft").exists()
        if code == 0:  # on a busy machine the moment may be over before it is seen
            shutil.rmtree(root)
            continue
        stopped += 1
        assert code == 130, said
        assert "documents of this run are kept" in said, stage
        assert f"hint: go on with: ctx ingest '{docs}' --index {root}\n" in said
    assert stopped


_KILL = (pytest.param(how, marks=pytest.mark.slow) for how in ("kill", "kill the parent alone"))


@pytest.mark.parametrize("how", ["ctrl-c", *_KILL])
def test_nobody_survives_the_end_of_a_run_in_the_middle_of_a_page(
    tmp_path: Path, endless_tesseract: Path, how: str
) -> None:
    docs, root = make_corpus(tmp_path / "docs", 2, scans=2), tmp_path / "index"
    process = start("ingest", str(docs), "--no-images", "--ocr", "auto", "--ocr-engine", "tesseract", root=root)
    assert wait_until(endless_tesseract.exists, process)
    if how == "ctrl-c":
        family = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        code, _, said = finish(process)
        assert code == 130, said
        assert_ended(family)
        assert "interrupted; 2 documents of this run are kept, 0 chunks wait for vectors, 2 pages for OCR\n" in said
    else:
        kill(process, group=how == "kill")


_STUBBORN = """
import sys, time
from cli.call import orderly_end
with orderly_end():
    try:
        print("ready", flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print("ending", flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_at_once(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", _STUBBORN], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for said in ("ready", "ending"):
            assert process.stdout.readline().strip() == said
            process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == -number
