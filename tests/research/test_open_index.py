"""An index that stays open while others write it, in short; `make soak` does it for a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.open_index import OpenIndex


@pytest.mark.slow
def test_an_open_index_answers_while_others_write(tmp_path: Path) -> None:
    soak = OpenIndex(tmp_path, threads=3, seconds=0.0, generations=2, pause=0.05)
    soak.run()
    assert soak.problems == []
    assert soak.published >= 2
    assert soak.answers > 0
    assert soak.samples[-1][2] <= soak.samples[0][2] + 40, "descriptors: those of a pool, not of every question"
