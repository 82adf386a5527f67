"""Experiences as a source: each axis for itself, restrictions that hold, and questions in other words than theirs."""

from __future__ import annotations

import json

import pytest

from research.experiences.records import AXES, Experience, axis_items
from research.index import Index
from research.models import Question
from research.sources import ExperiencesSource
from tests.research.experiences.recurring import DATA, records

QUESTIONS = [json.loads(line) for line in (DATA / "experience_questions.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_questions_in_other_words_find_them(experienced: Index) -> None:
    first = fifth = 0
    for asked in QUESTIONS:
        found = experienced.experiences.search(asked["query"], axis=asked["axis"], limit=5)
        ids = [each.experience.id for each in found.results]
        first += ids[:1] == [asked["experience"]]
        fifth += asked["experience"] in ids
    assert first >= 0.8 * len(QUESTIONS)
    assert fifth >= 0.95 * len(QUESTIONS)


def test_scores_tell_what_answers_from_what_does_not(experienced: Index) -> None:
    own = [experienced.experiences.search(each["query"], axis=each["axis"]).results[0].score for each in QUESTIONS]
    foreign = [json.loads(line)["query"] for line in (DATA / "questions.jsonl").read_text().splitlines()]
    others = [experienced.experiences.search(each).results[0].score for each in foreign]
    assert all(0.0 < score < 1.0 for score in own + others)
    assert sum(own) / len(own) > 0.6
    assert sum(others) / len(others) < 0.15


@pytest.mark.parametrize("axis", AXES)
def test_an_axis_is_searched_for_itself(experienced: Index, axis: str) -> None:
    found = experienced.experiences.search("what was it", axis=axis.upper().replace("_", " "), limit=100)
    wanted = {each["id"] for each in records() if axis in ("full", "strategy") or each.get(axis)}
    assert {each.experience.id for each in found.results} <= wanted
    assert found.searched == len(wanted) >= len(found.results) > 20
    for each in found.results:
        assert each.axis == axis
        assert axis not in ("surprise", "root_cause") or each.text == getattr(each.experience, axis)


def test_a_word_of_another_axis_is_not_found_on_this_one(experienced: Index) -> None:
    surprising = experienced.experiences.search("umlaut", axis="surprise").results[0]
    assert surprising.experience.id == "enc-csv"
    assert surprising.parts["words"] > 0
    assert all(each.parts["words"] == 0 for each in experienced.experiences.search("umlaut", axis="root_cause").results)


def test_restrictions_hold(experienced: Index) -> None:
    found = experienced.experiences.search("it was open", domain="security", outcome="confirmed")
    assert [each.experience.id for each in found.results] == ["auth-default"]
    for each in experienced.experiences.search("cache", strategy="trial-and-error", outcome="falsified").results:
        assert (each.experience.strategy, each.experience.outcome) == ("trial-and-error", "falsified")
    assert experienced.experiences.search("x", domain="documentation", outcome="falsified").results == []
    assert len(experienced.experiences.search("x", limit=7).results) == 7


def test_it_is_a_source_of_the_pipeline(experienced: Index) -> None:
    source = experienced.item_source(ExperiencesSource)
    with experienced.catalog.snapshot() as reader:
        retrieved = source.retrieve(reader, Question("avatar does not change after uploading a new one"), 3)
    assert (retrieved.status.name, retrieved.status.status) == ("experiences", "ok")
    first = retrieved.items[0]
    assert str(first.ref) == "experience:cache-profile"
    assert first.metadata == {
        "id": "cache-profile",
        "domain": "feature",
        "strategy": "check-assumptions",
        "outcome_status": "falsified",
        "confidence_tier": "silver",
        "iteration_count": 1,
    }
    assert [item.score for item in retrieved.items] == sorted((item.score for item in retrieved.items), reverse=True)


def test_what_an_experience_says_on_each_axis() -> None:
    told = Experience("x", "g", "h", "a", "p", "testing", "ask-user", "confirmed", "r", "", "c", "l", "gold")
    items = {item.key: item for item in axis_items(told)}
    assert list(items) == ["x#full", "x#strategy", "x#root_cause"], "nothing was surprising"
    assert items["x#full"].text == "g\nh\na\np\nr\nc\nl"
    assert items["x#strategy"].text == "ask-user, testing, confirmed\na\nr\nl"
    assert items["x#full"].metadata == {"axis": "full", **told.metadata()}
    assert axis_items(Experience("x", "g", "h", "a", "p")) == []
