"""Questions to memories: read from their files, asked inside their conversations, measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from talks import QUESTIONS, write_lines, write_set

from research.errors import UsageError
from research.evaluation.questions import asks_memories, read_set
from research.evaluation.scoring import ask_memories, fill, summarise, write_run
from tests.research.conversation.memory_index import open_index


def test_they_are_asked_inside_their_conversations(tmp_path: Path) -> None:
    read = read_set(write_set(tmp_path))
    assert list(read.memories) == ["one", "two"]
    with open_index(tmp_path / "index") as index:
        fill(index, read)
        asked = list(ask_memories(index, read))
    report = summarise(asked, "memories", field="category", among=1)
    assert report.rankings[0].figures["hit@1"].mean == pytest.approx(2 / 3)
    assert [(row.name, row.questions) for row in report.slices] == [("1", 2), ("4", 1)]
    [failure] = report.failures
    assert (failure.question.qid, failure.rank) == ("c", None)
    write_run(tmp_path / "run.jsonl", asked)
    first = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])
    assert (first["qid"], first["results"][0]) == ("a", "D1:1")


def test_a_file_tells_by_its_first_line_what_it_asks(tmp_path: Path) -> None:
    assert asks_memories(write_set(tmp_path))
    pages = write_lines(tmp_path / "pages.jsonl", [{"query": "x", "gold": [["a.pdf", 1]]}])
    assert not asks_memories(pages)
    assert not asks_memories(write_lines(tmp_path / "empty.jsonl", []))


@pytest.mark.parametrize(
    "change",
    [
        {"query": " "},
        {"gold": []},
        {"gold": ["D1:1", 7]},
        {"conversation": ""},
        {"conversation": "../one"},
        {"conversation": "three"},
        {"conversation": None},
    ],
)
def test_what_is_no_question_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    write_set(tmp_path)
    file = write_lines(tmp_path / "qrels.jsonl", [QUESTIONS[0], QUESTIONS[1] | change])
    with pytest.raises(UsageError):
        read_set(file)


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no questions"):
        read_set(write_lines(tmp_path / "empty.jsonl", []))
