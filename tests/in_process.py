"""The real command in this process: what it prints, how it ends, and nothing of it left behind.

A process of its own costs half a second before it does anything, and ten where a model is loaded. Whatever is not
about processes (signals, descriptors, the way Python starts) is tested this way.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
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
    with _environment(env or {}), chdir(cwd or Path.cwd()), redirect_stdout(out), redirect_stderr(err):
        code = main(args)
    return Ran(code, _text(out), _text(err))


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(more)
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
