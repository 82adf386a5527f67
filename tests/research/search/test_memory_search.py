"""How memories are ranked, each share told in the parts of a score; what is held of them follows the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.index import Index
from research.search.memories import Segment, View, Views, score_words
from tests.pace import draws
from tests.research.conversation.memory_index import encoder, ids, open_index


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


STEP = st.one_of(
    st.tuples(st.just("tell"), st.lists(st.sampled_from(["ice", "seal", "orca", "fish"]), min_size=1, max_size=5)),
    st.tuples(st.just("again"), st.just(["ice", "seal"])),
    st.tuples(st.just("feedback"), st.booleans()),
    st.tuples(st.just("forget"), st.integers(0, 5)),
    st.tuples(st.just("embed"), st.none()),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("views")


_rounds = iter(range(1000))


@draws(15)
@given(steps=st.lists(STEP, min_size=1, max_size=16))
def test_a_view_that_followed_is_one_that_was_read_anew(folder: Path, steps: list[tuple[str, object]]) -> None:
    views = Views()
    with open_index(folder / str(next(_rounds))) as index:
        index.memories.remember("the first of them", session="s0")
        for number, (kind, value) in enumerate(steps):
            _do(index, number, kind, value)
            with index.catalog.snapshot() as reader:
                followed = views.get(reader, "", encoder().name)
                fresh = Views().get(reader, "", encoder().name)
            assert followed is not None
            assert fresh is not None
            _same(followed, fresh)


def _do(index: Index, number: int, kind: str, value: object) -> None:
    memories = [memory.id for memory in index.memories.list()]
    if kind == "tell":
        assert isinstance(value, list)
        index.memories.remember(
            " ".join(value) + f" {number}", session=f"s{number % 2}", tags=["odd"] if number % 2 else []
        )
    elif kind == "again":
        index.memories.remember("ice seal", session=f"s{number}")
    elif kind == "feedback":
        index.memories.feedback(memories[0], bool(value))
    elif kind == "forget" and len(memories) > 1:
        index.memories.forget(memories[int(str(value)) % len(memories)])
    elif kind == "embed":
        index.memories.maintain()


def _same(one: View, other: View) -> None:
    for name in ("numbers", "live", "created", "told", "expires", "importance", "feedback", "asks", "newer", "lengths"):
        assert np.array_equal(getattr(one.columns, name), getattr(other.columns, name)), name
    for name in ("session", "type", "speaker"):
        assert _values(one, name) == _values(other, name)
    assert one.columns.tags == other.columns.tags
    for name in ("earlier", "later", "norms", "without_vectors"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    words = ["ice", "seal", "orca", "first"]
    assert np.allclose(score_words(one, words), score_words(other, words))
    asked = encoder().embed_query("a seal on the ice")
    assert np.allclose(one.cosines(asked), other.cosines(asked), atol=2e-3)  # half precision on the disk


def _values(view: View, name: str) -> list[str]:
    values = list(view.columns.values[name])
    return [values[code] for code in view.columns.codes[name]]


def test_segments_together_are_one() -> None:
    parts = [Segment.of([0, 1], ["ice seal", "seal seal"]), Segment.of([2], ["orca"]), Segment.of([5, 7], ["ice", "x"])]
    whole = Segment.together(parts)
    for word in ("ice", "seal", "orca", "x", "nothing"):
        expected = np.concatenate([part.find(word) for part in parts])
        assert sorted(whole.find(word).tolist()) == sorted(expected.tolist())


def test_many_small_parts_are_put_together(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        for number in range(30):
            index.memories.remember(f"walnut {number}")
            assert index.memories.recall(f"walnut {number}").memories[0].memory.text == f"walnut {number}"
        with index.catalog.snapshot() as reader:
            view = index.memory_store()._source().views.get(reader, "", encoder().name)
        assert view is not None
        assert len(view.segments) <= 8
        assert len(view.blocks) <= 8


def test_those_not_asked_for_long_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.search.memories._MOST_ROWS", 5)
    with open_index(tmp_path) as index:
        views = index.memory_store()._source().views
        for tenant in ("a", "b", "c"):
            index.memories.remember_batch([f"{tenant} {number}" for number in range(3)], tenant=tenant)
            index.memories.recall("anything", tenant=tenant)
        assert [tenant for tenant, _ in views._kept] == ["c"]
        assert len(index.memories.recall("a", tenant="a").memories) == 3
