"""A reader killed at any moment costs nothing that the same run, or the next one, does not mend.

`make soak` does the same a hundred times, with images and OCR; the quick witnesses are in test_pool and test_deaths.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.conftest import write_pdf
from tests.soak.killing_workers import kill_readers

pytestmark = pytest.mark.slow


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
