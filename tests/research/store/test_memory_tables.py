"""Memories in the catalog: written and looked after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from backup_changing import unit_rows
from index_making import Making
from memory_making import tell, told

from research.errors import UsageError
from research.memories import Within
from research.store import integrity
from research.store.archive import backup
from research.store.catalog import Catalog
from research.store.paths import IndexPaths
from research.store.restoring import restore


def test_numbers_grow_and_are_never_given_twice(making: Making) -> None:
    [(first, _)] = tell(making.catalog, "t", told("one"))
    [(second, _)] = tell(making.catalog, "t", told("two"))
    with making.catalog.transaction() as connection:
        connection.memories.forget("t", [second])
    [(third, _)] = tell(making.catalog, "t", told("three"))
    assert first < second < third
    assert [memory.text for memory in making.catalog.memories.select("t", Within(), newest=False)] == ["one", "three"]


def test_only_what_changed_is_read_again(making: Making) -> None:
    tell(making.catalog, "t", told("one"), told("two"))
    state = making.catalog.memories.state("t")
    assert state is not None
    assert making.catalog.memories.rows_after("t", state.last_seq) == []
    with making.catalog.transaction() as connection:
        connection.memories.give_feedback("t", 1, helped=True, score=0.1, at="2026-01-01T00:00:00+00:00")
    tell(making.catalog, "t", told("three"))
    assert [row.memory_no for row in making.catalog.memories.rows_after("t", state.last_seq)] == [1, 4]
    now = making.catalog.memories.state("t")
    assert now is not None
    assert now.version == state.version, "nothing is gone"
    with making.catalog.transaction() as connection:
        connection.memories.forget("t", [1])
    later = making.catalog.memories.state("t")
    assert later is not None
    assert later.version != state.version


def test_vectors_of_what_is_gone_or_joined_are_not_written(making: Making) -> None:
    tell(making.catalog, "t", told("same", digest="a" * 40), told("Same", digest="a" * 40), told("other"))
    with making.catalog.transaction() as connection:
        connection.memories.write_vectors("t", "made-up", [1, 2, 3, 99], unit_rows(4).astype(np.float32))
    numbers, vectors = making.catalog.memories.vectors("t", "made-up")
    assert numbers == [1, 3]
    assert vectors.shape == (2, 8)
    assert making.catalog.memories.vectors("t", "made-up", [3, 4])[0] == [3]
    assert making.catalog.memories.vectors("t", "another")[0] == []
    assert making.catalog.memories.pending_vectors("t", "another", 9) == [(3, "", "other"), (1, "", "same")]


def test_joining_what_is_joined_or_gone_does_nothing(making: Making) -> None:
    tell(making.catalog, "t", told("one"), told("two"), told("three"))
    with making.catalog.transaction() as connection:
        assert connection.memories.join("t", 2, 1)
        for number, to in ((2, 1), (3, 2), (1, 1), (3, 99), (99, 1)):
            assert not connection.memories.join("t", number, to)
        assert connection.memories.join("t", 1, 3), "with those that are joined to it"
    found = making.catalog.memories.get("t", [1, 2, 3])
    assert [memory.joined_to for memory in found.values()] == [found[3].id, found[3].id, ""]
    assert set(found[3].also) == {found[1].id, found[2].id}
    assert list(integrity.check_memories(making.catalog)) == []


def test_an_id_is_one_memorys(making: Making) -> None:
    tell(making.catalog, "t", told("one", id="x"))
    with pytest.raises(UsageError, match="taken by another memory"):
        tell(making.catalog, "t", told("two", id="x"))
    assert tell(making.catalog, "u", told("two", id="x")) == [(1, "stored")]


def test_the_doctor_mends_what_memories_say_of_each_other(making: Making) -> None:
    tell(making.catalog, "t", told("one"), told("two"), told("three"), told("four"))
    connection = making.catalog.connection
    connection.execute("UPDATE memories SET joined_to = 99 WHERE memory_no = 1")
    connection.execute("UPDATE memories SET superseded_by = 98 WHERE memory_no = 2")
    connection.execute("DELETE FROM memory_words WHERE memory_no = 1")
    problems = list(integrity.check_memories(making.catalog))
    assert [problem.message for problem in problems] == [
        "1 memories are joined to one that is gone",
        "1 memories are superseded by one that is gone",
    ]
    for problem in problems:
        assert problem.fix is not None
        problem.fix(making.catalog)
    assert list(integrity.check_memories(making.catalog)) == []
    assert list(connection.memories.outdated_words()) == []


def test_the_doctor_drops_vectors_that_are_none(making: Making) -> None:
    tell(making.catalog, "t", told("one"), told("two"))
    with making.catalog.transaction() as connection:
        connection.memories.write_vectors("t", "made-up", [1, 2], unit_rows(2).astype(np.float32))
        connection.execute("UPDATE memory_vectors SET vector = x'ff7bff7b' WHERE memory_no = 2")
    [problem] = integrity.check_vectors(making.catalog)
    assert problem.fix is not None
    problem.fix(making.catalog)
    assert making.catalog.memories.vectors("t", "made-up")[0] == [1]


def test_words_follow_the_rules_of_questions(making: Making) -> None:
    tell(making.catalog, "t", told("Walruses were swimming"), told("Ann: seals", speaker="Ann", session="s"))
    connection = making.catalog.connection
    assert [row[0] for row in connection.execute("SELECT body FROM memory_words ORDER BY memory_no")] == [
        "walrus swim",
        "seal",
    ]
    connection.execute("UPDATE memory_words SET body = 'as another version had it'")
    before = making.catalog.memories.state("t")
    [problem] = integrity.check_fulltext_words(making.catalog)
    assert problem.fix is not None
    problem.fix(making.catalog)
    assert list(integrity.check_fulltext_words(making.catalog)) == []
    assert making.catalog.memories.state("t") != before, "whoever holds them reads them again"
    with making.catalog.transaction() as writing:
        assert writing.memories.update_words() == 0


def test_an_index_that_only_remembers_is_not_restored_over(making: Making, tmp_path: Path) -> None:
    tell(making.catalog, "t", told("one"))
    backup(making.paths, tmp_path / "memories.zip")
    with pytest.raises(UsageError, match="holds 1 memories"):
        restore(making.paths, tmp_path / "memories.zip")
    restored = IndexPaths(tmp_path / "restored")
    restore(restored, tmp_path / "memories.zip")
    with Catalog(restored) as catalog:
        assert [memory.text for memory in catalog.memories.select("t", Within())] == ["one"]
        assert catalog.memories.count() == (1, 1)
        assert catalog.memories.tenants() == ["t"]
