"""Ctrl-C and SIGTERM alike: the first ends a run in good order, the second at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Raise KeyboardInterrupt for the first signal and leave the second to the system's default."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def end(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    for number in _SIGNALS:
        # A shell starts background jobs with SIGINT ignored, and that is to stay so.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_signals() -> Iterator[None]:
    """Inside `orderly_end`: a signal that comes in this block waits for its end; the second is not held."""
    held: list[int] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)

    for number in _SIGNALS:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if held:
        raise KeyboardInterrupt
