"""Experiences from their start to their end: what is told is kept, what is wrong is named, what is closed is found."""

from __future__ import annotations

import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import BusyError, CtxError, NothingFoundError, UsageError
from research.experiences.intake import Choices, read_fields
from research.experiences.records import DOMAINS, OUTCOMES, STRATEGIES, TIERS, Experience, tier_of
from research.index import Index
from research.settings import Settings
from research.store import Catalog, write_lock
from tests.pace import draws

TOLD = {"goal": "Find the leak", "hypothesis": "A file stays open", "action": "Count them", "prediction": "They grow"}


def start(index: Index, **more: Any) -> Experience:
    return index.experiences.start(**{**TOLD, **more})


def test_closed_at_once_and_never_again(empty: Index) -> None:
    closed = start(empty, outcome="abandoned", outcome_result="No time")
    assert closed.confidence_tier == "abandoned"
    with pytest.raises(UsageError, match="closed already: abandoned"):
        empty.experiences.close(closed.id, "confirmed", "It was right")
    with pytest.raises(UsageError, match="closed already"):
        empty.experiences.update(closed.id, lesson="None")
    assert empty.experiences.get(closed.id) == closed


def test_of_two_who_close_it_at_once_one_is_told(empty: Index) -> None:
    begun = start(empty)
    told: list[str] = []

    def close(outcome: str) -> None:
        try:
            with Index.open(empty.root) as index:
                told.append(index.experiences.close(begun.id, outcome, f"it was {outcome}").outcome)
        except UsageError as error:
            told.append(error.message)

    threads = [threading.Thread(target=close, args=(each,)) for each in ("confirmed", "falsified")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    won = empty.experiences.get(begun.id).outcome
    assert sorted(told, key=len) == [won, f"the experience {begun.id} is closed already: {won}"]


def test_a_short_write_beside_an_ingest(empty: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 0.05)
    begun = start(empty)
    with write_lock(empty.paths), Catalog(empty.paths, writable=True):
        assert empty.experiences.close(begun.id, "confirmed", "Yes").outcome == "confirmed"
        assert start(empty).state == "open"
    with Catalog(empty.paths, writable=True) as catalog, catalog.transaction(), pytest.raises(BusyError):
        start(empty)


@pytest.mark.parametrize(
    ("wrong", "message", "choice"),
    [
        ({"domain": "cooking"}, "no domain 'cooking'", "debugging, refactoring"),
        ({"strategy": "guess"}, "no strategy 'guess'", "ask-user"),
        ({"outcome": "won"}, "no outcome 'won'", "confirmed, falsified, abandoned"),
        ({"outcome": "confirmed"}, "needs a result", "--result"),
        ({"outcome_result": "yes"}, "without an outcome", "falsified"),
        ({"outcome": "falsified", "outcome_result": "no", "confidence_tier": "tin"}, "no tier 'tin'", "gold, silver"),
        ({"goal": " "}, "needs a goal", "what you want"),
        ({"goal": "", "action": ""}, "needs a goal and an action", "what you want"),
        ({"hypothesis": 7}, "hypothesis is a text, not a number", ""),
        ({"surprise": "x" * 5001}, "5,001 characters", "what matters"),
        ({"iteration_count": 0}, "cannot be 0", "from 1"),
        ({"iteration_count": True}, "cannot be True", "from 1"),
        ({"started_at": "yesterday"}, "no time: 'yesterday'", "2026-01-31"),
        ({"id": "../x"}, "cannot have the id", "letters"),
        ({"mood": "good"}, "no field 'mood'", "goal, hypothesis"),
    ],
)
def test_what_is_wrong_is_named_with_the_choices(
    empty: Index, wrong: dict[str, Any], message: str, choice: str
) -> None:
    with pytest.raises(UsageError) as caught:
        start(empty, **wrong)
    assert message in caught.value.message
    assert choice in caught.value.hint
    assert not empty.exists, "nothing is made for what cannot be kept"


def test_wrong_transitions(empty: Index) -> None:
    begun = start(empty)
    with pytest.raises(UsageError, match="with an outcome") as caught:
        empty.experiences.close(begun.id, "", "")
    assert caught.value.hint == "one of: confirmed, falsified, abandoned"
    with pytest.raises(UsageError, match="told when an experience is closed"):
        empty.experiences.update(begun.id, outcome="confirmed")
    with pytest.raises(UsageError, match="nothing was told"):
        empty.experiences.update(begun.id)
    with pytest.raises(UsageError, match="there is an experience"):
        start(empty, id=begun.id)
    for call in (empty.experiences.get, lambda id: empty.experiences.update(id, lesson="x"), empty.experiences.remove):
        with pytest.raises(NothingFoundError, match="no experience 'nobody'"):
            call("nobody")
    with pytest.raises(UsageError, match="no axis 'mood'") as caught:
        empty.experiences.search("x", axis="mood")
    assert "full, strategy, surprise, root_cause" in caught.value.hint


def test_choices_are_read_as_people_write_them_and_settings_add_some(tmp_path: Path) -> None:
    index = Index(tmp_path, Settings(experience_domains=("Data Science",), experience_strategies=("pair-up",)))
    told = start(index, domain="data_science", strategy="Pair up", outcome="Confirmed", outcome_result="ok")
    assert (told.domain, told.strategy, told.outcome) == ("data-science", "pair-up", "confirmed")
    assert start(index, strategy="Root cause analysis").strategy == "root-cause-analysis"
    with Index.open(tmp_path) as without:
        assert [each.id for each in without.experiences.list(domain="data-science")] == [told.id], (
            "what is in use is known"
        )
        assert len(without.experiences.search("x", domain="data-science").results) == 1
        with pytest.raises(UsageError, match="no domain"):
            without.experiences.search("x", domain="data-sciences")


def test_lists_and_the_beginning_of_an_id(empty: Index) -> None:
    assert empty.experiences.list() == []
    first = start(empty, id="alpha-1", domain="testing", started_at="2026-01-01")
    second = start(empty, id="alpha-2", outcome="falsified", outcome_result="no", started_at="2026-02-01")
    assert [each.id for each in empty.experiences.list()] == ["alpha-2", "alpha-1"]
    assert empty.experiences.list(outcome="open") == [first] == empty.experiences.list(domain="testing")
    assert empty.experiences.list(outcome="falsified", limit=1) == [second]
    assert empty.experiences.get("alpha-2") == second
    with pytest.raises(UsageError, match="means 2 experiences"):
        empty.experiences.get("alph")
    with pytest.raises(NothingFoundError):
        empty.experiences.get("alp")
    with pytest.raises(UsageError, match="no outcome"):
        empty.experiences.list(outcome="lost")


def test_the_same_records_again_change_nothing(empty: Index) -> None:
    lines = [{**TOLD, "outcome": "confirmed", "result": "yes"}, {**TOLD, "id": "b", "domain": "testing"}]
    first = empty.experiences.put(lines)
    assert (len(first.added), first.changed, first.known) == (2, [], [])
    assert empty.experiences.put(lines).known == first.added
    closed = empty.experiences.close("b", "falsified", "no")
    assert empty.experiences.put(lines).known == first.added, "what was open then is closed now"
    exported = [each.to_dict() for each in empty.experiences.list()]
    assert sorted(empty.experiences.put(exported).known) == sorted(first.added)
    later = {**closed.to_dict(), "lesson": "Measure first", "updated_at": "2199-01-01T00:00:00+00:00"}
    assert empty.experiences.put([later]).changed == ["b"]
    assert empty.experiences.put([closed.to_dict()]).known == ["b"], "what is older stands in for nothing newer"
    assert empty.experiences.get("b").lesson == "Measure first"


def test_records_of_other_programs_are_read() -> None:
    told = read_fields(
        {
            **TOLD,
            "ghap_id": "7",
            "outcome": {"status": "FALSIFIED", "result": "no", "captured_at": "2026-01-02T03:04:05Z"},
            "root_cause": {"category": "wrong-assumption", "description": "The disk was full"},
            "lesson": {"what_worked": "Look at the disk", "takeaway": None},
            "tier": "Gold",
            "iterations": 2,
            "surprise": None,
        },
        Choices(),
    )
    assert told == {
        **TOLD,
        "id": "7",
        "outcome": "falsified",
        "outcome_result": "no",
        "closed_at": "2026-01-02T03:04:05.000000+00:00",
        "root_cause": "wrong-assumption: The disk was full",
        "lesson": "Look at the disk",
        "confidence_tier": "gold",
        "iteration_count": 2,
    }
    with pytest.raises(UsageError, match=r"no field 'outcome\.mood'"):
        read_fields({"outcome": {"mood": "good"}}, Choices())


def test_tiers() -> None:
    assert [tier_of("confirmed", count) for count in (1, 2, 3, 4)] == ["gold", "silver", "silver", "bronze"]
    assert [tier_of("falsified", count) for count in (1, 3, 4)] == ["silver", "silver", "bronze"]
    assert tier_of("abandoned", 1) == "abandoned"


def test_removed_is_gone(empty: Index) -> None:
    kept, gone = (start(empty, outcome="confirmed", outcome_result="x", surprise=each) for each in ("kept", "quokka"))
    assert empty.experiences.search("quokka", axis="surprise").results[0].experience == gone
    assert empty.experiences.remove(gone.id).ids == [gone.id]
    assert [each.experience for each in empty.experiences.search("quokka", axis="surprise").results] == [kept]
    empty.close()
    assert all(b"quokka" not in path.read_bytes() for path in empty.root.rglob("*") if path.is_file())


def test_what_a_hostile_catalog_holds_is_read_as_nothing() -> None:
    told = Experience.of_stored("x", {"goal": 7, "outcome": ["confirmed"], "iteration_count": -1, "mood": {}})
    assert told == Experience("x", "", "", "", "")


texts = st.text(max_size=300)


@draws(60)
@given(
    st.dictionaries(
        st.sampled_from([*(each.name for each in fields(Experience)), "result", "x"]),
        st.one_of(
            texts,
            st.integers(),
            st.none(),
            st.booleans(),
            st.lists(texts, max_size=2),
            st.dictionaries(texts, texts, max_size=2),
            st.sampled_from([*DOMAINS, *STRATEGIES, *OUTCOMES, *TIERS]),
        ),
    )
)
def test_whatever_comes_is_read_or_refused(given: dict[str, Any]) -> None:
    try:
        told = read_fields(given, Choices())
    except CtxError as error:
        assert error.message
    else:
        assert all("\0" not in str(value) for value in told.values())
        str(told).encode()
