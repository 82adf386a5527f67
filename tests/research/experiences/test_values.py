"""Values: found where experiences say the same, in the words of one of them, and gone with what they were made of."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from research.errors import BusyError, CtxError, NothingFoundError, UsageError
from research.experiences import values as clusters
from research.experiences.records import AXES, Value
from research.index import Index
from research.settings import Settings
from research.store import integrity
from tests.conftest import built_once
from tests.research.experiences.recurring import THEMES, recurring


def _make(root: Path) -> None:
    with Index(root) as index:
        index.experiences.put(recurring())
        index.experiences.rebuild_values()


@pytest.fixture(scope="session")
def _valued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, "valued", _make)


@pytest.fixture
def valued(_valued: Path, tmp_path: Path) -> Iterator[Index]:
    import shutil

    with Index.open(shutil.copytree(_valued, tmp_path / "valued"), Settings(values_after=3)) as index:
        yield index


def themes(value: Value) -> set[str]:
    return {member.partition("-")[0] for member in value.members}


@pytest.mark.slow
def test_each_theme_is_a_value_in_the_words_of_a_member(valued: Index) -> None:
    values = valued.experiences.values(axis="root_cause")
    assert sorted(theme for value in values for theme in themes(value)) == sorted(THEMES), "one theme in each"
    for value in values:
        assert value.text == valued.experiences.get(value.experience).root_cause
        assert value.experience in value.members
        assert value.cluster_size == len(value.members) >= 5
        assert 0.7 < value.similarity_to_centroid <= 1.0
        assert value.metadata() == {
            "id": value.id,
            "axis": "root_cause",
            "cluster_id": value.cluster_id,
            "cluster_size": value.cluster_size,
            "similarity_to_centroid": value.similarity_to_centroid,
        }
    assert [each.cluster_size for each in values] == sorted((each.cluster_size for each in values), reverse=True)
    assert valued.experiences.value(values[0].id) == values[0]
    with pytest.raises(NothingFoundError, match="no value 'nobody'"):
        valued.experiences.value("nobody")


def test_no_sentence_of_a_member_is_nearer(valued: Index) -> None:
    with valued.catalog.snapshot() as reader:
        encoder = valued.rooms.own_encoder(reader)
    for value in valued.experiences.values(axis="root_cause"):
        texts = [valued.experiences.get(member).root_cause for member in value.members]
        vectors = encoder.embed(texts)
        near = vectors @ clusters.centroid_of(vectors)
        assert texts[int(near.argmax())] == value.text
        assert abs(float(near.max()) - value.similarity_to_centroid) < 0.01


def test_a_sentence_that_is_far_from_its_members_is_no_value(own: Index) -> None:
    assert own.experiences.rebuild_values().done
    values = own.experiences.values()
    assert {value.axis for value in values} >= {"root_cause"}
    assert all(value.similarity_to_centroid >= clusters.NEAR for value in values)


def test_they_are_found(valued: Index) -> None:
    found = valued.experiences.search_values("nobody had limited how long to wait for an answer", limit=3)
    assert themes(found.results[0].value) == {"timeout"}
    assert 0.0 < found.results[0].score < 1.0
    assert [each.value.axis for each in valued.experiences.search_values("x", axis="surprise").results] == []
    with pytest.raises(UsageError, match="no axis 'mood'"):
        valued.experiences.search_values("x", axis="mood")
    assert valued.experiences.search_values("principles for debugging", limit=1).results[0].parts["words"] > 0


@pytest.mark.slow
def test_ids_stay_while_most_members_do(valued: Index) -> None:
    before = {value.text: value for value in valued.experiences.values()}
    more = [{**each, "id": f"{each['id']}-again"} for each in recurring() if each["id"].startswith("lock")]
    valued.experiences.put(more)
    assert valued.experiences.rebuild_values(force=False).done, "three and more are new"
    after = {next(iter(themes(value))): value for value in valued.experiences.values(axis="root_cause")}
    old = {next(iter(themes(value))): value for value in before.values() if value.axis == "root_cause"}
    assert {theme: value.id for theme, value in after.items()} == {theme: value.id for theme, value in old.items()}
    assert after["lock"].cluster_size > old["lock"].cluster_size
    assert not valued.experiences.rebuild_values(force=False).done, "nothing is new"


@pytest.mark.slow
def test_what_is_removed_leaves_its_values_at_once(valued: Index) -> None:
    def cache() -> Value | None:
        return next((each for each in valued.experiences.values(axis="root_cause") if themes(each) == {"cache"}), None)

    value = cache()
    assert value is not None
    other = next(member for member in value.members if member != value.experience)
    assert value.id not in valued.experiences.remove(other).values
    smaller = valued.experiences.value(value.id)
    assert (smaller.cluster_size, other in smaller.members) == (value.cluster_size - 1, False)
    assert value.id in valued.experiences.remove(value.experience).values, "it was told in this one's words"
    assert cache() is None
    assert valued.experiences.rebuild_values().done
    again = cache()
    assert again is not None
    assert again.text != value.text


@pytest.mark.slow
def test_a_rebuild_brings_nothing_back(valued: Index) -> None:
    """Experiences are removed while values are looked for, again and again."""
    over = threading.Event()

    def rebuild() -> None:
        with Index.open(valued.root) as index:
            while not over.is_set():
                with suppress(BusyError):  # removed meanwhile, three times in a row
                    index.experiences.rebuild_values()

    running = threading.Thread(target=rebuild)
    running.start()
    try:
        for number in range(7):
            gone = [f"{theme}-{number}" for theme in ("zone", "rights")]
            valued.experiences.remove(*gone)
            left = valued.experiences.values()
            assert not {value.experience for value in left} & set(gone)
            assert not {member for value in left for member in value.members} & set(gone)
    finally:
        over.set()
        running.join()
    assert not any(themes(value) & {"zone", "rights"} for value in valued.experiences.values())


def test_too_few_give_none_and_it_says_so(empty: Index) -> None:
    assert empty.experiences.values() == []
    assert empty.experiences.search_values("anything").results == ()
    empty.experiences.put(recurring()[:9])
    rebuilt = empty.experiences.rebuild_values()
    assert [each.axis for each in rebuilt.axes] == list(AXES)
    assert [each.values for each in rebuilt.axes] == [0] * 4
    assert rebuilt.axes[3].note == "too few: 9 experiences have something on this axis, and 10 are needed"
    assert rebuilt.axes[2].note.startswith("too few: 0 experiences")


@pytest.mark.slow
def test_those_that_agree_on_nothing_have_none(experienced: Index, own: Index) -> None:
    """Our own experiences are of many kinds: what little is found there is near its centroid."""
    rebuilt = own.experiences.rebuild_values()
    assert all(each.values <= each.experiences / 5 for each in rebuilt.axes)
    for value in own.experiences.values():
        assert value.similarity_to_centroid > 0.4, value
    lessons = {lesson for each in own.experiences.list() for lesson in (each.lesson, each.surprise, each.root_cause)}
    assert all(any(value.text in lesson for lesson in lessons) for value in own.experiences.values())
    assert experienced.experiences.values() == []


@pytest.mark.slow
def test_when_it_is_due(empty: Index) -> None:
    empty.settings = Settings(values_after=20)
    empty.experiences.put(recurring()[:9])
    assert not empty.experiences.rebuild_values(force=False).done, "nine are too few"
    empty.experiences.put(recurring()[9:12])
    assert empty.experiences.rebuild_values(force=False).done, "for the first time as soon as there are enough"
    empty.experiences.put(recurring()[12:31])
    assert not empty.experiences.rebuild_values(force=False).done
    empty.experiences.put(recurring()[31:32])
    empty.settings = Settings(values_after=0)
    assert not empty.experiences.rebuild_values(force=False).done, "only when asked to"
    empty.settings = Settings(values_after=20)
    assert empty.experiences.rebuild_values(force=False).done


def test_without_scikit_learn_the_line_to_install_it_is_told(valued: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(CtxError) as caught:
        valued.experiences.rebuild_values()
    assert caught.value.hint == "pip install 'ctx-research[values]'"
    assert valued.experiences.values(), "those that were found stay"


@pytest.mark.slow
def test_a_cold_question_loads_none_of_it(valued: Index) -> None:
    import subprocess

    code = (
        "import sys; from research.index.index import Index\n"
        "told = Index.open(sys.argv[1]).experiences; told.search_values('locks'); told.search('locks')\n"
        "print([name for name in sys.modules if name.startswith(('sklearn', 'scipy', 'joblib'))])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(valued.root)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_doctor_removes_values_that_quote_nobody(valued: Index) -> None:
    from research.store import Catalog, NewItem

    with Catalog(valued.paths, writable=True) as catalog:
        assert list(integrity.check_removed(catalog)) == []
        stranger = NewItem("stranger", "", "A sentence of nobody", metadata={"axis": "full", "experience": "nobody"})
        catalog.items.put("value", "full", "1", [stranger], metadata=_metadata(catalog))
        [problem] = integrity.check_removed(catalog)
        assert problem.fix is not None
        problem.fix(catalog)
        assert list(integrity.check_removed(catalog)) == []
    assert "stranger" not in {value.id for value in valued.experiences.values()}


def _metadata(catalog: object) -> dict[str, object]:
    parent = catalog.items.parent("value", "full")  # type: ignore[arg-type]
    return dict(parent.metadata) if parent else {}


def test_large_ones_are_compared_by_what_differs_most() -> None:
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(8, 64))
    owners = rng.integers(0, 8, 1200)
    vectors = centres[owners] + rng.normal(size=(1200, 64)) * 0.5
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    found = clusters.find_clusters(vectors)
    assert len(found) == 8
    assert all(len(set(owners[list(each.rows)])) == 1 for each in found)
    assert clusters.least_members(1200) == 11


def test_of_a_very_large_cluster_not_all_members_are_kept() -> None:
    from research.experiences.values import _kept_members

    members = [f"experience-{number:05}" for number in range(9000)]
    kept = _kept_members(members[-1], members)
    assert len(json.dumps(kept)) < 45_000
    assert kept[0] == members[0]
    assert kept[-1] == members[-1]
