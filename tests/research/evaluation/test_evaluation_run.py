"""Questions of the samples through the real engine: rankings, gold look-up, run file, failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research import ChromaClient, SearchEngine
from research.evaluation.questions import Question, look_up, read_questions
from research.evaluation.scoring import DEPTH, Asked, ask_all, failures, rankings, slices, summarise, write_run

QUESTIONS = read_questions(Path(__file__).parents[3] / "data" / "questions.jsonl")


@pytest.fixture(scope="module")
def asked(sample_index: Path) -> list[Asked]:
    with ChromaClient(sample_index) as client:
        golds = look_up(client.catalog, QUESTIONS).askable
        return list(ask_all(SearchEngine(client).index, golds, "hybrid"))


@pytest.mark.slow
def test_a_leg_beside_the_fusion_is_the_leg_alone(samples: ChromaClient, asked: list[Asked]) -> None:
    engine = SearchEngine(samples)
    for one in asked[::6]:
        assert list(one.legs) == [leg.name for leg in one.coverage.legs]
        for name, pages in one.legs.items():
            found = engine.run(one.gold.question.query, DEPTH, name).found
            assert [(page.doc, page.page) for page in pages] == [(f.page.filename, f.page.page) for f in found]


def test_the_fusion_comes_first_then_its_legs(asked: list[Asked]) -> None:
    rows = rankings(asked, "hybrid")
    assert [row.name for row in rows] == ["hybrid", *asked[0].legs]
    assert {row.questions for row in rows} == {len(QUESTIONS)}


def test_slices_are_parts_of_the_whole(asked: list[Asked]) -> None:
    whole = rankings(asked, "hybrid")[0].figures["hit@5"].mean
    parts = slices(asked, "kind")
    assert sum(part.questions for part in parts) == len(QUESTIONS)
    assert sum(p.questions * p.figures["hit@5"].mean for p in parts) == pytest.approx(whole * len(QUESTIONS))
    assert [part.questions for part in parts] == sorted((part.questions for part in parts), reverse=True)


def test_failures_are_the_complement_of_hits(asked: list[Asked]) -> None:
    report = summarise(asked, "hybrid", among=5)
    assert len(report.failures) == round((1 - report.rankings[0].figures["hit@5"].mean) * len(asked))
    for failure in report.failures:
        assert failure.rank is None or failure.rank > 5
        assert not {(page.doc, page.page) for page in failure.returned} & set(failure.question.gold)
        named = {page.doc for page in failure.returned} & {name for name, _ in failure.question.gold}
        assert failure.right_document == bool(named)


def test_the_run_file_is_deep_and_ranked(asked: list[Asked], tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", asked)
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line["qid"] for line in lines] == [question.qid for question in QUESTIONS]
    for line, one in zip(lines, asked, strict=True):
        assert line["results"] == [{"doc": page.doc, "page": page.page} for page in one.ranked]
        # The samples have 48 pages, two of them without text: all that can be found is there.
        assert len(line["results"]) >= 40


def test_gold_that_is_not_there_is_told_apart(samples: ChromaClient) -> None:
    handbook = ("Saltmarsh-Handbook-2025", 7)
    questions = [
        Question("both", "x", (handbook, ("gone.pdf", 1))),
        Question("none", "x", (("gone.pdf", 2), ("away.pdf", 1))),
        Question("past", "x", (("saltmarsh-handbook-2025.pdf", 99),)),
    ]
    check = look_up(samples.catalog, questions)
    assert [gold.question.qid for gold in check.askable] == ["both", "past"]
    assert check.askable[0].pages == {("saltmarsh-handbook-2025", 7), ("gone", 1)}
    assert [question.qid for question in check.left_out] == ["none"]
    assert check.missing == {"gone.pdf": 2, "away.pdf": 1}
    assert check.beyond == ["saltmarsh-handbook-2025.pdf:99"]


def test_a_question_about_nothing_still_counts(samples: ChromaClient) -> None:
    gold = look_up(samples.catalog, [Question("q", "xylophonist", (("saltmarsh-handbook-2025.pdf", 7),))]).askable
    asked = list(ask_all(SearchEngine(samples).index, gold, "lexical"))
    assert rankings(asked, "lexical")[0].figures["hit@10"].mean == 0.0
    (failure,) = failures(asked, 10)
    assert failure.returned == []
    assert failure.leg_ranks == {"lexical": None}
