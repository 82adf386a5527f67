"""The second question of a conversation, on everything in data/: found with its session, and never bent by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.index import Index
from tests.bench.followups import DATA, GOAL, Measured, measure, read_pairs, share


@pytest.fixture(scope="module")
def measured(data_index: Path) -> list[Measured]:
    with Index(data_index) as index:
        return list(measure(index, read_pairs(DATA / "followups.jsonl")))


@pytest.mark.slow
def test_a_follow_up_finds_the_right_page_among_five(measured: list[Measured]) -> None:
    pairs = [each for each in measured if not each.pair.is_change]
    assert len(pairs) >= 40
    wrong = [each.pair.qid for each in pairs if each.within > 5]
    assert share(each.within for each in pairs) >= GOAL, wrong
    # It is the session that does it, and nobody is worse off.
    assert share(each.alone for each in pairs) < 0.75
    assert [each.pair.qid for each in pairs if each.alone <= 5 < each.within] == []


@pytest.mark.slow
def test_a_change_of_the_subject_is_not_bent(measured: list[Measured]) -> None:
    changes = [each for each in measured if each.pair.is_change]
    assert len(changes) >= 20
    assert [each.pair.qid for each in changes if each.within > each.alone] == []


@pytest.mark.slow
def test_every_page_that_is_named_is_there(data_index: Path) -> None:
    with Index(data_index) as index:
        pages = {info.filename: info.num_pages for info in index.documents.list()}
    for pair in read_pairs(DATA / "followups.jsonl"):
        assert all(1 <= page <= pages[name] for name, page in pair.gold), pair.qid
