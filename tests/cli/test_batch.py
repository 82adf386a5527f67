"""ctx ask --batch: a document a line, in order, whatever the lines hold and however it ends."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.batch import Line, answer_all, read_lines
from research.models import ResearchContext
from research.request import AskRequest
from tests.conftest import MEASURE
from tests.in_process import Ran
from tests.network_guard import guarded

Call = Callable[..., Ran]


@pytest.fixture
def batch(call: Call, filled: Path, tmp_path: Path) -> Call:
    """The documents of these lines, from a file."""

    def run(*lines: str | dict[str, Any], options: tuple[str, ...] = (), index: Path = filled) -> Ran:
        file = tmp_path / "questions.jsonl"
        file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return call("ask", "--batch", str(file), "--index", str(index), *options)

    return run


def documents(ran: Ran) -> list[dict[str, Any]]:
    assert ran.out.isascii()
    return [json.loads(line) for line in ran.out.splitlines()]


def test_each_line_is_answered_as_a_call_of_its_own_would(batch: Call, call: Call, filled: Path) -> None:
    questions = ["housing bubble", "Which tests did regulators use?", "xylophone", "zebra"]
    ran = batch(*questions, *questions)
    assert (ran.code, ran.err) == (0, "")
    found = documents(ran)
    assert [document["line"] for document in found] == list(range(1, 9))
    alone = [call("ask", question, "--json", "--index", str(filled)).document for question in questions]
    for document, own in zip(found, [*alone, *alone], strict=True):
        assert {**document, "timings": {}} == {**own, "timings": {}, "id": None, "line": document["line"]}


def test_what_is_wrong_with_a_line_costs_only_that_line(batch: Call) -> None:
    ran = batch(
        "housing",
        "",
        '{"question": "housing", "id": 1',
        {"question": "housing", "id": "c", "colour": "red"},
        {"question": "housing", "id": "d", "doc": "nowhere.pdf"},
        {"question": "housing", "id": "e", "pages": "x"},
        {"question": "housing", "id": "f", "doc": [1]},
        {"question": "housing", "id": "g", "doc": "\ud800"},
        {"question": "housing", "id": "h", "under": "a\0b"},
        {"question": "tomatoes", "id": "i"},
    )
    found = documents(ran)
    assert [document["schema"] for document in found] == ["ctx.ask/2", *["ctx.error/1"] * 8, "ctx.ask/2"]
    assert [document["line"] for document in found] == list(range(1, 11))
    assert [document["id"] for document in found] == [None, None, None, "c", "d", "e", "f", "g", "h", "i"]
    assert [document["exit_code"] for document in found[1:-1]] == [2, 2, 2, 3, 2, 2, 3, 2]
    assert "nowhere.pdf" in found[4]["error"]
    assert not any("unexpected" in document["error"] for document in found[1:-1])
    assert found[-1]["sources"][0]["filename"] == "gardening.pdf"
    assert ran.code == 4
    assert "8 of 10 lines failed; the others were answered" in ran.err


def test_lines_that_all_failed_and_lines_that_found_nothing(batch: Call) -> None:
    failed = batch("", "")
    assert failed.code == 4
    assert "2 of 2 lines failed; none was answered" in failed.err
    nothing = batch("xylophone", {"question": "zither", "mode": "lexical"}, options=("--mode", "lexical"))
    assert [document["sources"] for document in documents(nothing)] == [[], []]
    assert nothing.code == 3
    assert "nothing found for any of the questions" in nothing.err
    one = batch("xylophone", "housing", options=("--mode", "lexical"))
    assert (one.code, one.err) == (0, "")


def test_no_lines_are_no_fault(batch: Call) -> None:
    ran = batch()
    assert (ran.code, ran.out) == (0, "")
    assert "there was no line to answer" in ran.err
    assert batch(options=("--quiet",)).err == ""


def test_a_line_says_more_than_the_command(batch: Call) -> None:
    options = ("--doc", "gardening.pdf", "--max-tokens", "500", "--mode", "lexical")
    found = documents(
        batch(
            {"question": "housing water", "id": 1},
            {"question": "housing water", "id": 2, "doc": "crisis.pdf"},
            {"question": "housing banks tests water", "id": 3, "doc": "*.pdf", "max_sources": 3, "max_tokens": 100},
            {"question": "banks", "id": 4, "doc": "*.pdf", "pages": [3], "max_sources": 3},
            options=options,
        )
    )
    assert [[source["filename"] for source in document["sources"]] for document in found[:2]] == [
        ["gardening.pdf"], ["crisis.pdf"],
    ]  # fmt: skip
    assert [document["max_tokens"] for document in found] == [500, 500, 100, 500]
    assert len(found[2]["sources"]) > 1
    assert found[2]["total_tokens"] <= 100
    assert [(source["filename"], source["page"]) for source in found[3]["sources"]] == [("crisis.pdf", 3)]


def test_how_much_of_a_page_holds_for_all_lines(batch: Callable[..., Ran]) -> None:
    [fit] = documents(batch("housing bubble", options=("--max-tokens", "60")))
    [full] = documents(batch("housing bubble", options=("--full",)))
    assert len(fit["formatted_text"]) < len(full["formatted_text"])
    assert "markdown_content" not in full["sources"][0], "formatted_text has it"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("a question",), "--batch reads the questions from its file"),
        (("--html", "page.html"), "--html and --batch are two answers"),
        (("--pages", "x"), "which is not pages"),
        (("--session", "x"), "exclude each other"),
    ],
)
def test_wrong_usage_answers_no_line(batch: Call, options: tuple[str, ...], message: str) -> None:
    ran = batch("housing", options=options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_without_a_file_or_an_index(batch: Call, call: Call, filled: Path, tmp_path: Path) -> None:
    ran = call("ask", "--batch", str(tmp_path / "none"), "--index", str(filled))
    assert (ran.code, ran.out) == (2, "")
    assert "cannot read" in ran.err
    ran = batch("housing", options=("--json",), index=tmp_path / "none")
    assert (ran.code, documents(ran)[0]["exit_code"]) == (3, 3)


def test_a_search_that_fails_is_an_error_of_its_line(batch: Call, words_only: Path) -> None:
    found = documents(batch({"question": "housing", "mode": "dense"}, "housing", index=words_only))
    assert [document["schema"] for document in found] == ["ctx.error/1", "ctx.ask/2"]
    assert "the search failed" in found[0]["error"]
    assert found[1]["coverage"]["complete"] is False


def test_questions_from_stdin(call: Call, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"housing\r\ntomatoes")))
    found = documents(call("ask", "--batch", "-", "--index", str(filled)))
    assert [document["query"] for document in found] == ["housing", "tomatoes"]


def test_a_bug_costs_its_line_and_a_file_that_breaks_off_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(line: Line) -> ResearchContext:
        if line.number == 2:
            raise ZeroDivisionError("by nought")
        return ResearchContext("", [], 0, truncated=False, query=line.request.question if line.request else "")

    assert answer_all(read_lines(io.BytesIO(b"a\nb\nc\n"), AskRequest("")), answer, quiet=True) == 4
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [document.get("query") for document in found] == ["a", None, "c"]
    assert "unexpected error: ZeroDivisionError: by nought" in found[1]["error"]

    class Broken(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().readline(size)

    with pytest.raises(Exception, match="cannot read the questions: Input/output error"):
        answer_all(read_lines(Broken(b"a\nb\n"), AskRequest("")), answer, quiet=True)
    assert len(capsys.readouterr().out.splitlines()) == 1, "what was read is answered"


@contextmanager
def running(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        guarded("-m", "cli.main", "ask", *args),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **MEASURE},
    ) as process:
        yield process


def ask(process: subprocess.Popen[bytes], line: str) -> dict[str, Any]:
    """Write a line and wait for its document before anything else is written."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def test_an_answer_comes_before_the_next_question_and_sees_what_was_added(copied: Path, call: Call, make_pdf) -> None:
    """An agent may ask, add a document and ask again; Ctrl-C leaves what was done."""
    with running("--batch", "-", "--index", str(copied)) as process:
        before = ask(process, "walrus tusks")
        make_pdf("walrus.pdf", ["The walrus has tusks of ivory."])
        added = call("ingest", str(copied.parent / "walrus.pdf"), "--no-images", "--index", str(copied))
        assert added.code == 0
        after = ask(process, '{"question": "walrus tusks", "id": 2}')
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert "walrus.pdf" not in [source["filename"] for source in before["sources"]]
    assert after["sources"][0]["filename"] == "walrus.pdf"
    assert (after["id"], after["line"]) == (2, 2)
    assert (process.returncode, out) == (130, b"")
    assert err == b"ctx: error: interrupted; lines answered, each whole: 2\n"


@pytest.mark.slow
def test_ctrl_c_while_a_pipe_gives_nothing(filled: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "questions"
    os.mkfifo(fifo)
    with running("--batch", str(fifo), "--index", str(filled)) as process, fifo.open("wb") as written:
        written.write(b"housing\n")
        written.flush()
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["line"] == 1
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130


def test_a_reader_that_goes_away_ends_it(filled: Path, tmp_path: Path) -> None:
    """As `| head -1` does; a question would be worked on for every line otherwise."""
    file = tmp_path / "questions.txt"
    file.write_text("housing bubble\n" * 50_000)
    with running("--batch", str(file), "--index", str(filled)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["line"] == 1
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr.read() == b""
