"""ctx remember, recall and forget: as a person types them, in pipes, with --json, on a terminal, and wrongly."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cli.schemas import load
from tests.in_process import Ran

Call = Callable[..., Ran]

EVIL = "evil \x1b[31m\u202e text\nwith lines"


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index that is not there yet."""
    monkeypatch.setenv("CTX_INDEX", str(tmp_path / "index"))
    return tmp_path / "index"


def _told(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    return ran.out.split("\t")[1].strip()


def _valid(ran: Ran) -> dict[str, object]:
    document = ran.document
    name = str(document["schema"]).removeprefix("ctx.").partition("/")[0]
    assert list(Draft202012Validator(load(name)).iter_errors(document)) == []
    return document


def test_told_recalled_and_forgotten(call: Call, at: Path) -> None:
    kiel = _told(call("remember", "Anna lives in Kiel"))
    anew = ("--replaces", kiel, "--tag", "people", "--importance", "0.8")
    bonn = _told(call("remember", "Anna", "moved", "to", "Bonn", *anew))
    assert call("remember", "anna moved to bonn!", "--session", "s").out.startswith("joined\t")
    ran = call("recall", "Where does Anna live?")
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[2] for line in lines] == [bonn, kiel]
    assert all(0.0 <= float(line[0]) <= 1.0 for line in lines)
    assert (lines[0][3], ran.err) == ("Anna moved to Bonn", "")
    assert "words" in call("recall", "Where does Anna live?", "--explain").out
    assert set(call("forget", bonn, kiel).out.splitlines()) == {f"forgotten\t{bonn}", f"forgotten\t{kiel}"}
    assert call("recall", "Where does Anna live?").out.count("\n") == 1, "the one that was joined took its place"


def test_without_a_question_they_are_listed(call: Call, at: Path) -> None:
    ran = call("recall")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing was told yet" in ran.err
    for number in range(3):
        call("remember", f"note {number}", "--tag", "odd" if number % 2 else "even", "--type", "note")
    assert [line.split("\t")[2] for line in call("recall").out.splitlines()] == ["note 2", "note 1", "note 0"]
    assert call("recall", "--tag", "odd").out.count("\n") == 1
    assert call("recall", "--type", "memory").out == ""
    assert call("recall", "--top-k", "2").out.count("\n") == 2


def test_nothing_that_fits_is_said_so(call: Call, at: Path) -> None:
    ran = call("recall", "anything")
    assert ran.code == 3
    assert "tell something first" in ran.err
    call("remember", "Tomatoes need sun")
    ran = call("recall", "What is the capital of Mongolia?")
    assert (ran.code, ran.out) == (3, "")
    assert "ask in other words" in ran.err
    assert call("recall", "What is the capital of Mongolia?", "--min-score", "0").code == 0
    assert call("recall", "Mongolia", "--json").code == 3


def test_tenants_are_kept_apart(call: Call, at: Path) -> None:
    call("remember", "the code is 1", "--tenant", "a")
    call("remember", "the code is 2", "--tenant", "b")
    assert "the code is 1" not in call("recall", "What is the code?", "--tenant", "b").out
    assert call("recall", "What is the code?").code == 3
    assert call("forget", "--all", "--yes", "--tenant", "a").out.count("forgotten") == 1
    assert call("recall", "What is the code?", "--tenant", "b").code == 0


@pytest.mark.slow
def test_out_and_in_again(call: Call, at: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("remember", "Anna lives in Kiel", "--key", "k", "--expires", "30d", "--category", "people")
    call("remember", EVIL, "--namespace", "n", "--speaker", "Eve")
    file = tmp_path / "memories.jsonl"
    ran = call("recall", "--export", str(file))
    assert ran.code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert call("recall", "--export", str(file)).code == 2, "nothing is written over"
    assert call("recall", "--export", "-").out == file.read_text()
    assert call("recall", "question", "--export", "-").code == 2
    monkeypatch.setenv("CTX_INDEX", str(tmp_path / "other"))
    counts = dict(line.split("\t") for line in call("remember", "--import", str(file)).out.splitlines())
    assert counts == {"stored": "2", "joined": "0", "known": "0", "failed": "0"}
    assert _valid(call("remember", "--import", str(file), "--json"))["known"] == 2
    assert call("recall", "Anna").out.count("\n") == 1
    assert call("status").out.count("memories") == 1


def test_wrong_lines_are_told_and_the_others_remembered(call: Call, at: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text('{"text": "good"}\nno\n{"text": ""}\n' + json.dumps({"text": "x" * 1_000_000}) + "\n")
    ran = call("remember", "--import", str(file))
    assert ran.code == 4
    assert "line 2: no valid JSON" in ran.err
    assert "line 4: the text has 1,000,000 characters" in ran.err
    assert call("recall").out.count("\n") == 1
    document = call("remember", "--import", str(file), "--json")
    assert document.code == 4


def test_json_is_as_its_schema_says(call: Call, at: Path) -> None:
    told = _valid(call("remember", EVIL, "--tag", "x", "--json"))
    assert told["failed"] == []
    found = _valid(call("recall", "evil text", "--json", "--recent"))
    [memory] = found["memories"]  # type: ignore[misc]
    assert memory["text"] == EVIL
    assert memory["salience"] is not None
    assert _valid(call("recall", "--json"))["query"] is None
    planned = _valid(call("forget", "--about", "evil text", "--dry-run", "--json"))
    assert [each["id"] for each in planned["would_forget"]] == [memory["id"]]  # type: ignore[attr-defined]
    assert _valid(call("forget", memory["id"], "--json"))["forgotten"] == [memory["id"]]


def test_what_was_told_cannot_move_the_terminal(call: Call, at: Path, on_terminal: Callable[..., Ran]) -> None:
    call("remember", EVIL, "--speaker", "Eve", "--session", "s")
    for args in (["recall"], ["recall", "evil text", "--explain"], ["forget", "--all", "--dry-run"]):
        for shown in (call(*args).out, on_terminal(args, env={"CTX_INDEX": str(at)}).out):
            assert "evil" in shown
            assert "\x1b[31m" not in shown
            assert "\u202e" not in shown


def test_on_a_terminal_it_asks_before_it_forgets(call: Call, at: Path, on_terminal: Callable[..., Ran]) -> None:
    call("remember", "my old address is Hauptstraße 1")
    env = {"CTX_INDEX": str(at)}
    ran = on_terminal(["forget", "--about", "old address"], typed=b"n\n", env=env)
    assert ran.code == 1
    assert "Forget 1 memory?" in ran.out
    assert "nothing was forgotten" in ran.out
    assert on_terminal(["forget", "--about", "old address"], typed=b"y\n", env=env).code == 0
    assert call("recall").out == ""


def test_elsewhere_several_need_yes(call: Call, at: Path) -> None:
    call("remember", "one", "--session", "s")
    call("remember", "two", "--session", "s")
    for args in (["--session", "s"], ["--all"], ["--about", "one"]):
        ran = call("forget", *args)
        assert ran.code == 2
        assert "nothing was forgotten" in ran.err
    assert call("forget", "--session", "s", "--dry-run").out.count("would forget") == 2
    assert call("forget", "--session", "s", "--yes").out.count("forgotten") == 2


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["remember"], 2, "nothing to remember"),
        (["remember", " "], 2, "empty"),
        (["remember", "x" * 30_000], 2, "30,000 characters"),
        (["remember", "x", "--importance", "7"], 2, "from 0 to 1"),
        (["remember", "x", "--expires", "soon"], 2, "is no time"),
        (["remember", "x", "--tag", "a\nb"], 2, "one line"),
        (["remember", "x", "--tenant", "a\nb"], 2, "one line"),
        (["remember", "x", "--import", "y"], 2, "from the file"),
        (["remember", "--import", "/nowhere/at/all"], 2, "cannot read"),
        (["forget"], 2, "name ids"),
        (["forget", "x", "--all"], 2, "name ids"),
        (["forget", "mem-nobody"], 3, "no"),
        (["forget", "--all", "--yes"], 3, "no"),
        (["recall", "x", "--top-k", "-1"], 2, "top_k"),
    ],
)
def test_what_is_refused(call: Call, at: Path, args: list[str], code: int, message: str) -> None:
    ran = call(*args)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


def test_from_stdin(call: Call, at: Path) -> None:
    assert call("remember", "-", stdin=b"from a pipe \xff\n").code == 0
    lines = b'{"text": "one"}\n{"text": "two"}\n'
    assert "stored\t2" in call("remember", "--import", "-", stdin=lines).out
    assert "from a pipe" in call("recall", "-", stdin=b"a pipe?").out
