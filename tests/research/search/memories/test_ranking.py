"""How memories are ranked: neighbours, speakers, times, questions; each told in the parts of a score."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from research.index import Index
from tests.research.conversation.memory_index import ids, open_index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with open_index(tmp_path) as opened:
        yield opened


def _talk(index: Index, *turns: str, session: str = "s", at: str = "2026-05-01") -> None:
    for number, turn in enumerate(turns):
        speaker, _, text = turn.partition(": ")
        index.memories.remember(text, session=session, speaker=speaker, id=f"{session}{number}", created_at=at)


def test_an_answer_is_found_by_the_question_before_it(index: Index) -> None:
    _talk(index, "Ann: How was your trip to Iceland?", "Bob: Wonderful, we saw puffins.", "Ann: Lovely!")
    _talk(index, "Ann: The bus was late.", "Bob: As always, and it rained.", "Ann: Poor you!", session="t")
    found = index.memories.recall("What happened in Iceland?").memories
    assert {each.memory.id for each in found[:2]} == {"s0", "s1"}
    assert next(each for each in found if each.memory.id == "s1").parts["words"] > 0


def test_neighbours_are_those_of_the_session(index: Index) -> None:
    _talk(index, "Ann: The puffins were wonderful.", session="a")
    _talk(index, "Ann: The bus was late.", session="b")
    index.memories.remember("Nobody's neighbour")
    parts = {each.memory.id: each.parts for each in index.memories.recall("puffins").memories}
    assert "words" in parts["a0"]
    assert "words" not in parts.get("b0", {})


def test_who_is_named_is_who_speaks(index: Index) -> None:
    _talk(index, "Ann: I painted a lake.", "Bob: I painted a horse.", "Ann: Great, Bob!")
    assert ids(index, "What did Bob paint?")[0] == "s1"
    assert ids(index, "What did Ann paint?")[0] == "s0"
    assert index.memories.recall("What did Bob paint?").memories[0].parts["speaker"] == pytest.approx(0.2)
    assert "speaker" not in index.memories.recall("Who painted a horse?").memories[0].parts


def test_a_name_before_the_text_is_the_speaker_as_well(index: Index) -> None:
    index.memories.remember_batch(
        [{"text": "Ann: I painted a lake.", "session": "s"}, {"text": "Bob: I like it.", "session": "s"}]
    )
    [first, *_] = index.memories.recall("What did Ann paint?").memories
    assert (first.memory.speaker, first.memory.text) == ("Ann", "Ann: I painted a lake.")
    assert "speaker" in first.parts


def test_a_question_tells_less_than_an_answer(index: Index) -> None:
    index.memories.remember("Is the museum open on Sunday?", id="asks")
    index.memories.remember("The museum is open on Sunday", id="tells")
    assert ids(index, "museum Sunday open") == ["tells", "asks"]
    assert index.memories.recall("museum").memories[-1].parts["asking"] < 0


def test_a_time_in_the_question_is_looked_for(index: Index) -> None:
    for month in ("03", "08", "11"):
        index.memories.remember(f"We talked about the garden, part {month}", id=month, created_at=f"2023-{month}-04")
    assert ids(index, "What about the garden in August 2023?")[0] == "08"
    assert ids(index, "What about the garden on 5 March 2023?")[0] == "03"
    now = datetime(2023, 11, 5, tzinfo=UTC)
    assert ids(index, "What did I say of the garden yesterday?", now=now)[0] == "11"


def test_a_question_of_many_words_is_searched_by_its_rarest(index: Index) -> None:
    index.memories.remember("the quokka sleeps", id="q")
    index.memories.remember_batch([f"word{number} stands here" for number in range(20)])
    asked = " ".join(f"word{number}" for number in range(200)) + " quokka"
    assert "q" in ids(index, asked, top_k=30)
