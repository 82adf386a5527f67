"""`--full` through a pager: which, and what happens where there is none, it fails, or it is left early."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.output import page, pagers
from tests.cli.answers import without_escapes
from tests.in_process import Ran

FULL = ["ask", "housing bubble", "--full"]


@pytest.mark.parametrize(
    ("environment", "commands"),
    [
        ({"TERM": "xterm"}, [["less"], ["more"]]),
        ({"TERM": "xterm", "PAGER": "most -w 'a b'"}, [["most", "-w", "a b"]]),
        ({"TERM": "xterm", "PAGER": ""}, []),
        ({"TERM": "xterm", "PAGER": "cat"}, []),
        ({"TERM": "xterm", "PAGER": "less '"}, []),
        ({"TERM": "dumb", "PAGER": "less"}, []),
        ({}, []),
    ],
)
def test_which_pager(environment: dict[str, str], commands: list[list[str]]) -> None:
    assert pagers(environment) == commands


def test_what_is_no_terminal_gets_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    page("line\n" * 500)
    assert capsys.readouterr().out == "line\n" * 500


@pytest.fixture
def pager(tmp_path: Path) -> Callable[[str, str], Path]:
    """A program of this name and these lines of shell, which tells what it was given."""

    def make(name: str, script: str) -> Path:
        folder = tmp_path / "programs"
        folder.mkdir(exist_ok=True)
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    return make


@pytest.fixture
def full(on_terminal: Callable[..., Ran], filled: Path) -> Callable[..., Ran]:
    def run(**env: str) -> Ran:
        return on_terminal([*FULL, "--index", str(filled)], env=env, rows=12)

    return run


def test_pages_go_through_it_laid_out_and_coloured(full, pager, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    program = pager("my pager", f'printf "%s|" "$LESS" "$@" > "{kept}.args"; cat > "{kept}"')
    ran = full(PAGER=f"'{program}' -x '$(touch owned)'", NO_COLOR="")
    assert (ran.code, ran.out) == (0, "")
    assert Path(f"{kept}.args").read_text() == "R|-x|$(touch owned)|", "no shell reads it"
    assert not Path("owned").exists()
    shown = kept.read_text()
    assert "\x1b[1" in shown
    assert "\x1b]8;" not in shown, "an older less shows the escapes of links"
    plain = without_escapes(shown)
    assert plain.startswith("housing bubble\n")
    assert "[1] crisis.pdf p. 2" in plain
    assert "## Causes" not in plain
    assert re.search(r" · ctx open 1", plain)


def test_less_then_more_then_none(full, pager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGER", raising=False)
    less = pager("less", "echo less has $(wc -l)")
    pager("more", "echo more has $(wc -l)")
    system = os.environ["PATH"]
    python_only = {"PATH": str(less.parent)}
    assert full(PATH=f"{less.parent}:{system}").out.startswith("less has ")
    less.unlink()
    pager("more", "read first; echo more has it")  # of the shell alone: there is no wc on this PATH
    assert full(**python_only).out == "more has it\n"
    (less.parent / "more").unlink()
    assert "[1] crisis.pdf p. 2" in without_escapes(full(**python_only).out)


def test_without_a_pager_that_runs_the_text_is_shown(full) -> None:
    for chosen in ("/nowhere/pager", "env no-such-pager", ""):
        ran = full(PAGER=chosen)
        assert ran.code == 0, chosen
        assert "[1] crisis.pdf p. 2" in without_escapes(ran.out), chosen
        assert "Traceback" not in ran.out, chosen


def test_a_pager_that_is_left_early_is_no_error(full, pager) -> None:
    ran = full(PAGER=str(pager("early", "read first; echo $first; exit 3")))
    assert (ran.code, without_escapes(ran.out)) == (0, "housing bubble\n")


def test_ctrl_c_belongs_to_the_pager(spawn_on_terminal: Callable[..., Ran], pager, filled: Path) -> None:
    script = "trap 'echo stopped searching' INT; kill -INT 0; read first; echo $first"
    program = pager("searching", script)
    ran = spawn_on_terminal([*FULL, "--index", str(filled)], env={"PAGER": str(program)}, rows=12)
    assert ran.code == 0
    assert "housing bubble" in ran.out


def test_what_fits_the_screen_needs_none(on_terminal, filled: Path) -> None:
    args = ["ask", "housing bubble", "--index", str(filled)]
    shown = without_escapes(on_terminal(args, env={"PAGER": "false"}, rows=40).out)
    assert "[1] crisis.pdf p. 2 (ii) · The crisis > Causes\n" in shown


def test_an_answer_longer_than_the_screen_goes_through_it(on_terminal, pager, filled: Path) -> None:
    program = pager("counting", "echo pager has $(grep -c 'pdf p. ')")
    ran = on_terminal(["ask", "housing bubble", "--index", str(filled)], env={"PAGER": str(program)}, rows=4)
    assert (ran.code, ran.out) == (0, "pager has 3\n"), "those that fit less are counted"
