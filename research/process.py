"""Helper processes: how they are started, and that none outlives the process it works for."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import research

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 1.0
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # what the name of a variable that holds one ends in

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def has_said(stream: IO[bytes], seconds: float) -> bool:
    """Whether there is something to read, or its end, before so many seconds are over. (poll, because select takes no
    file of a number above 1023, which a server with many connections has.)"""
    waiting = select.poll()
    waiting.register(stream, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def environment_without_secrets() -> dict[str, str]:
    """Return the variables of this process without its keys, tokens and passwords."""
    return {name: value for name, value in os.environ.items() if not name.upper().endswith(_SECRET)}


def start_helper(
    module: str,
    arguments: Sequence[str] = (),
    *,
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    hears_ctrl_c: bool = True,
) -> subprocess.Popen[bytes]:
    """`python -m module PID arguments…`, with this process's id as its first argument for `die_with_parent`.

    The helper runs these sources and not others: -P keeps the folder the user stands in off its module path, which
    may hold anything, a json.py too. A crash inside compiled code leaves its place on stderr. One that does not hear
    Ctrl-C is in a process group of its own: its parent hears it and ends it. No key, token or password of the
    environment reaches a helper unless it is named in `environment`: some of them open hostile files.
    """
    home = str(Path(research.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-P", "-X", "faulthandler", "-m", module, str(os.getpid()), *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**environment_without_secrets(), **(environment or {}), "PYTHONPATH": home},
        process_group=None if hears_ctrl_c else 0,
    )


def die_with_parent(parent: int) -> None:
    """Called in a helper process: it is killed when its parent, known by its process id, has ended.

    On Linux by the kernel, which also ends one that hangs inside compiled code; elsewhere by a thread that looks.
    """
    if kill_with_parent():
        if os.getppid() != parent:  # it ended before the kernel was asked
            os.kill(os.getpid(), signal.SIGKILL)
        return
    threading.Thread(target=_look, args=(parent,), daemon=True).start()


def kill_with_parent() -> bool:
    """Ask the kernel to kill this process with its parent. False where that cannot be asked."""
    return _libc is not None and _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0


def _look(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
