"""`--wait` with or without a number, for the commands that write."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

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
