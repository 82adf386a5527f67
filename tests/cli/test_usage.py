"""Help, wrong calls, and failures nobody foresaw: one line, the right exit code, never a traceback."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import cli
from cli.app import COMMANDS, load_command
from cli.main import main

NAMES = {name: short for group in COMMANDS.values() for name, (_, short) in group.items()}


def test_every_command_has_help_with_examples(call) -> None:
    for name, short in NAMES.items():
        command = load_command(name)
        verbs = command.list_commands(None) if hasattr(command, "sections") else []
        for words in ([name], *([name, verb] for verb in verbs)):
            ran = call(*words, "-h")
            assert (ran.code, ran.err) == (0, ""), words
            assert ran.out.startswith(f"Usage: ctx {' '.join(words)}")
            assert "{" not in ran.out.splitlines()[0], words
            assert "<list[" not in ran.out, words
            if not verbs or len(words) > 1:
                for said in ("Examples:\n    ctx ", "--log-file FILE", "--log-level"):
                    assert said in ran.out, words
        assert short in " ".join(call(name, "-h").out.split()), name
        assert call("help", name).out == call(name, "--help").out, name


def test_no_command_shows_the_help(call) -> None:
    ran = call()
    assert ran.code == 0
    assert ran.out == call("--help").out == call("help").out
    assert list(COMMANDS) == re.findall(r"^(\w+):$", ran.out, re.MULTILINE)[1:]
    for name, short in NAMES.items():
        assert re.search(rf"^  {name} +{re.escape(short)}$", ran.out, re.MULTILINE)
    assert "--install-completion" in ran.out


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["outline", "x.pdf"], "ctx outline is now: ctx show DOC --outline"),
        (["premortem", "debugging"], "ctx premortem is now: ctx experience premortem DOMAIN"),
        (["sessions", "show", "x"], "ctx sessions is now: ctx session list"),
        (["classify", "--proposals"], "ctx classify is now: ctx label set TARGET --level LEVEL"),
        (["reindex"], "ctx reindex is now: ctx doctor --reindex"),
        (["version"], "ctx version is now: ctx --version"),
        (["metrics"], "ctx metrics is now: ctx serve"),
        (["tag", "a.pdf", "tax"], "it is now: ctx tag add DOC TAG"),
        (["tag", "--remove", "a.pdf", "tax"], "it is now: ctx tag remove DOC TAG"),
        (["label", "a.pdf", "--status", "final"], "it is now: ctx label set TARGET --status WORD"),
        (["policy", "try", "memory:1", "--action", "send"], "it is now: --send"),
        (["ask", "q", "--max-sources", "3"], "it is now: the setting max_sources (CTX_MAX_SOURCES)"),
        (["ask", "q", "--model-url", "http://h"], "it is now: the setting model_url (CTX_MODEL_URL)"),
        (["search", "q", "--reranker", "off"], "it is now: the setting reranker (CTX_RERANKER)"),
    ],
)
def test_a_spelling_of_before_is_named_by_the_error_that_meets_it(call, typed: list[str], told: str) -> None:
    ran = call(*typed)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_no_option_is_described_twice() -> None:
    """Each flag is declared, and each help text written, in one place of the package."""
    flags: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    for file in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.Option", "typer.Argument"):
                flags.update(arg.value for arg in node.args if isinstance(arg, ast.Constant))
                texts.update(ast.unparse(word.value) for word in node.keywords if word.arg == "help")
    assert flags["--index"] == 1
    assert not [name for name, count in (flags + texts).items() if count > 1]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["askk", "q"], "there is no command 'askk'\nhint: did you mean: ctx ask"),
        (["frobnicate"], "hint: commands: ask, chat, search"),
        (["ask"], "missing argument 'QUESTION...'"),
        (["ask", ""], "the question is empty"),
        (["ask", " ", "\t"], "the question is empty"),
        (["ask", "q", "--max-tokens", "0"], "0 is too small; the least is 1"),
        (["ask", "q", "--max-tokens", "many"], "max_tokens must be a whole number, not 'many'"),
        (["search", "q", "--num-results", "9" * 40], "is too large"),
        (
            ["ask", "q", "--mode", "psychic"],
            "mode cannot be 'psychic'\nhint: choose one of: hybrid, text, visual, lexical, dense",
        ),
        (["ask", "q", "--frobnicate"], "no such option: --frobnicate"),
        (["ask", "q", "--doc"], "option '--doc' requires an argument"),
        (["ask", "q", "--index", " "], "--index needs a folder"),
        (["-5", "degrees"], "no such option: -5"),
        (["show"], "missing argument 'DOC'"),
        (["show", "x", "two"], "'two' names no pages"),
        (["ingest"], "missing argument 'PATH...'"),
        (["ingest", "x", "--wait=soon"], "'soon' is not a number"),
        (["remove", " "], "no index"),
    ],
)
def test_wrong_usage_is_one_line_and_a_hint(call, args: list[str], words: str) -> None:
    ran = call(*args)
    assert ran.code == (3 if args[0] == "remove" else 2)
    assert ran.out == ""
    assert words in ran.err
    first, second = ran.err.splitlines()
    assert first.startswith("ctx: error: ")
    assert second.startswith("hint: ")


def test_json_after_two_dashes_is_part_of_the_question(call, tmp_path: Path) -> None:
    ran = call("ask", "--index", str(tmp_path), "--", "what", "does", "--json", "do")
    assert (ran.code, ran.out) == (3, "")


def test_a_bad_settings_file_names_itself(call, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "ctx.toml").write_text("max_tokens = 'x'")
    monkeypatch.chdir(tmp_path)
    ran = call("ask", "q")
    assert ran.code == 2
    assert str(tmp_path / "ctx.toml") in ran.err


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("CTX_NUM_RESULTS", "9" * 20, "is too large; the most is 10000"),
        ("CTX_MAX_SOURCES", "0", "0 is too small; the least is 1"),
        ("CTX_DEVICE", "toaster", "device cannot be 'toaster'"),
    ],
)
def test_a_variable_is_held_to_the_same_bounds_as_a_flag(
    call, filled: Path, monkeypatch: pytest.MonkeyPatch, *, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    ran = call("ask", "housing", "--index", str(filled))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"ctx: error: {variable}: ")
    assert words in ran.err
    assert "\nhint: " in ran.err


@pytest.mark.parametrize("args", [["status"], ["list"], ["search", "housing"]])
def test_a_misspelt_variable_is_told_once(call, filled: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]) -> None:
    monkeypatch.setenv("CTX_MAX_TOKEN", "5")
    monkeypatch.setenv("CTX_SOMETHING_ELSE", "5")
    ran = call(*args, "--index", str(filled))
    note = "ctx: note: CTX_MAX_TOKEN is no setting; did you mean CTX_MAX_TOKENS?\n"
    assert ran.err.count("CTX_") == 2
    assert note in ran.err
    assert note not in call(*args, "--index", str(filled), "--quiet").err
    assert note not in call("--quiet", *args, "--index", str(filled)).err


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["ask", "x"]])
def test_a_system_it_does_not_run_on_is_told_at_once(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    assert main(args, system="nt") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ctx: error: ctx needs a POSIX system")
    assert captured.err.count("\n") == 1


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make `ctx status` raise."""

    def breaks(error: BaseException) -> None:
        def raise_it(*_: object) -> None:
            raise error

        monkeypatch.setattr("cli.upkeep._chosen_by", raise_it)

    return breaks


def test_an_unforeseen_error_is_one_line(call, broken) -> None:
    broken(ZeroDivisionError("by\nzero"))
    ran = call("status")
    assert ran.code == 1
    assert ran.err == (
        "ctx: error: unexpected error: ZeroDivisionError: by\\nzero\nhint: run again with --debug, or"
        " --log-file FILE, to see where\n"
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "/index/x"), "ctx: error: No space left on device: /index/x\n"),
        (OSError(28, "No space left on device"), "ctx: error: No space left on device\n"),
        (sqlite3.DatabaseError("malformed"), "ctx: error: the index cannot be read: malformed\nhint: check it with"),
    ],
)
def test_failures_of_the_machine_are_told_plainly(call, broken, error: Exception, words: str) -> None:
    broken(error)
    ran = call("status")
    assert ran.code == 1
    assert ran.err.startswith(words)


@pytest.mark.parametrize("args", [["status", "--debug"], ["--debug", "status"]])
def test_debug_shows_the_traceback(call, broken, args: list[str]) -> None:
    broken(ZeroDivisionError("by zero"))
    ran = call(*args)
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert "unexpected error" in ran.err


def test_out_of_memory_is_an_error_like_any_other(call, broken) -> None:
    broken(MemoryError())
    ran = call("status", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"] == "out of memory"


def test_ctrl_c_is_told_in_a_line(call, broken) -> None:
    broken(KeyboardInterrupt())
    ran = call("status")
    assert (ran.code, ran.err) == (130, "ctx: error: interrupted; nothing more was done\n")


def test_ctrl_c_before_there_is_a_command(call, monkeypatch) -> None:
    def stop(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.app.run", stop)
    ran = call("status")
    assert (ran.code, ran.err) == (130, "ctx: interrupted\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_stream_that_came_closed_leads_nowhere(closed: str, filled: Path) -> None:
    command = shlex.join([sys.executable, "-m", "cli.main", "show", "crisis.pdf", "1", "--index", str(filled)])
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("# The crisis") is (">&-" not in closed.replace("2>&-", ""))
    assert "error" not in done.stderr
