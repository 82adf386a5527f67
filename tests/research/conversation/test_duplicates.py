"""What says the same is one memory; what only looks like it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.conversation.memory import digest, say_the_same
from research.memories import NewMemory
from tests.research.conversation.memory_index import encoder, ids, open_index

EQUAL = [
    ("I live in Bonn.", "i live in  bonn!"),
    ("The user prefers dark mode", "User prefers the dark mode."),
    ("I'm allergic to nuts", "I am allergic to nuts"),
    ("She doesn't eat fish", "She does not eat fish!"),
    ("We can't come", "We cannot come"),
    ("“Dune” is his favourite book", '"Dune" is his favourite book'),
]
NEAR = [
    ("The meeting begins at 9", "The meeting starts at 9"),
    ("Tim needs help with the move", "Tim requires help with the move"),
    ("Anna has a big house in Kiel", "Anna has a large house in Kiel"),
]
DIFFERENT = [
    ("I live in Bonn", "I live in Kiel"),
    ("I live in Bonn", "I lived in Bonn"),
    ("I like tea", "I don't like tea"),
    ("I eat meat", "I no longer eat meat"),
    ("Tim beat John", "John beat Tim"),
    ("He likes her", "She likes him"),
    ("I gave her the book", "She gave me the book"),
    ("The meeting is at 3", "The meeting is at 4"),
    ("The meeting is at 3.5", "The meeting is at 35"),
    ("Anna's number is 123", "Anna's number is 124"),
    ("I met Mr Bär", "I met Mr Bar"),
    ("It costs 5 €", "It costs 5 $"),
    ("The temperature is -5", "The temperature is 5"),
    ("He always eats meat", "He never eats meat"),
    ("Turn it on", "Turn it off"),
    ("Rent went up", "Rent went down"),
    ("Mary might come", "Mary will come"),
    ("The flight leaves on Monday", "The flight leaves on Tuesday"),
    ("He works with Tom", "He works for Tom"),
    ("I want a cat", "I have a cat"),
    ("I passed the exam", "I failed the exam"),
    ("You like it.", "You like it?"),
    ("Code is C++", "Code is C"),
    ("Ann told Bob that Cay left", "Ann told Cay that Bob left"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_ones_have_one_digest(one: str, other: str) -> None:
    assert digest(NewMemory(one)) == digest(NewMemory(other))
    assert say_the_same(one, other)


@pytest.mark.parametrize(("one", "other"), NEAR)
def test_near_ones_say_the_same(one: str, other: str) -> None:
    assert digest(NewMemory(one)) != digest(NewMemory(other))
    assert say_the_same(one, other)
    assert say_the_same(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_ones_are_never_joined(one: str, other: str) -> None:
    assert digest(NewMemory(one)) != digest(NewMemory(other))
    assert not say_the_same(one, other)
    assert not say_the_same(other, one)


def test_it_matters_who_says_it_and_as_what() -> None:
    plain = digest(NewMemory("I like tea", speaker="Ann"))
    assert digest(NewMemory("I like tea", speaker="ann", session="s")) == plain
    for other in ({"speaker": "Bob"}, {"persona": "p"}, {"namespace": "n"}, {"type": "note"}):
        assert digest(NewMemory("I like tea", **{"speaker": "Ann"} | other)) != plain  # type: ignore[arg-type]


def test_near_ones_are_joined_with_their_vectors(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        first = index.memories.remember("The meeting begins at 9")
        second = index.memories.remember("The meeting starts at 9")
        third = index.memories.remember("The meeting starts at 10")
        assert second.outcome == "stored", "told at once, joined when it is known what it means"
        index.memories.maintain()
        assert index.memories.get(second.id).id == first.id
        assert index.memories.get(first.id).also == (second.id,)
        assert index.memories.get(third.id).joined_to == ""
        assert set(ids(index, "When does the meeting start?")) == {first.id, third.id}


def test_a_joined_one_is_as_new_as_it_was_told_last(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        first = index.memories.remember("I live in Kiel", created_at="2026-01-01", importance=0.2)
        [bonn] = index.memories.remember_batch(
            [NewMemory("I moved to Bonn", created_at="2026-02-01", replaces=first.id)]
        )
        assert index.memories.get(first.id).superseded_by == bonn.id
        index.memories.remember("I live in Kiel.", created_at="2026-03-01", session="later")
        again = index.memories.get(first.id)
        assert (again.created_at[:10], again.told_at[:10]) == ("2026-01-01", "2026-03-01")
        assert again.superseded_by == "", "what is told again may be so again"


def test_different_ones_stay_apart_in_an_index(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        for one, other in DIFFERENT:
            index.memories.remember_batch([one, other])
        index.memories.maintain()
        texts = {text for pair in DIFFERENT for text in pair}
        assert {memory.text for memory in index.memories.list() if not memory.joined_to} == texts
    assert encoder().dim == 384
