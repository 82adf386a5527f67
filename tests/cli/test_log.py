"""The log: silent unless asked for, private, and without a word of a document or a question below DEBUG."""

from __future__ import annotations

import logging
import os
import resource
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from cli.log import started
from research import __version__
from research.observe import NAME, in_full, logger_of

QUESTION = "zanzibar housing"
PAGE = "the text of a page"
FEIGNED = "2026-01-01T00:00:00.000Z INFO ctx.cli[1]: all is well"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "ctx.log"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ctx status` fails as nobody foresaw, and the exceptions quote a page."""
    pages: dict[str, str] = {}

    def fail(*_: object) -> None:
        try:
            _ = pages[PAGE]
        except KeyError as error:
            raise ZeroDivisionError(PAGE) from error

    monkeypatch.setattr("cli.upkeep._chosen_by", fail)


@pytest.mark.parametrize("args", ["--log-file {} status", "status --log-file {}", "status --log-file={}"])
def test_a_log_before_or_after_the_command(call, log: Path, args: str) -> None:
    assert call(*args.format(log).split()).code == 0
    first, last = log.read_text().splitlines()
    assert first.endswith(f"INFO ctx.cli[{os.getpid()}]: ctx {__version__} begins: status")
    assert "INFO ctx.cli" in last
    assert "ends: exit code 0, " in last


def test_a_variable_asks_for_it_and_an_option_for_another(call, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = log.with_name("other.log")
    monkeypatch.setenv("CTX_LOG", str(log))
    monkeypatch.setenv("CTX_LOG_LEVEL", "WARNING")
    assert call("status").err == "", "known variables are not told as misspelt"
    assert log.read_text() == "", "the level"
    assert call("status", "--log-file", str(other), "--log-level", "info").code == 0
    assert "begins: status" in other.read_text()
    assert log.read_text() == ""
    monkeypatch.setenv("CTX_LOG", "~/home.log")
    Path.home().mkdir()
    assert call("status").code == 0
    assert (Path.home() / "home.log").exists()


def test_it_is_private_and_added_to(call, log: Path) -> None:
    before = os.umask(0)
    try:
        call("status", "--log-file", str(log))
    finally:
        os.umask(before)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    call("status", "--log-file", str(log))
    assert log.read_text().count("begins: status") == 2


def _link(path: Path) -> None:
    path.with_name("elsewhere").write_text("mine")
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_link, "it is a link"),
        (os.mkfifo, "No such device"),
        (Path.mkdir, "Is a directory"),
    ],
)
def test_only_a_file_of_its_own_is_written(call, log: Path, make: Callable[[Path], None], why: str) -> None:
    make(log)
    ran = call("status", "--log-file", str(log), "--json")
    assert ran.code == 2
    assert f"the log {log} cannot be opened: {why}" in ran.err
    assert ran.document["exit_code"] == 2
    if log.is_symlink():
        assert log.read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "variable", "words"),
    [
        (["--log-file", "/nowhere/x.log"], "", "cannot be opened: No such file or directory"),
        (["--log-file", "/dev/null"], "", "cannot be opened: it is no file"),
        (["--log-level", "debug"], "", "--log-level says how much is logged, and not where"),
        (["--log-file", "{}", "--log-level", "loud"], "", "'loud' is not one of debug, info, warning, error"),
        (["--log-file", "{}"], "loud", "CTX_LOG_LEVEL: cannot be 'loud'"),
        (["--log-file"], "", "option '--log-file' requires an argument"),
    ],
)
def test_a_log_that_cannot_be(
    call, log: Path, monkeypatch: pytest.MonkeyPatch, *, args: list[str], variable: str, words: str
) -> None:
    monkeypatch.setenv("CTX_LOG_LEVEL", variable)
    ran = call("status", *(arg.format(log) for arg in args))
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_no_question_and_no_page_below_debug(call, log: Path, filled: Path) -> None:
    asking = ["--index", str(filled), "--log-file", str(log)]
    assert call("ask", QUESTION, *asking).code == 0
    assert call("ask", "xyzzy", "--mode", "lexical", *asking).code == 3
    assert call(QUESTION, *asking).code == 2, "a question without `ask`"
    assert call("show", QUESTION, "1", *asking).code == 3
    assert call("ask", QUESTION, "--mode", "none", *asking).code == 2
    told = log.read_text()
    for text in ("zanzibar", "housing", "xyzzy", "subprime"):
        assert text not in told
    assert told.count("ERROR ctx.cli") == 3, "an answer of nothing is no error"
    assert "UsageError\n" in told
    call(QUESTION, "--log-level", "debug", *asking)
    assert f"UsageError: there is no command '{QUESTION}'" in log.read_text()


def test_a_leg_that_fails_leaves_its_traceback(call, log: Path, copied: Path) -> None:
    with closing(sqlite3.connect(copied / "catalog.sqlite3")) as catalog, catalog:
        catalog.execute("DELETE FROM page_words_data")
    ran = call("ask", QUESTION, "--index", str(copied), "--mode", "text", "--log-file", str(log))
    assert ran.code == 0, "the others answer"
    assert "lexical search failed" in ran.err
    assert "rewriting failed (DatabaseError)" in ran.err
    told = log.read_text()
    assert ": the lexical leg failed: DatabaseError\n" in told
    assert "WARNING ctx.search" in told
    assert "    Traceback (most recent call last):\n" in told
    assert QUESTION not in told


@pytest.mark.usefixtures("broken")
def test_an_unexpected_error_leaves_its_traceback_and_says_where(call, log: Path) -> None:
    ran = call("status", "--log-file", str(log))
    assert ran.code == 1
    assert "unexpected error: ZeroDivisionError" in ran.err
    assert f"hint: where it happened stands in {log}" in ran.err
    told = log.read_text()
    assert "ERROR ctx.cli" in told
    assert "    Traceback (most recent call last):\n" in told
    assert ", in fail\n" in told
    assert told.index("builtins.KeyError") < told.index("builtins.ZeroDivisionError")
    assert PAGE not in told
    call("status", "--log-file", str(log), "--log-level", "debug")
    assert f"ZeroDivisionError: {PAGE}" in log.read_text()
    assert "--log-file FILE" in call("status").err


def test_a_name_cannot_feign_a_record(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What pytest captures cannot hold a lone surrogate.
    monkeypatch.setattr(logging.getLogger(NAME), "propagate", False)
    with started(["--log-file", str(log)], {}):
        logger_of("ingest").warning("%s: given up", f"a\n{FEIGNED}\x1b[2J\udc80")
    first, second = log.read_text().splitlines()
    assert "WARNING ctx.ingest" in first
    assert second == f"    {FEIGNED}\\x1b[2J\\udc80: given up"


def test_words_that_may_quote_are_for_debug_alone(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*options: str) -> str:
        log.unlink(missing_ok=True)
        with started([*options, "--log-file", str(log)], {}):
            logger_of("ingest").error("page 3: internal", extra=in_full("page 3: KeyError: 'secret'"))
        return log.read_text()

    assert told().endswith("page 3: internal\n")
    assert told("--log-level", "debug").endswith("page 3: KeyError: 'secret'\n")
    assert capsys.readouterr().err == ""
    assert told("--debug").endswith("page 3: internal\n")
    assert capsys.readouterr().err == "ctx: log: page 3: KeyError: 'secret'\n"


def test_a_full_disk_ends_the_log_and_not_the_command(call, log: Path) -> None:
    log.write_text("full")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, before[1]))
    try:
        ran = call("status", "--log-file", str(log))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ran.code == 0
    assert ran.err == f"ctx: note: the log {log} cannot be written (File too large); ctx goes on without it\n"
    assert log.read_text() == "full"


def test_nothing_is_left_of_it_afterwards(call, log: Path) -> None:
    call("status", "--log-file", str(log), "--log-level", "debug", "--debug")
    logger = logging.getLogger("ctx")
    assert not [handler for handler in logger.handlers if type(handler).__module__ == "cli.log"]
    assert logger.level == logging.NOTSET
