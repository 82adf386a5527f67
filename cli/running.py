"""Ctrl-C and SIGTERM alike: the first ends a run in good order, the second at once.

`--wait` with or without a number, for the commands that write.

Which index a command uses, and why that one.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from cli.options import Common, index_of, settings_for
from research.files import PROJECT_FOLDER
from research.settings import given_settings

if TYPE_CHECKING:
    from research.index import Index


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


FOR_EVER = -1.0

_NUMBER = re.compile(r"-?\d+(\.\d*)?")


class WaitCommand(TyperCommand):
    """Lets `--wait` stand without a number, which Typer's options cannot."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, expand_bare_wait(args))


def expand_bare_wait(args: list[str]) -> list[str]:
    """`--wait` without a number after it becomes `--wait=-1`."""
    expanded: list[str] = []
    for position, arg in enumerate(args):
        if arg == "--":
            return expanded + args[position:]
        follower = args[position + 1] if position + 1 < len(args) else ""
        bare = arg == "--wait" and not _NUMBER.fullmatch(follower)
        expanded.append(f"--wait={FOR_EVER}" if bare else arg)
    return expanded


@dataclass(frozen=True, slots=True)
class Location:
    index: Index
    why: str


def locate(given: Common) -> Location:
    index = index_of(settings_for(given))
    said = given_settings({"index": given.index}).get("index")
    if said is not None and said.value:
        why = said.where if said.where.startswith(("--", "CTX_")) else f"set in {said.where}"
    elif index.root.name == PROJECT_FOLDER:
        why = "the nearest .ctx upward"
    else:
        why = "the default; no .ctx here or above"
    return Location(index, why)
