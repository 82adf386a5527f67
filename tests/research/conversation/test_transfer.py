"""Memories as JSON Lines: out of one index, into another, with what is wrong told by its line."""

from __future__ import annotations

import io
from pathlib import Path

from research.conversation.intake import LONGEST_LINE, export_memories, import_memories
from research.index import Index
from tests.research.conversation.memory_index import ids, open_index


def _lines(index: Index) -> io.BytesIO:
    return io.BytesIO("\n".join(export_memories(index.memories.list(newest=False))).encode())


def test_there_and_back(tmp_path: Path) -> None:
    with open_index(tmp_path / "one") as one, open_index(tmp_path / "two") as two:
        one.memories.remember(
            "Tim lives in Kiel", tags=["people"], metadata={"nested": {"deep": [1, None]}}, importance=0.7
        )
        one.memories.remember("tim lives in kiel!", session="later", speaker="")
        one.memories.remember("Tim moved to Bonn", key="k", expires_at="2099-01-01")
        one.memories.remember("ünïcödé \u2028 \x1b[31m “quotes”", category="odd")
        first = import_memories(two, _lines(one))
        assert (first.stored, first.joined, first.known, first.failed) == (3, 1, 0, 0)
        again = import_memories(two, _lines(one))
        assert (again.stored, again.joined, again.known, again.failed) == (0, 0, 4, 0)

        def plain(index: Index) -> list[dict[str, object]]:
            used = {"told_at", "last_used_at"}
            return [{k: v for k, v in m.to_dict().items() if k not in used} for m in index.memories.list(newest=False)]

        assert plain(two) == plain(one)
        assert ids(two, "Where does Tim live?") == ids(one, "Where does Tim live?")


def test_into_another_tenant(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        told = index.memories.remember("mine")
        assert import_memories(index, _lines(index), tenant="other").stored == 1
        assert index.memories.get(told.id, tenant="other").tenant == "other"


def test_a_wrong_line_costs_itself_alone(tmp_path: Path) -> None:
    lines = [
        b'{"text": "good"}',
        b"",
        b"no json",
        b'{"text": ""}',
        b"[1]",
        b'{"text": "\xff"}',
        b'{"text": "x", "importance": NaN}',
        b'{"text": "' + b"y" * LONGEST_LINE + b'"}',
        b"[" * 100_000,
        b'{"text": "also good", "id": "a"}',
        b'{"text": "another text", "id": "a"}',
        b'{"text": "the last"}',
    ]
    with open_index(tmp_path) as index:
        done = import_memories(index, io.BytesIO(b"\n".join(lines)))
        assert (done.stored, done.failed) == (3, 8)
        assert [line for line, _ in done.failures] == [3, 4, 5, 6, 7, 8, 9, 11]
        assert {memory.text for memory in index.memories.list()} == {"good", "also good", "the last"}


def test_many_lines_go_in_batches(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        lines = io.BytesIO(b"".join(b'{"text": "line %d"}\n' % number for number in range(501)))
        assert import_memories(index, lines).stored == 501
