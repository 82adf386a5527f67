"""The version, as `ctx --version` prints it."""

from __future__ import annotations

from research import __version__


def version_line() -> str:
    return f"ctx {__version__}\n"
