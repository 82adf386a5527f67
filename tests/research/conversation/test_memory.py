"""What is told is recalled: at once, again, until it expires, and as often as it helps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import BusyError, NothingFoundError, UsageError
from research.index import Index
from research.memories import NewMemory
from research.store import Catalog, write_lock
from tests.pace import draws
from tests.research.conversation.memory_index import counts, encoder, ids, open_index

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with open_index(tmp_path) as opened:
        yield opened


def test_it_is_found_by_its_words_at_once_and_by_its_meaning(index: Index) -> None:
    told = index.memories.remember("The wifi password is swordfish", tags=["home"], importance=0.9)
    index.memories.remember("Our dentist is in Gartenstraße")
    index.memories.remember("The cat is called Minka")
    assert told.outcome == "stored"
    assert ids(index, "wifi password")[0] == told.id
    assert ids(index, "What is our feline named?")[0] == index.memories.recall("cat").memories[0].memory.id
    found = index.memories.recall("wifi password").memories[0]
    assert 0.3 < found.score <= 1.0
    assert found.memory.tags == ("home",)
    assert set(found.parts) <= {"words", "vectors", "speaker", "time", "asking"}


def test_it_is_durable_when_it_was_told(tmp_path: Path) -> None:
    with open_index(tmp_path) as first:
        told = first.memories.remember("Anna moved to Bonn")
        with open_index(tmp_path) as second:  # another process, as far as the file knows
            assert second.memories.get(told.id).text == "Anna moved to Bonn"
            assert second.memories.recall("Bonn").memories[0].memory.id == told.id
            assert second.memories.recall("Bonn").without_vectors == 0


def test_the_first_memory_makes_the_index(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        assert index.memories.recall("anything").memories == []
        assert list(index.memories.list()) == []
        assert not index.exists
        index.memories.remember("something")
        assert index.exists
        assert index.admin.status().memories == 1


def test_told_twice_is_told_once(index: Index) -> None:
    first = index.memories.remember("I like tea", session="a")
    again = index.memories.remember("I like tea", session="a")
    assert (again.id, again.outcome) == (first.id, "known")
    assert again.told_at > first.told_at
    assert counts(index)["memories"] == 1


def test_a_key_makes_telling_again_harmless(index: Index) -> None:
    first = index.memories.remember("version one", key="k-1")
    again = index.memories.remember("quite another text", key="k-1")
    assert (again.id, again.text, again.outcome) == (first.id, "version one", "known")
    other = index.memories.remember("version one", key="k-2")
    assert (other.outcome, other.joined_to) == ("joined", first.id)


def test_an_id_is_the_tellers_own_and_names_one_text(index: Index) -> None:
    index.memories.remember("the first", id="D1:1")
    assert index.memories.remember("the first", id="D1:1").outcome == "known"
    with pytest.raises(UsageError, match="taken by another memory"):
        index.memories.remember("the second", id="D1:1")
    assert index.memories.get("D1:1").text == "the first"


def test_a_batch_sent_again_changes_nothing(index: Index) -> None:
    batch = [NewMemory(f"number {number} of the batch", session="s") for number in range(450)]
    first = index.memories.remember_batch(batch, tenant="t")
    before = counts(index, "t")
    again = index.memories.remember_batch(batch, tenant="t")
    assert [memory.id for memory in again] == [memory.id for memory in first]
    assert {memory.outcome for memory in again} == {"known"}
    assert counts(index, "t") == before
    assert index.memories.remember_batch([]) == []


def test_nothing_of_a_batch_is_stored_if_one_is_wrong(index: Index) -> None:
    with pytest.raises(UsageError, match="importance"):
        index.memories.remember_batch([NewMemory("fine"), NewMemory("not fine", importance=2.0)])
    assert not index.exists


def test_it_is_told_beside_a_run_that_holds_the_write_lock(index: Index) -> None:
    index.memories.remember("before")
    with write_lock(index.paths), Catalog(index.paths, writable=True):
        assert index.memories.remember("meanwhile").outcome == "stored"
        assert len(ids(index, "meanwhile")) == 2


def test_it_is_busy_only_while_somebody_writes_at_this_moment(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 0.05)
    index.memories.remember("before")
    with Catalog(index.paths, writable=True) as other, other.transaction():
        with pytest.raises(BusyError):
            index.memories.remember("now")
        assert ids(index, "before"), "a question waits for nobody"
    assert index.memories.remember("now").outcome == "stored"


def test_it_expires(index: Index) -> None:
    soon = index.memories.remember("The code for the garage is 4711", expires_at=datetime.now(UTC) + timedelta(days=30))
    assert ids(index, "garage code") == [soon.id]
    assert ids(index, "garage code", now=datetime.now(UTC) + timedelta(days=31)) == []
    gone = index.memories.remember("It was true yesterday", expires_at="2020-01-01")
    assert gone.id not in ids(index, "true yesterday")
    with pytest.raises(NothingFoundError):
        index.memories.get(gone.id)
    assert gone.id not in [memory.id for memory in index.memories.list()]
    index.memories.remember("another")  # the next write takes it away
    assert counts(index)["memories"] == 2


def test_what_expires_hides_nothing_that_stays(index: Index) -> None:
    index.memories.remember("The shop opens at 9", expires_at="2020-01-01")
    stays = index.memories.remember("The shop opens at 9")
    assert stays.outcome == "stored"
    assert ids(index, "When does the shop open?") == [stays.id]


def test_one_that_helped_counts_more_and_never_without_bounds(index: Index) -> None:
    first = index.memories.remember("Tomatoes need sun")
    second = index.memories.remember("Tomatoes need soil")
    plain = {each.memory.id: each.raw_score for each in index.memories.recall("What do tomatoes need?").memories}
    for _ in range(80):
        index.memories.feedback(second.id, True, score=0.4)
    index.memories.feedback(first.id, False)
    helped = index.memories.recall("What do tomatoes need?").memories
    assert [each.memory.id for each in helped] == [second.id, first.id]
    assert 1.0 < helped[0].raw_score / plain[second.id] <= 1.1
    assert 0.9 <= helped[1].raw_score / plain[first.id] < 1.0
    assert (helped[0].memory.helped, helped[0].memory.not_helped, helped[1].memory.not_helped) == (50, 0, 1)
    assert counts(index)["memory_feedback"] == 51
    with pytest.raises(NothingFoundError):
        index.memories.feedback("mem-nobody", True)
    with pytest.raises(UsageError, match="score"):
        index.memories.feedback(first.id, True, score=7.0)


def test_importance_decides_between_equals_and_not_more(index: Index) -> None:
    plain = index.memories.remember("The blue bin is emptied on Monday", importance=0.0)
    vital = index.memories.remember("The blue bin is emptied by Monday", importance=1.0)
    exact = index.memories.remember("What is emptied on Monday at noon is the blue bin at the gate", importance=0.0)
    assert ids(index, "blue bin Monday")[0] == vital.id
    assert ids(index, "emptied at noon at the gate")[0] == exact.id
    assert plain.id in ids(index, "blue bin Monday")


def test_when_it_was_last_used_is_kept(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        told = index.memories.remember("Anna moved to Bonn")
        other = index.memories.remember("The cat is called Minka")
        index.memories.recall("Where is Anna?", top_k=1)
    with open_index(tmp_path) as index:
        assert index.memories.get(told.id).last_used_at > told.created_at
        assert index.memories.get(other.id).last_used_at == ""


def test_filters_restrict_it(index: Index) -> None:
    for number, (session, persona, namespace, kind) in enumerate(
        [("a", "x", "wm", "memory"), ("b", "y", "wm", "note"), ("c", "", "other", "note")]
    ):
        index.memories.remember(
            f"green apple {number}", session=session, persona=persona, namespace=namespace, type=kind, id=str(number),
            tags=["fruit", session],
        )  # fmt: skip
    assert set(ids(index, "apple")) == {"0", "1", "2"}
    assert ids(index, "apple", session="b") == ["1"]
    assert set(ids(index, "apple", persona="x")) == {"0", "2"}, "those of nobody are everybody's"
    assert set(ids(index, "apple", namespace="wm")) == {"0", "1"}
    assert set(ids(index, "apple", types=["note"])) == {"1", "2"}
    assert ids(index, "apple", tags=["fruit", "c"]) == ["2"]
    assert ids(index, "apple", session="nowhere") == []
    assert [memory.id for memory in index.memories.list(tags=["a"])] == ["0"]
    assert [memory.id for memory in index.memories.list(types=["note"], newest=False)] == ["1", "2"]
    assert [memory.id for memory in index.memories.list(persona="y", limit=1)] == ["2"]


def test_a_newer_one_of_the_same_fact_stands_first_and_the_older_is_shown_after_it(index: Index) -> None:
    for day, text in enumerate(
        ("Anna lives in Kiel", "Anna moved to Bonn", "Room 7 is blue", "Room 8 is green", "My bike is a blue Canyon.")
    ):
        index.memories.remember(text, id=text.split()[-1], created_at=NOW - timedelta(days=90 - day))
    index.memories.maintain(seconds=30)
    newer, older = index.memories.recall("Where does Anna live?", threshold=0.15).memories
    assert (newer.memory.id, older.memory.id) == ("Bonn", "Kiel")
    assert (newer.standing, older.standing) == ("", f"older; told {NOW - timedelta(days=90):%Y-%m-%d}")
    assert (older.newer, index.memories.get("Kiel").superseded_by) == ("Bonn", ""), "a guess marks nothing"
    assert index.memories.recall("Where did Anna live in August 2026?").memories[0].newer == "", "a time is named"
    assert ids(index, "Which colour has room 7?")[0] == "blue", "the question names one of the two"


def test_of_what_fits_equally_well_the_own_session_comes_first_and_then_the_newest(index: Index) -> None:
    for name, days in (("old", 9), ("new", 1), ("mine", 5)):
        told = NOW - timedelta(days=days)
        index.memories.remember("plums are ripe", session=name, speaker=name, id=name, created_at=told)
    assert ids(index, "ripe plums") == ["new", "mine", "old"]
    assert ids(index, "ripe plums", near_session="mine") == ["mine", "new", "old"]


def test_salience_mixes_recency_in(index: Index) -> None:
    index.memories.remember("We met in the old harbour cafe", id="old", created_at=NOW - timedelta(days=300))
    index.memories.remember("The harbour was closed for a day", id="new", created_at=NOW)
    assert ids(index, "Where in the harbour did we meet?") == ["old", "new"]
    found = index.memories.recall("harbour", salience=True, now=NOW).memories
    assert found[0].memory.id == "new"
    assert found[0].salience == pytest.approx(0.7 * found[0].raw_score + 0.3)


def test_top_k_and_threshold(index: Index) -> None:
    for number in range(12):
        index.memories.remember(f"walnut number {number}")
    assert len(ids(index, "walnut")) == 8
    assert len(ids(index, "walnut", top_k=3)) == 3
    assert ids(index, "walnut", top_k=0) == []
    assert ids(index, "", top_k=3) == []
    assert len(ids(index, "walnut", top_k=10**9)) == 12
    assert ids(index, "What is the capital of France?", threshold=0.5) == []
    with pytest.raises(UsageError, match="top_k"):
        index.memories.recall("walnut", top_k=-1)


def test_without_an_encoder_the_words_answer(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        told = index.memories.remember("The wifi password is swordfish")
    with Index(tmp_path / "index") as index:
        with index.catalog.short_write() as connection:
            connection.execute("INSERT INTO meta VALUES ('text_encoder', 'some/model:abc'), ('text_dim', '8')")
        found = index.memories.recall("wifi password")
        assert [each.memory.id for each in found.memories] == [told.id]
        assert "words only" in found.notes[0]


class _Half:
    """Another encoder than the embedded one: half of its numbers."""

    name = "half"
    dim = 192
    max_tokens = 256

    def count_tokens(self, text: str) -> int:
        return encoder().count_tokens(text)

    def embed(self, texts):  # type: ignore[no-untyped-def]
        made = encoder().embed(texts)[:, : self.dim]
        return made / (made**2).sum(axis=1, keepdims=True) ** 0.5

    def embed_query(self, text):  # type: ignore[no-untyped-def]
        return self.embed([text])[0]


def test_another_encoder_embeds_anew_and_never_mixes(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        index.memories.remember("The cat is called Minka", id="cat")
        index.memories.remember("The wifi password is swordfish", id="wifi")
        ids(index, "feline")
    with Index(tmp_path / "index", encoder=_Half()) as index:
        found = index.memories.recall("What is our feline named?")
        assert found.memories[0].memory.id == "cat"
        assert found.without_vectors == 0
        assert counts(index)["memory_vectors"] == 2
    with open_index(tmp_path) as index:
        assert ids(index, "What is our feline named?")[0] == "cat"


def test_a_long_memory_is_embedded_by_its_windows(index: Index) -> None:
    filler = " ".join(f"Paragraph {number} speaks of nothing in particular." for number in range(120))
    told = index.memories.remember(f"{filler} The treasure lies under the old oak.")
    assert ids(index, "Where is the treasure?") == [told.id]
    assert index.memories.recall("treasure").without_vectors == 0
    index.memories.remember("x" * 20_000)
    assert index.memories.recall("treasure").without_vectors == 0


def test_what_a_question_made_is_written_when_nobody_else_writes(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        told = index.memories.remember("The wifi password is swordfish")
        with Catalog(index.paths, writable=True) as other, other.transaction():
            found = index.memories.recall("wifi")
            assert (found.memories[0].memory.id, found.without_vectors) == (told.id, 0)
        assert "memory_vectors" not in counts(index)
        assert index.memories.get(told.id).last_used_at == ""
    with open_index(tmp_path) as index:
        assert counts(index)["memory_vectors"] == 1
        assert index.memories.get(told.id).last_used_at


def test_maintenance_embeds_what_waits(index: Index) -> None:
    index.memories.remember_batch([NewMemory(f"fact number {number}") for number in range(70)], tenant="a")
    index.memories.remember("mine")
    assert index.admin.status().memories_without_vectors == 71
    while index.memories.maintain(seconds=5.0):
        pass
    assert index.admin.status().memories_without_vectors == 0
    assert index.admin.status().memories == 71


def test_many_threads_tell_and_ask(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 50.0)
    index.memories.remember("the beginning")
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(6):
                index.memories.remember(f"worker {name} tells fact {number}", key=f"{name}-{number}", tenant="crowd")
                assert index.memories.recall(f"fact {number} of worker {name}", tenant="crowd").memories
        except BaseException as error:  # noqa: BLE001  shown by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(list(index.memories.list(tenant="crowd"))) == 36
    assert len(ids(index, "worker fact", tenant="crowd", top_k=100)) == 36


HOSTILE = st.text(alphabet=st.characters(codec=None), max_size=60) | st.sampled_from(
    ["' OR 1=1 --", '"; DROP TABLE memories', "\x00\x1b[2J", "\ud800", "%_!", "a" * 5000, "\u202e", "[1] (system)", "?"]
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with open_index(tmp_path_factory.mktemp("hostile")) as opened:
        yield opened


@draws(60)
@given(text=HOSTILE, question=HOSTILE, tenant=st.sampled_from(["", "t"]))
def test_hostile_text_is_data(shared: Index, text: str, question: str, tenant: str) -> None:
    try:
        told = shared.memories.remember(text, tenant=tenant)
    except UsageError as error:
        assert "empty" in error.message
    else:
        assert shared.memories.get(told.id, tenant=tenant).text == told.text
        assert told.id in {memory.id for memory in shared.memories.list(tenant=tenant)}
    for each in shared.memories.recall(question, tenant=tenant).memories:
        assert 0.0 <= each.score <= 1.0
