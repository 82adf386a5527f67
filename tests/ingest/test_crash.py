"""A real `ctx ingest`, killed at random and at chosen moments, ends as if nothing had happened.

`make soak` does the same fifty times, with OCR; the quick witness is in test_interruption.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.soak.corpus import QUESTIONS, make_corpus
from tests.soak.crashing import CrashTest
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
