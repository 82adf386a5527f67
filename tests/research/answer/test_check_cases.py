"""The check of an answer, measured on cases made from the pages of data/: by rules, and by hand.

`make bench ONLY="check --keep FOLDER"` measures many more, on other people's pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.research.answer.answer_cases import FALSE, Case, cases_from, is_right, verdict_of
from tests.research.answer.hand_cases import hand_cases, index_pages, no_harm_pages

Documents = dict[str, list[str]]


@pytest.fixture(scope="module")
def documents(sample_index: Path) -> Documents:
    return index_pages(sample_index) | no_harm_pages()


def shares(cases: Iterable[Case]) -> dict[str, tuple[float, list[str]]]:
    """By kind: the share with a right verdict, and those with a wrong one."""
    right: dict[str, list[bool]] = defaultdict(list)
    wrong: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        checked = verdict_of(case)
        right[case.kind].append(is_right(case, checked.verdict))
        if not right[case.kind][-1]:
            wrong[case.kind].append(f"{checked.verdict} ({checked.reason}): {case.answer}")
    return {kind: (sum(each) / len(each), wrong[kind]) for kind, each in right.items()}


@pytest.mark.slow
def test_sentences_made_by_rules(documents: Documents) -> None:
    cases = cases_from(documents, seed=13, count=50)
    assert len(cases) >= 300
    found = shares(cases)
    assert found["verbatim"][0] >= 0.98, found["verbatim"]
    assert found["reworded"][0] >= 0.95, found["reworded"]
    for kind in FALSE:
        assert found[kind][0] >= 0.95, found[kind]


@pytest.mark.slow
def test_some_reworded_ones_are_carried(documents: Documents) -> None:
    """ "doubtful" for everything would be right of false sentences and of reworded ones, and of no use."""
    made = [case for case in cases_from(documents, seed=31, count=30) if case.kind == "reworded"]
    assert sum(verdict_of(case).verdict == "carried" for case in made) >= 0.9 * len(made)
    written = [case for name in FILES for case in hand_cases(name, documents) if case.kind == "reworded"]
    assert sum(verdict_of(case).verdict == "carried" for case in written) >= 0.6 * len(written)


FILES = ("reworded.txt", "held_back.txt")


@pytest.mark.parametrize("name", ["reworded.txt", pytest.param("held_back.txt", marks=pytest.mark.slow)])
def test_sentences_written_by_hand(documents: Documents, name: str) -> None:
    cases = list(hand_cases(name, documents))
    assert len(cases) >= 90
    found = shares(cases)
    assert found["reworded"][0] >= 0.95, found["reworded"]
    assert found["false"][0] >= 0.94, found["false"]


def test_what_a_model_wrote(documents: Documents) -> None:
    """The mark is what counts: on a true sentence mostly, on a false one hardly ever."""
    verdicts: dict[str, list[bool]] = defaultdict(list)
    for case in hand_cases("model_written.txt", documents):
        verdicts[case.kind].append(verdict_of(case).verdict == "carried")
    assert sum(verdicts["reworded"]) >= 0.75 * len(verdicts["reworded"])
    assert sum(verdicts["false"]) <= 0.05 * len(verdicts["false"])


def test_a_true_sentence_of_another_source_is_carried_by_both(documents: Documents) -> None:
    handbook, memo = documents["saltmarsh-handbook-2025.pdf"][6], documents["boundary-dispute-memo"][2]
    case = Case(
        "reworded",
        "Damages for trespass are capped at £15,000, and the other parent has six weeks",
        1,
        {1: memo, 2: handbook},
        "",
    )
    assert verdict_of(case).verdict == "not found"
    both = Case(case.kind, f"{case.sentence} [2]", 1, case.sources, "")
    assert verdict_of(both).verdict == "carried"
