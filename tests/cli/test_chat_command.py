"""ctx chat: in a pipe and on a terminal, with follow-ups, memories, a model, and whatever else is typed."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.session import add_history, forget_history, load_history
from research.files import user_state
from research.index import Index
from tests.cli.conftest import EVIL_NAME
from tests.conftest import MEASURE
from tests.in_process import Ran
from tests.loopback import Call, Serving
from tests.network_guard import guarded

CAUSE, BANKS = "What caused the housing bubble to burst?", "And what did the banks hold?"
QUOTE = "The housing bubble burst when subprime mortgages defaulted."

PROMPT = "\n> "
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\].*?(?:\x07|\x1b\\\\)")

Chat = Callable[..., Ran]


@pytest.fixture
def chat(call: Callable[..., Ran], copied: Path, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """`ctx chat` in a pipe, in this process, with these lines."""

    def run(*lines: str, args: tuple[str, ...] = ()) -> Ran:
        typed = io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")))
        monkeypatch.setattr(sys, "stdin", typed)
        return call("chat", "--index", str(copied), *args)

    return run


def test_in_a_pipe_it_answers_a_question_a_line(chat: Chat, copied: Path) -> None:
    ran = chat(CAUSE, "", BANKS, args=("--session", "s"))
    assert ran.code == 0
    first, second, rest = ran.out.split("\n\n")
    assert QUOTE in first
    assert "[1] crisis.pdf, page 2" in first
    assert "[1] crisis.pdf, page 2" in second
    assert rest == ""
    assert "searched with words of the question before" in ran.err
    assert "> " not in ran.out, "no prompt"
    with Index(copied) as index:
        assert [turn.question for turn in index.sessions.get("s")] == [CAUSE, BANKS]


def test_a_session_is_gone_on_with_and_each_has_its_own_name(chat: Chat, copied: Path) -> None:
    chat(CAUSE)
    chat(CAUSE)
    chat(CAUSE, args=("--session", "mine"))
    chat("/session other", BANKS, "/session mine", BANKS, args=("--session", "third"))
    with Index(copied) as index:
        names = [session.name for session in index.sessions.list()]
        assert len(names) == 4
        assert {"mine", "other"} < set(names)
        assert [turn.question for turn in index.sessions.get("mine")] == [CAUSE, BANKS]
        assert index.sessions.get("mine")[1].searched != BANKS
        assert index.sessions.get("other")[0].searched == BANKS


def test_what_else_can_be_typed(chat: Chat, copied: Path) -> None:
    ran = chat(
        CAUSE, "/sources", "/show 1", "/show 99", "/nonsense", "/help", "/quit", "never asked", args=("--explain",)
    )
    assert ran.code == 4, "two lines failed"
    assert "## Causes" in ran.out
    assert "/session NAME" in ran.out
    assert "its sources are 1 to" in ran.err
    assert "there is no /nonsense" in ran.err
    assert "searched: What caused" in ran.err
    assert "never asked" not in ran.out
    early = chat("/sources", "/show 1", "/open 1")
    assert early.err.count("there is no answer yet") == 3


def test_open_opens_the_page(
    call: Callable[..., Ran], sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(sample_index, tmp_path / "index")
    monkeypatch.setenv("CTX_VIEWER", f"touch {tmp_path}/opened-{{page}}")
    monkeypatch.setattr(sys, "stdin", io.StringIO("How long is parental leave under the 2025 handbook?\n/open 1\n"))
    ran = call("chat", "--index", str(root))
    assert "saltmarsh-handbook-2025.pdf at page 7" in ran.err
    while not (tmp_path / "opened-7").exists():
        time.sleep(0.01)


def test_forget_takes_the_conversation_away(chat: Chat, copied: Path) -> None:
    ran = chat(CAUSE, BANKS, "/forget", "/sources", args=("--session", "s"))
    assert "forgot 2 questions" in ran.err
    assert "there is no answer yet" in ran.err
    with Index(copied) as index:
        assert index.sessions.list() == []
    assert "there is no session" in chat("/forget", args=("--session", "s")).err


def test_what_was_told_stands_apart_from_documents(chat: Chat, copied: Path) -> None:
    with Index(copied) as index:
        index.memories.remember("Anna thinks that the housing bubble burst because of greed.")
        index.memories.remember("Ben thinks that the housing bubble burst in May.", tenant="ben")
    ran = chat(CAUSE)
    documents, _, told = ran.out.partition("Remembered, and from no document:\n")
    assert QUOTE in documents
    assert "because of greed" in told
    assert "because of greed" not in documents
    assert "in May" not in ran.out


def test_nothing_found_is_said_and_told_by_the_exit_code(chat: Chat, copied: Path) -> None:
    ran = chat("qwxz vbnm?")
    assert ran.code == 3
    assert "Nothing seems to answer this" in ran.out
    missing = chat(CAUSE, args=("--doc", "nobody.pdf"))
    assert missing.code == 4
    assert "nobody.pdf" in missing.err


def test_a_model_writes_and_is_told_the_question_before(
    chat: Chat, copied: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(lambda call: call.reply("The housing bubble burst when ", "subprime mortgages defaulted [1]."))
    monkeypatch.setenv("CTX_MODEL_URL", server.url)
    ran = chat(CAUSE, BANKS, args=("--session", "s", "--model", "m"))
    assert ran.out.startswith(
        "The housing bubble burst when subprime mortgages defaulted [1].\n[1] crisis.pdf, page 2\n"
    )
    assert "“" not in ran.out.splitlines()[0]
    sent = [call.body["messages"][-1]["content"] for call in server.calls if call.body]
    assert f"It goes on from the question before it: {CAUSE}" in sent[-1]
    with Index(copied) as index:
        assert [turn.model for turn in index.sessions.get("s")] == ["m", "m"]
    silent = chat(CAUSE, args=("--model", "m", "--no-answer"))
    assert QUOTE in silent.out


def test_text_of_others_cannot_drive_a_terminal(chat: Chat, copied: Path) -> None:
    with Index(copied) as index:
        index.memories.remember("zebra \x1b[2J\x9b31m \u202e told", speaker="evil")
    ran = chat("zebra", "/sources", "/show 1", "\x1b[31m\udcff zebra", args=("--session", "z"))
    for text in (ran.out, ran.err):
        assert not {"\x1b", "\x9b", "\u202e", "\x07"} & set(text)
    assert EVIL_NAME not in ran.out


def test_wrong_usage(call: Callable[..., Ran], copied: Path, tmp_path: Path) -> None:
    assert call("chat", "--index", str(tmp_path / "none")).code == 3
    assert "one line" in call("chat", "--index", str(copied), "--session", "a\nb").err
    assert call("chat", "--index", str(copied), "--json").code == 2


def test_the_history_of_a_session_is_its_owners_alone(tmp_path: Path) -> None:
    for number in range(3):
        add_history(tmp_path, "s", f"question\n{number}")
    add_history(tmp_path, "other/../s", "elsewhere")
    assert load_history(tmp_path, "s") == ["question 0", "question 1", "question 2"]
    files = list((user_state() / "chat").iterdir())
    assert len(files) == 2
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (user_state() / "chat").stat().st_mode & 0o777 == 0o700
    add_history(tmp_path, "s", "x" * 600_000)
    add_history(tmp_path, "s", "last")
    assert load_history(tmp_path, "s")[-1] == "last"
    forget_history(tmp_path, "s")
    assert load_history(tmp_path, "s") == []
    linked = user_state() / "chat" / files[0].name
    linked.unlink(missing_ok=True)
    linked.symlink_to(tmp_path / "target")
    for name in ("s", "other/../s"):
        add_history(tmp_path, name, "x")
    assert not (tmp_path / "target").exists(), "a link is not followed"


class Terminal:
    """A program on a terminal of its own, of 80 × 24."""

    def __init__(self, args: list[str], env: dict[str, str], *, online: bool) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, **MEASURE, "TERM": "xterm-256color", **env}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", *args] if online else guarded("-m", "cli.main", *args),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            process_group=0,
        )
        os.close(theirs)
        self.shown = ""

    def until(self, words: str) -> str:
        """What is shown until these words come after what was seen before."""
        begun = len(self.shown)
        while words not in self.shown[begun:]:
            try:
                self.shown += os.read(self._ours, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
            except OSError:  # it has ended
                raise AssertionError(self.shown) from None
        return self.shown[begun:]

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C. Not in the instant between the prompt and the wait for a key, in which Python does not notice it:
        when it has been asleep for a while, and not only waits for a core."""
        asleep, stat = 0, Path(f"/proc/{self.process.pid}/stat")
        while asleep < 10:
            asleep = asleep + 1 if stat.read_text().rpartition(")")[2].split()[0] == "S" else 0
            time.sleep(0.01)
        self.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def on_terminal(index: Path, *args: str, online: bool = False, **env: str) -> Iterator[Terminal]:
    """`online`: it may reach this machine."""
    terminal = Terminal(["chat", "--index", str(index), *args], env, online=online)
    try:
        yield terminal
    finally:
        terminal.close()


def test_on_a_terminal(copied: Path) -> None:
    with on_terminal(copied, "--session", "s", NO_COLOR="1", PAGER="cat") as terminal:
        assert "4 documents" in terminal.until(PROMPT)
        terminal.type(f"{CAUSE}\n")
        answer = terminal.until(PROMPT)
        plain = ESCAPES.sub("", answer)
        assert "“The housing bubble burst" in plain
        assert "[1] crisis.pdf p. 2" in plain
        assert "/sources" in plain or "/show 1" in plain
        assert not re.search(r"\x1b\[[34]\d", answer), "NO_COLOR"
        assert all(len(line) <= 80 for line in plain.splitlines())
        terminal.type(f"{BANKS}\n")
        assert "↪ searched with words" in terminal.until(PROMPT)
        terminal.interrupt()
        assert "Ctrl-C once more ends" in terminal.until(PROMPT)
        terminal.type("/show 1\n")
        assert "## Causes" in terminal.until(PROMPT)
        terminal.type("\x1b[A\x1b[A\n")  # up, up: the last question
        assert "crisis.pdf p. 2" in ESCAPES.sub("", terminal.until(PROMPT))
        terminal.type("\x04")
        terminal.until("go on with: ctx chat --session s")
        assert terminal.process.wait() == 0
    assert load_history(copied, "s") == [CAUSE, BANKS, BANKS]
    with on_terminal(copied, "--session", "s") as again:
        assert "3 questions so far" in again.until(PROMPT)
        again.interrupt()
        assert "once more" in again.until(PROMPT)
        again.interrupt()
        assert again.process.wait() == 0


@pytest.mark.slow
def test_ctrl_c_ends_the_answer_under_way_and_not_the_conversation(
    copied: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(call: Call) -> None:
        call.begin()
        call.say("The housing bubble burst ")
        server.over.wait(30)

    server = serving(slowly)
    monkeypatch.setenv("CTX_MODEL_URL", server.url)
    options = ("--session", "s", "--model", "m")
    with on_terminal(copied, *options, online=True) as terminal:
        terminal.until(PROMPT)
        terminal.type(f"{CAUSE}\n")
        terminal.until("bubble burst")
        terminal.interrupt()
        assert "[…]" in terminal.until(PROMPT)
        terminal.type("/quit\n")
        assert terminal.process.wait() == 0
    with Index(copied) as index:
        assert [turn.question for turn in index.sessions.get("s")] == [CAUSE]


def test_forgetting_on_a_terminal_asks_first(copied: Path) -> None:
    with on_terminal(copied, "--session", "s") as terminal:
        terminal.until(PROMPT)
        terminal.type(f"{CAUSE}\n")
        terminal.until(PROMPT)
        for said in ("n", "y"):
            terminal.type("/forget\n")
            terminal.until("[y/N]")
            terminal.type(f"{said}\n")
            told = terminal.until(PROMPT)
        assert "forgot 1 questions" in told
        terminal.type("/quit\n")
        assert terminal.process.wait() == 0
    assert load_history(copied, "s") == []
