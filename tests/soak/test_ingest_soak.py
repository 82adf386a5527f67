"""Runs that are killed at random moments and at every stage, interrupted at every point, and crowded for a minute."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest

from research.store import Catalog, IndexPaths
from research.store import publish as writer
from tests.conftest import write_pdf
from tests.ingest.test_interruption import TEXTS, _content, _finish, interrupt_and_go_on
from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.crashing import CrashTest
from tests.soak.crowding import Crowd
from tests.soak.killing_workers import Harm, kill_readers
from tests.soak.running import STAGES, assert_ended, descendants, finish, run, start, wait_until


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


POINTS = ("planned", "reading", "finished", "embed", "embedded", "publish")


@pytest.mark.parametrize("question_between", [False, True])
def test_every_point_with_and_without_a_question(tmp_path: Path, question_between: bool) -> None:
    for name, pages in TEXTS.items():
        write_pdf(tmp_path / "docs" / name, pages)
    _finish(tmp_path / "docs", IndexPaths(tmp_path / "undisturbed"))
    undisturbed = _content(IndexPaths(tmp_path / "undisturbed"))
    for point in POINTS:
        index = IndexPaths(tmp_path / point)
        interrupt_and_go_on(tmp_path / "docs", index, point, question_between=question_between)
        assert _content(index) == undisturbed, point


OPTIONS = ("--ocr", "auto", "--ocr-engine", "rapidocr")


def test_a_hundred_killed_readers(tmp_path: Path) -> None:
    docs = make_corpus(tmp_path / "docs", 12, scans=3)
    for number in range(0, 12, 7):  # the corpus leaves a page blank there, and blank pages tell nothing
        for path in docs.rglob(f"*-{number:03d}.pdf"):
            write_pdf(path, [f"Report {number}, part {part}." for part in range(2)])
    harms: list[Harm] = []
    seed = 0
    while sum(harm.killed for harm in harms) < 100:
        root = tmp_path / f"index-{seed}"
        harms.append(kill_readers(docs, root, Random(seed), kills=1 + seed % 3, within=6.0, options=OPTIONS))
        seed += 1
    told = sum(harm.code == 4 for harm in harms)
    print(f"{sum(harm.killed for harm in harms)} kills in {len(harms)} runs; {told} runs gave something up")
    assert [harm for harm in harms if harm.lacking_later or harm.findings] == []
    assert [harm for harm in harms if harm.lacking and harm.code == 0] == [], "a loss without a word"


def test_a_minute_of_everybody_at_once(tmp_path: Path) -> None:
    folders = [make_corpus(tmp_path / f"docs-{n}", 60, seed=n) for n in (1, 2)]
    crowd = Crowd(tmp_path / "index", seconds=60.0)
    crowd.run(folders, askers=4)
    print(f"{crowd.ingests} ingests ({crowd.busy} told to wait), {crowd.asks} questions, {crowd.answers} answered")
    assert crowd.problems == []
    assert crowd.answers > 0
    for folder in folders:
        assert run("ingest", str(folder), "--quiet", root=crowd.root)[0] == 0
    assert_whole(crowd.root)
    with Catalog(IndexPaths(crowd.root)) as catalog:
        assert writer.holds_everything(catalog)


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
