"""A real `ctx ingest`, or its readers, killed at random and at chosen moments: it ends as if nothing had happened.

`make soak` does the same a hundred times, with images and OCR; the quick witnesses are in test_interruption, test_pool
and test_deaths.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.conftest import write_pdf
from tests.soak.corpus import QUESTIONS, make_corpus
from tests.soak.crashing import CrashTest
from tests.soak.killing_workers import kill_readers
from tests.soak.running import STAGES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> CrashTest:
    folder = tmp_path_factory.mktemp("crash")
    return CrashTest(make_corpus(folder / "docs", 24), folder, questions=QUESTIONS[:6])


def test_killed_at_random_moments(crash: CrashTest) -> None:
    crash.kill_at_random(2, Random(5))


def test_killed_between_the_stages(crash: CrashTest) -> None:
    crash.begin_anew()
    before = crash.kills
    for stage in ("embedding", "drawing", "publishing"):
        kills = crash.kills
        crash.kill_when(STAGES[stage])
        if crash.kills == kills:  # on a busy machine the moment may be over before it is seen
            crash.begin_anew()
    crash.finish()
    assert crash.kills > before


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for number in range(12):
        write_pdf(folder / f"made{number}.pdf", [f"Report {number}, part {part}. " + "word " * 40 for part in range(3)])
    return folder


def test_a_reader_killed_at_a_random_moment(docs: Path, tmp_path: Path) -> None:
    harm = kill_readers(docs, tmp_path / "index", Random(0), kills=1, within=0.8, options=("--no-images",))
    assert (harm.code, harm.lacking) == (0, 0), "one death is tried again"
    assert (harm.lacking_later, harm.findings) == (0, [])


def test_many_readers_killed_in_one_run(docs: Path, tmp_path: Path) -> None:
    harm = kill_readers(docs, tmp_path / "index", Random(7), kills=6, within=3.0, options=("--no-images",))
    assert (harm.lacking_later, harm.findings) == (0, []), "the next run mends what was given up"
    assert (harm.lacking == 0) == (harm.code == 0), "what is lacking is told"
