"""A process that works for another must not outlive it, whatever becomes of that one."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 1.0

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent(parent: int) -> None:
    """Called in a helper process: it is killed when its parent, known by its process id, has ended.

    On Linux by the kernel, which also ends one that hangs inside compiled code; elsewhere by a thread that looks.
    """
    if kill_with_parent():
        if os.getppid() != parent:  # it ended before the kernel was asked
            os._exit(1)
        return
    threading.Thread(target=_look, args=(parent,), daemon=True).start()


def kill_with_parent() -> bool:
    """Ask the kernel to kill this process with its parent. False where that cannot be asked."""
    return _libc is not None and _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0


def _look(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)
