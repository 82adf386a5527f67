"""Where nothing seems to answer: what is said, how it ends, and the flags that draw the line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ANSWERED = "When did the housing bubble burst?"
FOREIGN = "How tall is Mount Kilimanjaro?"


@pytest.mark.parametrize("command", ["ask", "search"])
def test_nothing_that_answers_is_shown_and_told(call, filled: Path, command: str) -> None:
    ran = call(command, FOREIGN, "--index", str(filled))
    assert ran.code == 3
    assert "crisis" in ran.out, "the nearest pages are there all the same"
    told, hint = ran.err.splitlines()[-2:]
    assert re.fullmatch(
        r"ctx: error: nothing in 6 pages of 4 documents seems to answer this; nearest: .+ p\. \d \(score 0\.\d\d\)",
        told,
    )
    assert hint == "hint: try other words, or see what is there: ctx list"


@pytest.mark.parametrize(("command", "found"), [("ask", "sources"), ("search", "results")])
def test_json_is_the_whole_document_and_says_none(call, filled: Path, command: str, found: str) -> None:
    ran = call(command, FOREIGN, "--json", "--index", str(filled))
    assert ran.code == 3
    assert ran.document["confidence"]["level"] == "none"
    assert 0 <= ran.document["confidence"]["value"] < 0.08
    assert ran.document[found]
    answered = call(command, ANSWERED, "--json", "--index", str(filled))
    assert (answered.code, answered.err) == (0, "")
    assert answered.document["confidence"]["level"] in ("medium", "high")


def test_filters_are_part_of_what_is_told(call, filled: Path) -> None:
    ran = call("ask", ANSWERED, "--doc", "gardening.pdf", "--index", str(filled))
    assert ran.code == 3
    assert "nothing in what the filters leave seems to answer this; nearest: gardening.pdf p. 1" in ran.err
    assert "or ask without the filters" in ran.err


def test_names_of_documents_stay_harmless(call, filled: Path) -> None:
    ran = call("ask", FOREIGN, "--doc", "cccc000000000003", "--index", str(filled))
    assert ran.code == 3
    assert "\x1b" not in ran.err
    assert "nearest: evil\\n[bold]" in ran.err


@pytest.mark.parametrize("command", ["ask", "search"])
def test_sources_below_a_score_are_left_out(call, filled: Path, command: str, monkeypatch) -> None:
    found = "sources" if command == "ask" else "results"
    everything = call(command, ANSWERED, "--json", "--index", str(filled)).document[found]
    least = str(everything[0]["relevance_score"])
    monkeypatch.setenv("CTX_MIN_SCORE", least)
    ran = call(command, ANSWERED, "--json", "--index", str(filled))
    assert ran.code == 0
    assert [page["page"] for page in ran.document[found]] == [everything[0]["page"]]
    monkeypatch.setenv("CTX_MIN_SCORE", "1")
    nothing = call(command, ANSWERED, "--json", "--index", str(filled))
    assert (nothing.code, nothing.document[found]) == (3, [])
    assert "no page that was found has a score of 1 or more" in nothing.err
    assert "hint: lower min_score" in nothing.err
    assert nothing.document["confidence"]["level"] in ("medium", "high"), "it is told all the same"


@pytest.mark.parametrize("least", ["high", "0.9999"])
def test_an_answer_that_is_not_sure_enough_is_none(call, filled: Path, least: str) -> None:
    for command, found in (("ask", "sources"), ("search", "results")):
        ran = call(command, FOREIGN, "--min-confidence", least, "--json", "--index", str(filled))
        assert (ran.code, ran.document[found]) == (3, [])
        assert re.search(rf"confidence is none \(0\.0\d\), and at least {re.escape(least)} is wanted", ran.err)
    assert call("ask", ANSWERED, "--min-confidence", "low", "--index", str(filled)).code == 0


def test_variables_draw_the_line_too(call, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_MIN_CONFIDENCE", "high")
    assert call("ask", FOREIGN, "--index", str(filled)).out == ""
    assert call("ask", FOREIGN, "--min-confidence", "none", "--index", str(filled)).out
    monkeypatch.setenv("CTX_MIN_CONFIDENCE", "certain")
    ran = call("ask", FOREIGN, "--index", str(filled))
    assert ran.code == 2
    assert "CTX_MIN_CONFIDENCE: min_confidence cannot be 'certain'" in ran.err
    assert "choose one of: none, low, medium, high, or a number from 0 to 1" in ran.err


@pytest.mark.parametrize("wrong", ["1.5", "-1", "nan", "x"])
def test_numbers_that_are_no_share(call, filled: Path, wrong: str) -> None:
    for flag in ("--min-score", "--min-confidence"):
        ran = call("search", ANSWERED, f"{flag}={wrong}", "--index", str(filled))
        assert (ran.code, ran.out) == (2, "")
        assert flag in ran.err


def test_each_line_of_a_batch_says_how_sure_it_is(call, filled: Path, tmp_path: Path) -> None:
    lines = [
        ANSWERED,
        FOREIGN,
        json.dumps({"question": FOREIGN, "id": 3, "min_confidence": "low"}),
        json.dumps({"question": ANSWERED, "id": 4, "min_score": 0.9999}),
        json.dumps({"question": ANSWERED, "id": 5, "min_score": 2}),
    ]
    batch = tmp_path / "questions"
    batch.write_text("\n".join(lines[:4]))
    ran = call("ask", "--batch", str(batch), "--index", str(filled))
    assert ran.code == 0, "a line that nothing answers is an answer"
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [answer["confidence"]["level"] for answer in answers[1:3]] == ["none", "none"]
    assert [bool(answer["sources"]) for answer in answers] == [True, True, False, False]
    batch.write_text("\n".join(lines))
    ran = call("ask", "--batch", str(batch), "--index", str(filled))
    assert ran.code == 4
    assert "min_score cannot be 2" in json.loads(ran.out.splitlines()[4])["error"]
    batch.write_text(FOREIGN)
    assert call("ask", "--batch", str(batch), "--min-confidence", "1", "--index", str(filled)).code == 3


def test_a_terminal_tells_it_once(on_terminal, filled: Path) -> None:
    ran = on_terminal(["ask", FOREIGN, "--index", str(filled)])
    assert ran.code == 3
    assert "Nothing seems to answer this: 6 pages were searched" in ran.out
    assert "ctx: error" not in ran.out
