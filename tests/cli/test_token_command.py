"""ctx token: tokens for others, made, listed and revoked."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.main import main
from research.governance import Principal
from research.service.tokens import TokenBook, default_store, read_tokens
from tests.in_process import Ran

Call = Callable[..., Ran]
ANN = ("new", "--principal", "ann", "--tenant", "lab")


@pytest.fixture
def made(call: Call, tmp_path: Path) -> Path:
    """An index without documents, which a server may fill."""
    assert call("init", str(tmp_path)).code == 0
    return tmp_path / ".ctx"


def test_a_token_is_printed_once_and_opens_its_index(call: Call, made: Path, filled: Path) -> None:
    ran = call("token", *ANN, "--index", str(made))
    token = ran.out.strip()
    assert (ran.code, ran.out) == (0, f"{token}\n")
    assert token not in ran.err
    assert ran.err.splitlines()[0].endswith("for ann of lab; it is not shown again")
    assert TokenBook(made, owner_file=None).caller_for(token) == Principal("ann", "lab", owner=False)
    assert TokenBook(filled, owner_file=None).caller_for(token) is None, "another index"
    kept = default_store().read_text()
    assert token not in kept
    assert token.removeprefix("ctx_") not in kept
    assert stat.S_IMODE(default_store().stat().st_mode) == 0o600
    assert stat.S_IMODE(default_store().parent.stat().st_mode) == 0o700


def test_those_of_an_index_are_listed_and_end(call: Call, made: Path, copied: Path) -> None:
    at = ("--index", str(made))
    first = call("token", *ANN, "--json", *at).document
    second = call("token", "new", "--principal", "bot", "--tenant", "ci", "--expires", "30", "--json", *at).document
    call("token", *ANN, "--index", str(copied))
    assert call("token", "--json", *at).document["tokens"] == [first["created"], second["created"]]
    assert first["created"]["expires_at"] is None
    lines = [line.split("\t") for line in call("token", "list", *at).out.splitlines()]
    assert [line[:3] for line in lines] == [
        [first["created"]["id"], "ann", "lab"],
        [second["created"]["id"], "bot", "ci"],
    ]
    book = TokenBook(made, owner_file=None)
    assert book.caller_for(first["token"]) is not None
    ran = call("token", "revoke", first["created"]["id"], *at)
    assert (ran.code, ran.out) == (0, f"{first['created']['id']}\n")
    assert book.caller_for(first["token"]) is None
    assert book.caller_for(second["token"]) == Principal("bot", "ci")
    again = call("token", "revoke", first["created"]["id"], second["created"]["id"], *at)
    assert again.code == 3, "one is gone already"
    assert book.caller_for(second["token"]) is not None, "and none was revoked"
    assert len(read_tokens(default_store())) == 2, "that of the other index stays"


def test_a_token_may_end_at_a_date(call: Call, made: Path) -> None:
    day = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
    at = ("--json", "--index", str(made))
    for expires in ("30", "30d", day):
        ends = call("token", *ANN, "--expires", expires, *at).document["created"]["expires_at"]
        assert abs(datetime.fromisoformat(ends) - datetime.now(UTC) - timedelta(days=30)) < timedelta(days=2), expires


def test_quiet_says_only_the_token(call: Call, made: Path) -> None:
    ran = call("token", *ANN, "--quiet", "--index", str(made))
    assert (ran.err, len(ran.out.split())) == ("", 1)
    assert call("token", "--quiet", "--index", str(made)).err == ""


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("new",), 2, "needs a principal and a tenant"),
        (("new", "--principal", "ann"), 2, "needs a principal and a tenant"),
        (("new", "--principal", "a b", "--tenant", "t"), 2, "'a b' cannot be a principal"),
        (("new", "--principal", "x" * 65, "--tenant", "t"), 2, "cannot be a principal"),
        (("new", "--principal", "a\x1b[31m", "--tenant", "t"), 2, "cannot be a principal"),
        ((*ANN, "--expires", "0"), 2, "cannot last 0 days"),
        ((*ANN, "--expires", "99999d"), 2, "cannot last 99999 days"),
        ((*ANN, "--expires", "2001-01-31"), 2, "cannot last -"),
        ((*ANN, "--expires", "soon"), 2, "--expires cannot be 'soon'"),
        ((*ANN, "more"), 2, "unexpected extra argument"),
        (("list", "--tenant", "t"), 2, "no such option: --tenant"),
        (("revoke",), 2, "needs the id"),
        (("revoke", "ffffffff"), 3, "no token with the id 'ffffffff'"),
        (("destroy",), 2, "no command 'destroy' of ctx token"),
    ],
)
def test_what_cannot_be_done(call: Call, made: Path, args: tuple[str, ...], code: int, message: str) -> None:
    ran = call("token", *args, "--index", str(made))
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert "hint: " in ran.err
    assert "\x1b" not in ran.err
    assert read_tokens(default_store()) == ()


def test_without_an_index(call: Call, tmp_path: Path) -> None:
    at = ("--index", str(tmp_path / "none"))
    assert call("token", "--json", *at).document["tokens"] == []
    assert call("token", *ANN, *at).code == 3
    assert not (tmp_path / "none").exists()
    assert not default_store().exists()


def test_two_processes_at_once_lose_nothing(made: Path) -> None:
    program = (
        "import sys; from cli.main import main\n"
        "for n in range(10): assert main(['token', 'new', '--principal', f'{sys.argv[1]}{n}', '--tenant', 't',"
        " '--index', sys.argv[2]]) == 0"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, name, str(made)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in ("a", "b")
    ]
    printed = [run.communicate()[0].decode().split() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    book = TokenBook(made, owner_file=None)
    callers = [book.caller_for(token) for tokens in printed for token in tokens]
    expected = [f"{name}{number}" for name in "ab" for number in range(10)]
    assert [caller and caller.name for caller in callers] == expected
    assert len({entry.id for entry in read_tokens(default_store())}) == 20


def test_the_log_knows_no_token(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    assert main(["token", *ANN, "--index", str(made), "--log-file", str(log), "--log-level", "debug"]) == 0
    token = capsys.readouterr().out.strip()
    assert "token" in log.read_text()
    assert token not in log.read_text()
