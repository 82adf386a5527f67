"""The real command in this process: what it prints, how it ends, and nothing of it left behind.

A process of its own costs half a second before it does anything, and ten where a model is loaded. Whatever is not
about processes (signals, descriptors, the way Python starts) is tested this way, also on a terminal.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """stdout as the one JSON document it must be."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run_in_process(*args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
    """`ctx ARGS` in a folder, with these variables besides those of the test."""
    from cli.main import main

    out, err = _stream(), _stream()
    with (
        _environment({**os.environ, **(env or {})}),
        chdir(cwd or Path.cwd()),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(args)
    return Ran(code, _text(out), _text(err))


def run_on_terminal(args: Sequence[str], *, typed: bytes, env: Mapping[str, str], columns: int, rows: int) -> Ran:
    """`ctx ARGS` with a terminal as its streams and as descriptors 0 to 2, which are those of what it starts too."""
    from cli.main import main

    ours, theirs = open_terminal(columns, rows)
    shown: list[bytes] = []
    reader = threading.Thread(target=lambda: shown.append(read_terminal(ours)))
    reader.start()
    with _environment(terminal_variables(env)):
        with _streams(theirs):
            os.write(ours, typed)
            code = main(args)
        reader.join()
    return Ran(code, shown[0].decode().replace("\r\n", "\n"), "")


def open_terminal(columns: int, rows: int) -> tuple[int, int]:
    """A new terminal: our end of it, and that of a program."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return ours, theirs


def terminal_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Those of this process and these; the size is the terminal's own."""
    given = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
    return {**given, "TERM": "xterm-256color", **env}


def read_terminal(ours: int) -> bytes:
    """All that is shown until no program has the terminal any more; closes it."""
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    return shown


@contextmanager
def _streams(terminal: int) -> Iterator[None]:
    """The terminal takes the place of stdin, stdout and stderr, and is closed at the end."""
    names = [f"{under}{name}{under}" for under in ("", "__") for name in ("stdin", "stdout", "stderr")]
    before = {name: getattr(sys, name) for name in names}
    kept = [os.dup(number) for number in range(3)]
    for number in range(3):
        os.dup2(terminal, number)
    os.close(terminal)
    for place, name in enumerate(names):
        number, mode = place % 3, "r" if place % 3 == 0 else "w"
        setattr(sys, name, os.fdopen(number, mode, 1, encoding="utf-8", closefd=False))
    try:
        yield
    finally:
        for name, stream in before.items():
            getattr(sys, name).close()
            setattr(sys, name, stream)
        for number, copy in enumerate(kept):
            os.dup2(copy, number)
            os.close(copy)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables and no others."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
