"""ctx experience: told, listed, searched, removed, in and out as JSON Lines; what is wrong is told with the choices."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_schemas import validate

from research.index import Index
from tests.in_process import Ran
from tests.research.experiences.recurring import recurring

Call = Callable[..., Ran]

DATA = Path(__file__).parents[2] / "data" / "experiences.jsonl"
STARTED = (
    "experience", "start", "--goal", "Find the leak", "--hypothesis", "A file stays open", "--action", "Count them",
    "--prediction", "They grow",
)  # fmt: skip
ENDED = ("--outcome", "falsified", "--result", "They did not")
EVIL = "zebra \x1b]0;owned\x07\u202eevil\nsecond\tline"


@pytest.fixture
def run(call: Call, tmp_path: Path) -> Call:
    """The command on a fresh index; --json documents are held to their schema."""

    def run(*args: str) -> Ran:
        ran = call(*args, "--index", str(tmp_path / "index"))
        if "--json" in args:
            validate(ran.document)
        assert "\x1b" not in ran.out + ran.err
        return ran

    return run


def test_from_start_to_end(run: Call) -> None:
    begun = run(*STARTED, "--domain", "debugging")
    assert begun.code == 0
    id = begun.out.strip()
    assert f"ctx experience close {id} --outcome" in begun.err
    again = run("experience", "update", "--hypothesis", "A socket stays open", "--json")
    assert again.document["experience"]["iteration_count"] == 2, "the one that is open is meant"
    shown = run("experience", "show", id[:5])
    assert "state       open, iteration 2\n" in shown.out
    assert run("experience", "list").out == f"{id}\topen\tdebugging\tother\tFind the leak\n"
    assert run("experience", "search", "leak").code == 3
    closed = run("experience", "close", *ENDED, "--surprise", "Threads grew", "--tier", "gold")
    assert (closed.out, closed.err) == (f"{id}\n", "ctx: falsified, gold\n")
    found = run("experience", "search", "the", "number", "of", "threads", "--axis", "surprise", "--json").document
    assert found["results"][0]["ref"] == f"experience:{id}"
    assert found["results"][0]["axis"] == "surprise"
    assert run("experience", "search", "threads", "--domain", "testing", "--json").code == 3
    assert run("experience", "search", "threads", "--axis", "surprise").out.endswith(f"{id}\tfalsified\tThreads grew\n")
    assert run("experience", "remove", id).out == f"{id}\n"
    assert run("experience", "list", "--json").document["experiences"] == []
    assert "begin one with" in run("experience").err


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        ((*STARTED[:4],), "needs a hypothesis, an action and a prediction", "what you want"),
        ((*STARTED, "--domain", "cooking"), "no domain 'cooking'", "debugging, refactoring"),
        ((*STARTED, "--strategy", "guess"), "no strategy 'guess'", "read-the-error, ask-user, other"),
        ((*STARTED, "--iterations", "0"), "iteration_count cannot be 0", "from 1"),
        (("experience", "close"), "no experience is open", "ctx experience start"),
        (("experience", "close", "nobody", *ENDED), "no experience 'nobody'", "ctx experience list"),
        (("experience", "search", "x", "--axis", "mood"), "no axis 'mood'", "full, strategy, surprise, root_cause"),
        (("experience", "search"), "missing argument 'QUESTION...'", "ask something"),
        (("experience", "list", "--outcome", "won"), "no outcome 'won'", "confirmed, falsified, abandoned, open"),
        (("experience", "list", "--lesson", "x"), "no such option: --lesson", "--help"),
        (("experience", "list", "--result", "x"), "no such option: --result", "--help"),
        (("experience", "update", "--outcome", "confirmed"), "no such option: --outcome", "--help"),
        (("experience", "list", "--limit", "0"), "0 is too small; the least is 1", "--help"),
        (("experience", "show"), "missing argument 'ID'", "--help"),
        (("experience", "show", "a", "b"), "unexpected extra argument", "--help"),
        (("experience", "import", "nowhere.jsonl"), "cannot read nowhere.jsonl", "- for stdin"),
        (("experience", "dance"), "dance", "commands: list, start"),
        (("experience", "values", "--axis", "mood"), "no axis 'mood'", "root_cause"),
    ],
)
def test_what_is_wrong_is_told_with_the_choices(run: Call, args: tuple[str, ...], message: str, hint: str) -> None:
    ran = run(*args)
    assert ran.code in (2, 3), ran.err
    assert message in ran.err
    assert hint in ran.err
    assert ran.out == ""


def test_closing_twice_and_several_open_ones(run: Call) -> None:
    first, second = (run(*STARTED, "--quiet").out.strip() for _ in range(2))
    ambiguous = run("experience", "close", *ENDED)
    assert ambiguous.code == 2
    assert "2 experiences are open" in ambiguous.err
    assert first in ambiguous.err
    without = run("experience", "close", second)
    assert (without.code, "with an outcome" in without.err) == (2, True)
    assert "confirmed, falsified, abandoned" in without.err
    assert run("experience", "close", second, "--outcome", "confirmed").code == 2, "what came of it is missing"
    assert run("experience", "close", second, *ENDED).code == 0
    twice = run("experience", "close", second, *ENDED, "--json")
    assert twice.code == 2
    assert "is closed already: falsified" in twice.document["error"]
    assert run("experience", "close", *ENDED, "--quiet").out.strip() == first


@pytest.mark.slow
def test_in_and_out_as_json_lines(run: Call, tmp_path: Path) -> None:
    lines = DATA.read_text().splitlines()
    some = [line for line in lines if json.loads(line)["id"] in ("auth-default", "cache-profile")]
    (tmp_path / "in.jsonl").write_text("\n".join({*some, *lines[:9]}))
    added = run("experience", "import", str(tmp_path / "in.jsonl")).out
    assert added == "added\t10\nchanged\t0\nknown\t0\nfailed\t0\n"
    out = run("experience", "export").out
    assert len(out.splitlines()) == 10
    (tmp_path / "out.jsonl").write_text(out)
    again = run("experience", "import", str(tmp_path / "out.jsonl"), "--json").document
    assert again["imported"] == {"added": 0, "changed": 0, "known": 10, "failed": 0, "still_open": 0}
    some = run("experience", "export", "--domain", "security", "--outcome", "confirmed").out
    assert [json.loads(line)["id"] for line in some.splitlines()] == ["auth-default"]
    found = run("experience", "search", "avatar does not change after uploading a new one", "--limit", "1")
    assert found.out.split("\t")[1] == "cache-profile"


def test_a_bad_line_costs_itself_alone(run: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    good = {"goal": "g", "hypothesis": "h", "action": "a", "prediction": "p"}
    lines = [
        b"\xef\xbb\xbf" + json.dumps(good).encode(),
        b"no json",
        b"",
        json.dumps({**good, "domain": "cooking"}).encode(),
        b'"a text"',
        b"\xff\xfe",
        b'{"goal": "' + b"x" * 600_000 + b'"}',
        b"[" * 100_000,
        json.dumps({**good, "outcome": "confirmed", "result": "yes", "id": "last"}).encode(),
    ]
    stdin = io.TextIOWrapper(io.BytesIO(b"\n".join(lines)))
    monkeypatch.setattr(sys, "stdin", stdin)
    ran = run("experience", "import", "-", "--json")
    assert ran.code == 4
    assert ran.document["imported"] == {"added": 2, "changed": 0, "known": 0, "failed": 6, "still_open": 1}
    assert [each["line"] for each in ran.document["problems"]] == [2, 4, 5, 6, 7, 8]
    assert "line 4: there is no domain 'cooking'; choose one of: debugging" in ran.err
    assert "1 of them have no outcome yet" in ran.err
    assert run("experience", "show", "last").code == 0


def test_text_of_others_is_harmless_on_a_terminal(run: Call) -> None:
    id = run("experience", "start", *(part if part.startswith("-") else EVIL for part in STARTED[2:])).out.strip()
    for args in (
        ("list",),
        ("show", id),
        ("close", id, "--outcome", "abandoned", "--result", EVIL),
        ("search", "zebra"),
    ):
        ran = run("experience", *args)
        assert ran.code == 0, ran.err
        assert "\u202e" not in ran.out
        assert "\x07" not in ran.out
    shown = run("experience", "show", id).out
    assert "\\x1b]0;owned" in shown
    assert "\n            second\tline\n" in shown
    assert run("experience", "list", "--json").document["experiences"][0]["goal"] == EVIL


@pytest.mark.slow
def test_values(run: Call, tmp_path: Path) -> None:
    few = run("experience", "values")
    assert (few.code, few.out) == (0, "")
    assert few.err == "ctx: note: no values: there are no experiences\n"
    run(*STARTED, *ENDED)
    assert "too few: 1 experiences are closed, and 10 are needed" in run("experience", "values").err
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(each) for each in recurring()))
    imported = run("experience", "import", str(lines))
    assert "values were looked for anew" in imported.err
    listed = run("experience", "values", "--axis", "root_cause").out.splitlines()
    assert len(listed) == 5
    id, axis, size, text = listed[0].split("\t")
    assert (axis, int(size) >= 5, bool(text)) == ("root_cause", True, True)
    rebuilt = run("experience", "values", "--rebuild", "--json")
    assert id in {each["id"] for each in rebuilt.document["values"]}, "the same cluster, the same id"
    axes = {each["axis"]: each for each in rebuilt.document["rebuilt"]["axes"]}
    assert axes["surprise"]["note"].startswith("too few")
    assert "ctx: note: surprise: too few" in rebuilt.err
    quoted = next(each for each in rebuilt.document["values"] if each["id"] == id)["experience"]
    removed = run("experience", "remove", quoted, "--json").document
    assert removed["removed"] == [quoted]
    assert id in removed["removed_values"]
    with Index.open(tmp_path / "index") as index:
        assert id not in {value.id for value in index.experiences.values()}


def test_settings_add_choices(run: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_EXPERIENCE_DOMAINS", "data-science, ops")
    assert run(*STARTED, "--domain", "Data Science").code == 0
    assert run("experience", "list").out.split("\t")[2] == "data-science"
    monkeypatch.setenv("CTX_VALUES_AFTER", "-1")
    assert "values_after" in run("experience", "list").err
