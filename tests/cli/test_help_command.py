"""ctx help and -V: what people type who know other tools."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cli.app import COMMANDS
from research import __version__
from tests.in_process import Ran

Call = Callable[..., Ran]


def test_help_alone(call: Call) -> None:
    assert call("help") == call("--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_is_its_own(call: Call, name: str) -> None:
    ran = call("help", name)
    assert (ran.code, ran.err) == (0, "")
    assert ran == call(name, "--help")


def test_help_of_nothing(call: Call) -> None:
    ran = call("help", "query")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean: ctx ask or ctx search" in ran.err


def test_the_version_in_short(call: Call) -> None:
    assert call("-V").out == call("--version").out == call("version").out == f"ctx {__version__}\n"
    assert call("--quiet", "-V").out == f"ctx {__version__}\n"
