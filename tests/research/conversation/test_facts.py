"""Facts with one value at a time: which memory takes which back."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.conversation.facts import facts_in
from research.index import Index
from tests.research.conversation.memory_index import ids, open_index


@pytest.mark.parametrize(
    ("text", "fact", "value"),
    [
        ("Tim lives in Kiel.", "tim: home", "kiel"),
        ("Tim has just moved from Kiel to Bonn last month", "tim: home", "bonn"),
        ("I'm based in Rome now", "i: home", "rome"),
        ("The user lives in Rome", "i: home", "rome"),
        ("My little sister lives in Oslo", "i little sister: home", "oslo"),
        ("I work at SAP", "i: work", "sap"),
        ("I've started a new job at Siemens", "i: work", "siemen"),
        ("Paul no longer works for the bank", "paul: work", "not bank"),
        ("I am dating Paula", "i: partner", "paula"),
        ("Lena turned 10", "lena: age", "10"),
        ("Lena is 9 years old!", "lena: age", "9"),
        ("The wifi password is swordfish", ": wifi password", "swordfish"),
        ("Our standup is at 9:30.", ": standup", "9 30"),
        ("The standup was moved to 10:15", ": standup", "10 15"),
        ("My dentist is Dr. Meyer", ": dentist", "dr meyer"),
        ("Anna's phone number is 0151 234", "anna: phone number", "0151 234"),
        ("The deadline is 3 May", ": deadlin", "3 may"),
        ("The user prefers dark mode", "i: mode", "dark mode"),
        ("I eat meat", "i: eat meat", "yes"),
        ("I don't eat meat anymore", "i: eat meat", "no"),
        ("Mia quit smoking", "mia: smoke", "no"),
    ],
)
def test_a_fact_is_read(text: str, fact: str, value: str) -> None:
    assert facts_in(text).get(fact) == value, facts_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where do you live?",
        "I want to move to Bonn",
        "I might move to Bonn next year",
        "If Tim lives in Kiel, he knows the harbour",
        "He lives in Bonn",
        "I used to live in Kiel",
        "I painted a lake last year",
        "The food is great",
        "I visited Paris in May",
        "We had a wonderful time",
        "",
        "A" * 20_000,
        "my " * 5_000,
    ],
)
def test_what_is_no_such_fact(text: str) -> None:
    assert facts_in(text) == {}


def test_i_am_whoever_speaks() -> None:
    assert facts_in("I live in Kiel", "Tim") == facts_in("Tim lives in Kiel", "Anna") == {"tim: home": "kiel"}
    assert facts_in("My car is a Golf", "Tim") != facts_in("My car is a Golf", "Anna")


def test_both_are_kept_and_the_newest_comes_first(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        _tell(index, "Tim moved to Bonn", "2026-02-01", "bonn")
        _tell(index, "Tim lives in Kiel", "2026-01-01", "kiel")  # told later, true before
        _tell(index, "Tim likes the harbour of Kiel, where he used to live", "2026-02-02", "harbour")
        assert index.memory("kiel").superseded_by == "bonn"
        assert ids(index, "Does Tim live in Kiel?")[:2] == ["bonn", "kiel"]
        _tell(index, "Tim moved back to Kiel", "2026-03-01", "back")
        assert index.memory("kiel").superseded_by == "", "it holds again"
        assert index.memory("bonn").superseded_by == "back"
        found = ids(index, "Where does Tim live?")
        assert found.index("back") < found.index("bonn")


def test_the_newer_one_is_found_though_it_fits_worse(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        for number in range(12):
            index.remember(f"The staff in building {number} live in Kiel")
        _tell(index, "Tim lives in Kiel", "2026-01-01", "kiel")
        _tell(index, "Tim relocated to Ulaanbaatar", "2026-02-01", "newer")
        assert ids(index, "Which Tim lives in Kiel?", top_k=2) == ["newer", "kiel"]
        scores = [each.score for each in index.recall("Which Tim lives in Kiel?").memories]
        assert scores == sorted(scores, reverse=True)


def test_one_value_in_more_words_is_the_same(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        _tell(index, "Tim lives in Bonn", "2026-01-01", "short")
        _tell(index, "Tim lives in Bonn on the Rhine", "2026-02-01", "long")
        assert index.memory("short").superseded_by == ""


def _tell(index: Index, text: str, at: str, name: str) -> None:
    index.remember(text, created_at=at, id=name)
