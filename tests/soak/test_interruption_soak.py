"""Ctrl-C at every point of a run, each with and without a question before the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.store import IndexPaths
from tests.conftest import write_pdf
from tests.ingest.test_interruption import TEXTS, _content, _finish, interrupt_and_go_on

POINTS = ("planned", "reading", "finished", "embedding", "embedded", "publishing")


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
