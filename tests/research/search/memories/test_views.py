"""What is held of a tenant's memories follows what is told, changed and forgotten, and is what would be read anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.index import Index
from research.search.memories import Segment, View, Views, score_words
from tests.pace import draws
from tests.research.conversation.memory_index import encoder, open_index

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
