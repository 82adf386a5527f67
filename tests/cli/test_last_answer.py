"""What `ctx open N` remembers: by terminal and index, for its owner alone, and nothing where nobody sits."""

from __future__ import annotations

import json
import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.ask import keep_numbers
from cli.session import kept_sources


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sit down at a terminal, by its number."""
    pairs: dict[int, tuple[int, int]] = {}

    def sit_at(number: int) -> None:
        if number not in pairs:
            pairs[number] = pty.openpty()
        monkeypatch.setattr(sys, "stderr", open(pairs[number][1], "w", closefd=False))  # noqa: SIM115

    yield sit_at
    for ours, theirs in pairs.values():
        os.close(ours)
        os.close(theirs)


def test_each_terminal_has_its_own_last_answer(terminal, tmp_path: Path) -> None:
    terminal(1)
    keep_numbers(tmp_path, ["page:a#1"])
    terminal(2)
    keep_numbers(tmp_path, ["page:b#2", "page:b#3"])
    assert [str(ref) for ref in kept_sources(tmp_path)] == ["page:b#2", "page:b#3"]
    terminal(1)
    assert [str(ref) for ref in kept_sources(tmp_path)] == ["page:a#1"]
    terminal(3)
    assert [str(ref) for ref in kept_sources(tmp_path)] == ["page:b#2", "page:b#3"], "the last one anywhere"
    for number in range(20):
        terminal(4 + number)
        keep_numbers(tmp_path, ["page:c#1"])
    [kept] = (tmp_path / "home").rglob("answers/*.json")
    assert len(json.loads(kept.read_text())) == 8


def test_without_a_terminal_nothing_is_kept(call, filled: Path, tmp_path: Path) -> None:
    assert call("ask", "housing", "--index", str(filled)).code == 0
    assert not list((tmp_path / "home").rglob("*"))


def test_where_nothing_can_be_written_the_answer_stands(terminal, tmp_path: Path, monkeypatch) -> None:
    terminal(1)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    keep_numbers(tmp_path, ["page:a#1"])
    assert kept_sources(tmp_path) == []
