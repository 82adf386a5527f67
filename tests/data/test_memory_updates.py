"""Pairs of memories of which the second takes the first back: the newer one comes first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from research.index import Index
from tests.research.conversation.memory_index import open_index

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "memory_updates.jsonl").read_text("utf-8").splitlines()
]
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """All of them are one person's, so that each stands among the others."""
    with open_index(tmp_path_factory.mktemp("updates")) as index:
        for kind, days in (("old", 60), ("new", 3)):
            at = NOW - timedelta(days=days)
            index.memories.remember_batch(
                {"text": p[kind], "id": f"{p['qid']}/{kind}", "created_at": at} for p in PAIRS
            )
        yield index


def _newer_first(index: Index, pair: dict[str, str], *, salience: bool) -> bool:
    found = index.memories.recall(pair["query"], salience=salience, now=NOW).memories
    ids = [each.memory.id for each in found]
    newer, older = f"{pair['qid']}/new", f"{pair['qid']}/old"
    return newer in ids and (older not in ids or ids.index(newer) < ids.index(older))


def test_there_are_enough_and_each_is_its_own() -> None:
    assert len(PAIRS) >= 40
    assert len({pair["qid"] for pair in PAIRS}) == len({pair["old"] for pair in PAIRS}) == len(PAIRS)


def test_with_recency_the_newer_one_wins(told: Index) -> None:
    lost = [pair["qid"] for pair in PAIRS if not _newer_first(told, pair, salience=True)]
    assert len(lost) <= 2, lost  # where the older one has far more of the question's words


def test_nothing_is_marked_by_a_guess(told: Index) -> None:
    assert [memory.id for memory in told.memories.list() if memory.superseded_by] == []


def test_where_it_was_told_to_replace_the_older_one_it_stands_first(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        index.memories.remember_batch({"text": pair["old"], "id": f"{pair['qid']}/old"} for pair in PAIRS)
        newer = ({"text": p["new"], "id": f"{p['qid']}/new", "replaces": f"{p['qid']}/old"} for p in PAIRS)
        index.memories.remember_batch(newer)
        assert [pair["qid"] for pair in PAIRS if not _newer_first(index, pair, salience=False)] == []
