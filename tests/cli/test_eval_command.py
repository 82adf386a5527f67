"""ctx eval: figures, failures, run files, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.research.evaluation.talks import write_set

LINES: list[dict[str, Any]] = [
    {"qid": "a", "query": "Why did the housing bubble burst?", "gold": [["crisis.pdf", 2]], "kind": "text"},
    {"qid": "b", "query": "What do tomatoes need?", "gold": [["Gardening", 1]], "kind": "text"},
    {"qid": "c", "query": "zebra text", "gold": [["crisis-annex.pdf", 1]], "kind": "scan"},
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write(tmp_path / "questions.jsonl", LINES)


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_piped_a_ranking_is_one_line(call, filled: Path, questions: Path) -> None:
    ran = call("eval", str(questions), "--index", str(filled))
    assert ran.code == 0
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert lines[0] == ["ranking", "questions", "hit@1", "hit@5", "hit@10", "MRR@10", "nDCG@5"]
    assert [line[0] for line in lines[1:]] == ["hybrid", "lexical", "dense", "visual", "latency"]
    assert lines[1][1] == "3"
    assert lines[1][2].startswith("0.667 (")
    assert re.fullmatch(r"p50 [\d.]+ ms", lines[5][1])
    assert ran.err == ""


def test_json(call, filled: Path, questions: Path) -> None:
    args = ["eval", str(questions), "--json", "--failures", "--slice", "kind", "--index", str(filled)]
    document = call(*args).document
    assert list(document) == [
        "schema", "file", "mode", "per_doc", "questions", "rankings", "slice", "slices", "latency_seconds", "failed",
        "left_out", "missing_documents", "pages_beyond_end", "coverage",
    ]  # fmt: skip
    assert document["schema"] == "ctx.eval/2"
    assert document["rankings"][0]["figures"]["hit@5"].keys() == {"mean", "low", "high"}
    assert [(row["name"], row["questions"]) for row in document["slices"]] == [("text", 2), ("scan", 1)]
    (failed,) = document["failed"]
    assert (failed["qid"], failed["rank"], failed["right_document"]) == ("c", None, False)
    assert failed["returned"][0]["filename"].startswith("evil\n[bold]x")


def test_failures_say_what_was_wanted_and_what_came(call, filled: Path, questions: Path) -> None:
    ran = call("eval", str(questions), "--failures", "--index", str(filled))
    (line,) = [line for line in ran.out.splitlines() if line.startswith("failed\t")]
    fields = line.split("\t")
    assert fields[1:4] == ["c", "zebra text", "wanted crisis-annex.pdf:1"]
    assert fields[4].startswith("wrong document, did not come (lexical not at all")
    assert fields[5].startswith(r"returned evil\n[bold]x")


def test_per_doc_finds_the_page_of_a_known_document(call, filled: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", [{"query": "tomatoes", "gold": [["crisis.pdf", 3]]}])
    document = call(
        "eval", str(path), "--per-doc", "--json", "--failures", "--top", "1", "--index", str(filled)
    ).document
    assert {page["filename"] for failure in document["failed"] for page in failure["returned"]} <= {"crisis.pdf"}
    assert document["rankings"][0]["figures"]["hit@5"]["mean"] == 1.0


def test_gold_documents_that_are_not_indexed_are_named(call, filled: Path, tmp_path: Path) -> None:
    lines = [LINES[0], {"qid": "z", "query": "x", "gold": [["gone.pdf", 1]]}]
    ran = call("eval", str(write(tmp_path / "q.jsonl", lines)), "--index", str(filled), "--json")
    assert ran.code == 0
    assert ran.document["questions"] == 1
    assert ran.document["rankings"][0]["figures"]["hit@1"]["mean"] == 1.0
    assert (ran.document["left_out"], ran.document["missing_documents"]) == (["z"], {"gone.pdf": 1})
    assert "not indexed: gone.pdf; 1 of 2 questions are left out" in ran.err


def test_no_gold_document_at_all(call, filled: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", [{"query": "x", "gold": [["gone.pdf", 1]]}])
    ran = call("eval", str(path), "--index", str(filled))
    assert (ran.code, ran.out) == (3, "")
    assert "no gold document is indexed: gone.pdf" in ran.err
    assert "hint: add them: ctx ingest" in ran.err


def test_a_wrong_line_is_named(call, filled: Path, questions: Path) -> None:
    questions.write_text(questions.read_text() + '{"query": "x", "gold": "crisis.pdf"}\n')
    ran = call("eval", str(questions), "--index", str(filled))
    assert ran.code == 2
    assert f"{questions}:4: `gold`: Input should be a valid" in ran.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--slice", "color"], "fields there are: kind"),
        (["--run", "/no/such/folder/run.jsonl"], "cannot write /no/such/folder/run.jsonl"),
        (["--top", "0"], "--top cannot be 0"),
        (["--mode", "psychic"], "not one of"),
    ],
)
def test_wrong_usage(call, filled: Path, questions: Path, args: list[str], words: str) -> None:
    ran = call("eval", str(questions), *args, "--index", str(filled))
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_without_vectors_the_words_are_measured_and_that_is_said(call, words_only: Path, questions: Path) -> None:
    ran = call("eval", str(questions), "--index", str(words_only))
    assert ran.code == 0
    assert "dense search failed" in ran.err
    assert call("eval", str(questions), "--mode", "dense", "--index", str(words_only)).code == 1


@pytest.mark.slow
def test_a_copy_counts_under_its_own_name(call, make_pdf, tmp_path: Path) -> None:
    original = make_pdf("docs/original.pdf", ["An essay on lighthouses and their keepers."])
    shutil.copy(original, original.with_name("copy.pdf"))
    index = str(tmp_path / "index")
    assert call("ingest", str(original.parent), "--no-images", "--index", index).code == 0
    path = write(tmp_path / "q.jsonl", [{"query": "lighthouses", "gold": [[n, 1]]} for n in ("original", "copy")])
    document = call("eval", str(path), "--json", "--index", index).document
    assert document["missing_documents"] == {}
    assert document["rankings"][0]["figures"]["hit@1"]["mean"] == 1.0


def test_on_a_terminal(on_terminal, filled: Path, questions: Path) -> None:
    args = ["eval", str(questions), "--failures", "--slice", "kind", "--index", str(filled)]
    ran = on_terminal(args, columns=80)
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", ran.out)
    assert ran.code == 0
    assert "asking" in shown
    assert "0.667" in shown
    assert "a question takes p50" in shown
    assert "without a gold page among the first 10: 1" in shown
    assert r"evil\n[bold]x[b]" in shown
    assert "\x1b[31m--json" not in ran.out


def test_memories_are_measured_in_an_index_of_their_own(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_INDEX", str(tmp_path / "mine"))
    file = write_set(tmp_path)
    ran = call("eval", str(file), "--failures", "--top", "1", "--slice", "category")
    assert ran.code == 0, ran.err
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[:2] for line in lines[1:4]] == [["memories", "3"], ["category=1", "2"], ["category=4", "1"]]
    assert lines[-1][:4] == ["failed", "c", "Who won the race?", "wanted D1:7"]
    told = call("eval", str(file), "--failures", "--run", str(tmp_path / "run.jsonl"), "--json").document
    assert (told["mode"], told["questions"]) == ("memories", 3)
    assert "id" in told["failed"][0]["returned"][0]
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 3
    assert not (tmp_path / "mine").exists(), "what the user remembers is not touched"
    assert call("eval", str(file), "--mode", "lexical").code == 2
    assert call("eval", str(file), "--slice", "nothing").code == 2
