"""Fifty kills at random moments and one at every stage, OCR included."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.soak.corpus import make_corpus
from tests.soak.crashing import CrashTest
from tests.soak.running import STAGES


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> CrashTest:
    folder = tmp_path_factory.mktemp("crash")
    return CrashTest(make_corpus(folder / "docs", 72, scans=8), folder, "--ocr", "auto")


def test_fifty_kills(crash: CrashTest) -> None:
    crash.kill_at_random(50, Random())
    print(f"{crash.kills} kills, {crash.rounds} times finished and compared")


@pytest.mark.parametrize("group", [True, False])
def test_a_kill_at_every_stage(crash: CrashTest, group: bool) -> None:
    crash.begin_anew()
    before = crash.kills
    for reached in STAGES.values():
        crash.kill_when(reached, group=group)
    crash.finish()
    assert crash.kills - before >= len(STAGES) - 2, "a busy machine may miss a moment"


def test_the_undisturbed_index_has_all_of_it(crash: CrashTest, tmp_path: Path) -> None:
    assert len(crash.expected["table documents"]) == 72
    assert any(row for row in crash.expected["answers"].values())
    assert len(crash.expected["text collection"]) == len(crash.expected["table vectors"])
