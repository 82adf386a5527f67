"""What is forgotten is gone: from every table, from what was made of it, from what is held in memory, from the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from research.errors import NothingFoundError, UsageError
from research.index import Index
from research.memories import NewMemory
from tests.research.conversation.memory_index import counts, ids, open_index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with open_index(tmp_path) as opened:
        yield opened


def _bytes(index: Index) -> bytes:
    """All that is on the disk."""
    return b"".join(path.read_bytes() for path in index.root.rglob("*") if path.is_file())


def test_by_id(index: Index) -> None:
    secret = index.memories.remember("The zephyrquartz lies in locker 17", metadata={"from": "zephyrquartz-note"})
    other = index.memories.remember("Lockers are in the basement")
    index.memories.feedback(secret.id, True)
    assert secret.id in ids(index, "zephyrquartz locker")
    gone = index.memories.forget(secret.id)
    assert (gone.ids, gone.summaries) == ((secret.id,), ())
    assert ids(index, "zephyrquartz locker") == [other.id]
    assert counts(index) == {"memory_tenants": 1, "memories": 1, "memory_words": 1, "memory_vectors": 1}
    with pytest.raises(NothingFoundError):
        index.memories.get(secret.id)
    with pytest.raises(NothingFoundError):
        index.memories.forget(secret.id)
    index.close()
    assert b"zephyrquartz" not in _bytes(index)


def test_nothing_goes_if_one_of_the_ids_is_not_there(index: Index) -> None:
    told = index.memories.remember("keep me")
    with pytest.raises(NothingFoundError, match="mem-nobody"):
        index.memories.forget(told.id, "mem-nobody")
    assert index.memories.get(told.id)
    with pytest.raises(UsageError, match="nothing was named"):
        index.memories.forget()


def test_another_process_that_holds_it_lets_go(tmp_path: Path) -> None:
    with open_index(tmp_path) as one, open_index(tmp_path) as other:
        told = one.memories.remember("the parrot is green")
        one.memories.remember("the parrot is loud")
        assert told.id in ids(other, "green parrot")
        one.memories.forget(told.id)
        assert told.id not in ids(other, "green parrot")


def test_summaries_made_from_it_go_with_it(index: Index) -> None:
    first = index.memories.remember("Anna is ill", session="s1")
    second = index.memories.remember("Ben is well", session="s1")
    made = index.memories.remember(
        "They spoke of health", type="session_summary", metadata={"sources": [first.id, second.id]}
    )
    again = index.memories.remember("A summary of a summary", type="session_summary", metadata={"sources": [made.id]})
    stays = index.memories.remember("Another summary", type="session_summary", metadata={"sources": ["elsewhere"]})
    gone = index.memories.forget(first.id)
    assert gone.ids == (first.id,)
    assert set(gone.summaries) == {made.id, again.id}
    assert {memory.id for memory in index.memories.list()} == {second.id, stays.id}


def test_a_session_with_its_summary(index: Index) -> None:
    index.memories.remember_batch([NewMemory(f"turn {number}", session="s1") for number in range(30)])
    index.memories.remember("They counted turns", type="session_summary", session="s1")
    other = index.memories.remember("of another session", session="s2")
    gone = index.memories.forget(session="s1")
    assert len(gone.ids) == 31
    assert [memory.id for memory in index.memories.list()] == [other.id]
    assert index.memories.forget(session="s1").ids == ()


def test_all_of_a_tenant_and_nothing_of_another(index: Index) -> None:
    index.memories.remember_batch([NewMemory(f"number {number}") for number in range(1203)], tenant="many")
    mine = index.memories.remember("mine")
    assert len(index.memories.forget(tenant="many", everything=True).ids) == 1203
    assert counts(index, "many") == {}
    assert ids(index, "mine") == [mine.id]
    again = index.memories.remember("number 7", tenant="many")
    assert ids(index, "number", tenant="many") == [again.id], "what was held of the tenant before is not found"


def test_one_that_others_say_as_well_leaves_its_place_to_them(index: Index) -> None:
    first = index.memories.remember("I live in Kiel", session="s1")
    second = index.memories.remember("I live in Kiel!", session="s2")
    third = index.memories.remember("i live in kiel", session="s3")
    assert (second.joined_to, third.joined_to) == (first.id, first.id)
    assert ids(index, "Where do I live?") == [first.id]
    index.memories.forget(first.id)
    assert ids(index, "Where do I live?") == [second.id]
    assert index.memories.get(third.id).id == second.id
    assert index.memories.get(second.id).also == (third.id,)
    index.memories.forget(session="s2")
    assert ids(index, "Where do I live?") == [third.id]


def test_a_joined_one_goes_alone(index: Index) -> None:
    first = index.memories.remember("I live in Kiel", session="s1")
    second = index.memories.remember("I live in Kiel!", session="s2")
    assert index.memories.forget(second.id).ids == (second.id,)
    assert index.memories.get(first.id).also == ()
    with pytest.raises(NothingFoundError):
        index.memories.get(second.id)


def test_what_it_took_back_holds_again(index: Index) -> None:
    index.memories.remember("Tim lives in Kiel", id="kiel", created_at="2026-01-01")
    index.memories.remember("Tim moved to Bonn", id="bonn", created_at="2026-02-01")
    assert index.memories.get("kiel").superseded_by == "", "nothing is marked by a guess"
    index.memories.remember_batch(
        [NewMemory("Tim lives in Bonn", "flat", replaces="kiel"), NewMemory("In Rome", "rome", replaces="flat")]
    )
    assert (index.memories.get("kiel").superseded_by, index.memories.get("flat").superseded_by) == ("flat", "rome")
    assert ids(index, "Where does Tim live? In Kiel?")[:2] == ["rome", "flat"]
    index.memories.forget("rome")
    assert (index.memories.get("kiel").superseded_by, index.memories.get("flat").superseded_by) == ("flat", "")
    index.memories.forget("flat")
    assert index.memories.get("kiel").superseded_by == ""
    with pytest.raises(UsageError, match="no memory has the id rome"):
        index.memories.remember_batch([NewMemory("In Oslo", replaces="rome")])
