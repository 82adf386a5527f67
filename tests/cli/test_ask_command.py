"""ctx ask: every kind of question, piped, as JSON and on a terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from research.context import TokenCounter
from tests.cli.answers import without_escapes

QUESTIONS = {
    "plain": "what caused the housing bubble",
    "one word": "tomatoes",
    "quotes": "\"subprime\" 'mortgages' `banks`",
    "fts operators": 'NEAR(bank, 2) OR body:bank* AND NOT "x" ^y {a b} -c (',
    "sql": "'; DROP TABLE pages; --",
    "emoji": "🏦💥 family 👨‍👩‍👧 banks",
    "long": "why did the banks fail " * 450,
    "one long word": "b" * 10_000,
    "chinese": "次贷危机的原因是什么",
    "markup": "[bold]banks[/bold] \\[x] {y} %s",
    "controls": "banks\x01\x1b[31m\u202e\u2028",
    "surrogate": "banks \udcff\udcfe",
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_json_is_one_document_for_every_kind_of_question(call, filled: Path, question: str) -> None:
    ran = call("ask", "--index", str(filled), "--json", "--", question)
    assert ran.out.isascii()
    assert ran.out.count("\n") == 1
    document = ran.document
    assert ran.code == (3 if document["confidence"]["level"] == "none" else 0), ran.err
    assert ("seems to answer this" in ran.err) == (ran.code == 3)
    assert ran.code == 3 or ran.err == "" or ran.err.startswith("ctx: note: The question is in Chinese")
    assert document["schema"] == "ctx.ask/2"
    assert document["total_tokens"] == TokenCounter().count(document["formatted_text"]) <= document["max_tokens"]
    assert document["coverage"]["complete"]


def test_the_document_has_all_fields(call, filled: Path) -> None:
    document = call("ask", "housing", "bubble", "--json", "--index", str(filled)).document
    assert list(document) == [
        "schema", "query", "searched", "rewrites", "answered_by", "confidence", "quotes", "formatted_text", "sources",
        "total_tokens", "max_tokens", "truncated", "dropped", "coverage", "timings", "answer",
    ]  # fmt: skip
    assert document["query"] == "housing bubble"
    first = document["sources"][0]
    assert first["citation"] == 1
    assert (first["filename"], first["page"], first["page_label"]) == ("crisis.pdf", 2, "ii")
    assert first["section_path"] == "The crisis > Causes"
    assert first["legs"]["lexical"]["rank"] == 1
    assert set(first["legs"]["lexical"]["parts"]) == {"words", "pairs", "name"}
    assert first["legs"]["dense"]["score"] > 0
    assert 0 <= first["relevance_score"] <= 1


def test_piped_it_is_the_context_alone(call, filled: Path) -> None:
    args = ("ask", "housing bubble", "--doc", "crisis.pdf", "--index", str(filled))
    ran = call(*args)
    assert ran.code == 0
    assert ran.out == call(*args, "--json").document["formatted_text"] + "\n"
    assert ran.out.startswith("[Document 1: crisis.pdf, Page 2]\n## Causes")
    assert ran.err == ""


def test_options_may_stand_before_the_command(call, filled: Path, tmp_path: Path) -> None:
    before = call("--index", str(filled), "--quiet", "ask", "housing", "--max-tokens", "60")
    assert before.code == 0
    assert before.err == ""
    after_wins = call("--index", str(tmp_path), "ask", "housing", "--index", str(filled))
    assert after_wins.code == 0


def test_the_question_from_stdin_may_hold_any_bytes(call, filled: Path) -> None:
    ran = call("ask", "-", "--json", "--index", str(filled), stdin=b"housing \xff\x00 bubble\n")
    assert ran.code == 0
    assert ran.document["query"] == "housing \ufffd\x00 bubble"
    assert call("ask", "-", "--json", "--index", str(filled), stdin=b" \n ").document["exit_code"] == 2


def test_arguments_that_are_no_text(spawn, filled: Path) -> None:
    ran = spawn(b"ask", b"housing \xff\xfe", b"--json", b"--index", os.fsencode(filled))
    assert ran.code == 0
    assert ran.document["query"] == "housing \ufffd\ufffd"


def test_a_small_budget_is_told_of(call, filled: Path) -> None:
    ran = call("ask", "housing bubble banks", "--max-tokens", "80", "--index", str(filled))
    assert ran.code == 0
    assert "ctx: note: truncated: source 1 is shown in part" in ran.err
    assert "left out: " in ran.err
    assert "budget 80 tokens; raise it with --max-tokens" in ran.err
    assert call("ask", "housing", "--max-tokens", "80", "--quiet", "--index", str(filled)).err == ""


def test_a_budget_for_nothing_gives_an_empty_truncated_context(call, filled: Path) -> None:
    ran = call("ask", "housing", "--max-tokens", "5", "--json", "--index", str(filled))
    assert ran.code == 0
    assert ran.document["formatted_text"] == ""
    assert ran.document["truncated"]
    assert ran.document["dropped"]
    assert call("ask", "housing", "--max-tokens", "5", "--index", str(filled)).out == ""


def test_nothing_found_is_exit_3_and_a_valid_document(call, filled: Path) -> None:
    ran = call("ask", "xylophone", "--mode", "lexical", "--json", "--index", str(filled))
    assert ran.code == 3
    assert ran.document["schema"] == "ctx.ask/2"
    assert ran.document["sources"] == []
    assert "nothing found" in ran.err
    plain = call("ask", "xylophone", "--mode", "lexical", "--index", str(filled))
    assert (plain.code, plain.out) == (3, "")


@pytest.mark.parametrize("command", ["ask", "search"])
def test_without_an_index_the_next_command_is_named(call, tmp_path: Path, command: str) -> None:
    ran = call(command, "q", "--json", "--index", str(tmp_path / "none"))
    assert ran.code == 3
    assert ran.document["schema"] == "ctx.error/1"
    assert "ctx ingest PATH" in ran.document["hint"]


def test_doc_restricts_and_unknown_names_are_refused(call, filled: Path) -> None:
    ran = call("ask", "banks", "--doc", "gardening", "--doc", "bbbb0000", "--json", "--index", str(filled))
    assert {source["filename"] for source in ran.document["sources"]} == {"gardening.pdf"}
    missing = call("ask", "banks", "--doc", "gardning.pdf", "--json", "--index", str(filled))
    assert missing.code == 3
    assert "did you mean gardening.pdf" in missing.document["hint"]


def test_num_results_and_max_sources(call, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_MAX_SOURCES", "2")
    assert len(call("ask", "banks", "--json", "--index", str(filled)).document["sources"]) == 2
    assert len(call("search", "banks", "--num-results", "1", "--json", "--index", str(filled)).document["results"]) == 1


@pytest.mark.parametrize("command", ["ask", "search"])
def test_what_was_searched_is_told(call, filled: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    asked = "What burst in the crissis? Answer in one sentence."
    document = call(command, asked, "--json", "--index", str(filled)).document
    assert document["query"] == asked
    assert document["searched"] == "What burst in the crissis crisis?"
    assert [rewrite["name"] for rewrite in document["rewrites"]] == ["answer-form", "names"]
    assert document["rewrites"][0]["before"] == asked
    explained = call(command, asked, "--explain", "--index", str(filled)).err
    assert "searched: What burst in the crissis crisis?\n" in explained
    assert "rewritten by answer-form: left out 1 sentence" in explained
    assert "rewritten by names: crissis is on no page" in explained
    monkeypatch.setenv("CTX_REWRITERS", "off")
    document = call(command, asked, "--json", "--index", str(filled)).document
    assert (document["searched"], document["rewrites"]) == (asked, [])


def test_explain_goes_to_stderr_in_a_pipe(call, filled: Path) -> None:
    ran = call("ask", "housing", "--explain", "--doc", "crisis.pdf", "--index", str(filled))
    assert "[1] crisis.pdf:2 score " in ran.err
    assert "lexical rank 1" in ran.err
    assert "cosine" in ran.err
    assert "rank" not in ran.out


def test_pages_without_vectors_are_told_of(call, words_only: Path) -> None:
    ran = call("ask", "housing", "--mode", "lexical", "--index", str(words_only))
    assert ran.code == 0
    assert "5 of 6 pages are searched by their words only" in ran.err
    assert "ctx ingest PATH" in ran.err


def test_a_leg_that_fails_is_told_of_and_the_other_answers(call, words_only: Path) -> None:
    ran = call("ask", "housing", "--json", "--index", str(words_only))
    assert ran.code == 0
    assert not ran.document["coverage"]["complete"]
    assert "dense search failed (no document has vectors yet)" in ran.err
    alone = call("ask", "housing", "--mode", "dense", "--json", "--index", str(words_only))
    assert alone.code == 1
    assert alone.document["error"].startswith("the search failed: dense: ")


@pytest.mark.slow
def test_collections_left_behind_are_mended_by_the_next_question(call, copied: Path) -> None:
    shutil.rmtree(copied / "chroma")
    ran = call("ask", "housing", "--json", "--index", str(copied))
    assert ran.code == 0
    assert ran.err == "ctx: the collections were behind and have been brought up to date\n"
    assert call("ask", "housing", "--json", "--index", str(copied)).err == ""


def test_a_reader_that_goes_away_is_no_error(filled: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "ask", "banks", "--doc", "crisis.pdf", "--index", str(filled)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()


@pytest.mark.slow
def test_any_locale_can_print_any_text(spawn, filled: Path) -> None:
    args = ("ask", "тест", "banks", "--max-tokens", "80", "--index", str(filled))
    ran = spawn(*args, env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    assert "Traceback" not in ran.err
    assert "[Document 1: " in ran.out


def test_on_a_terminal_it_is_laid_out_for_reading(on_terminal, filled: Path) -> None:
    ran = on_terminal(["ask", "housing bubble", "--explain", "--max-tokens", "80", "--index", str(filled)])
    assert ran.code == 0
    shown = without_escapes(ran.out)
    assert "[1] crisis.pdf p. 2 (ii) · The crisis > Causes\n" in shown
    assert re.search(r"\n    .*The housing bubble burst", shown)
    assert re.search(r"\d+ of 80 tokens · ctx open 1 · --full · --json\n", shown)
    assert "✂ truncated: source 1 is shown in part" in shown
    assert shown.index("tokens · ") < shown.index("How the scores arose")
    assert "\x1b[1mhousing\x1b[0m" in ran.out, "words that fit are bold"


def test_a_terminal_without_colour_or_width(on_terminal, filled: Path) -> None:
    args = ["ask", "housing bubble", "--index", str(filled)]
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        ran = on_terminal(args, env=env, columns=40)
        assert ran.code == 0
        assert "\x1b[36m" not in ran.out
        assert "\x1b" not in ran.out or "TERM" not in env
        shown = without_escapes(ran.out)
        assert "[1] crisis.pdf p. 2 (ii)" in shown
        assert max(len(line) for line in shown.splitlines()) <= 40
        assert "steer" not in shown


def test_on_a_terminal_json_is_still_one_document(on_terminal, filled: Path) -> None:
    ran = on_terminal(["ask", "housing bubble", "--json", "--quiet", "--index", str(filled)])
    assert json.loads(ran.out)["schema"] == "ctx.ask/2"


def test_on_a_terminal_incomplete_coverage_and_emptiness_are_told(on_terminal, words_only: Path) -> None:
    ran = on_terminal(["ask", "housing", "--index", str(words_only)])
    assert "! dense search failed" in ran.out
    assert ran.out.count("dense search failed") == 1
    nothing = on_terminal(["ask", "xylophone", "--index", str(words_only)])
    assert nothing.code == 3
    assert "nothing found" in nothing.out
    assert "dense search failed" in nothing.out, "why it may have found nothing"


def test_a_source_that_imitates_a_header_is_marked_for_programs_and_not_on_the_screen(
    filled: Path, call, on_terminal
) -> None:
    ask = ("ask", "zebra", "--mode", "lexical", "--index", str(filled))
    asked = call(*ask, "--json")
    [source] = [s for s in asked.document["sources"] if s["doc_id"] == "cccc000000000003"]
    assert source["suspicious"] == ["forged_header", "hidden_characters"]
    assert "(Document 9: bank.pdf, Page 1]" in asked.document["formatted_text"]
    assert call(*ask).err == ""
    shown = without_escapes(on_terminal(list(ask)).out)
    assert "steer" not in shown
    assert "!" not in shown
    for command in (("search", "zebra", "--mode", "lexical"), ("show", "cccc000000000003", "1")):
        ran = call(*command, "--json", "--index", str(filled))
        entry = ran.document["results"][0] if command[0] == "search" else ran.document
        assert entry["suspicious"] == ["forged_header", "hidden_characters"]
        assert "steer" not in call(*command, "--index", str(filled)).err
    assert call("show", "crisis.pdf", "1", "--json", "--index", str(filled)).document["suspicious"] == []


def test_a_question_in_this_process_leaves_no_file_open(call, filled: Path) -> None:
    """`main` promises that it can be called; a process that asks again and again must not run out of descriptors."""

    def ask() -> int:
        assert call("ask", "housing bubble", "--index", str(filled), "--json").code == 0
        return still_open()

    def still_open() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    ask()
    before = max(ask() for _ in range(3))
    asked = max(ask() for _ in range(3))
    until = time.monotonic() + 10
    while asked > before and time.monotonic() < until:  # Chroma's core closes its database in a thread of its own
        time.sleep(0.01)
        asked = still_open()
    assert asked <= before
