"""Write docs/commands.md: the help of every command, as the commands print it. `python -m tools.build_docs`.

A test holds the file to what this makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from cli.app import COMMANDS, Group, load_command
from cli.main import main

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
_WIDTH = "80"
_COMMON = ("--json", "--index", "--quiet", "--debug", "--log-file", "--log-level", "--as", "-h,")


def commands_page() -> str:
    """The whole page."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        return "\n".join(_lines())
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _lines() -> Iterator[str]:
    yield "# Commands\n"
    yield "What `--help` prints, made by `python -m tools.build_docs`. Every command also has `--json`, `--index DIR`,"
    yield "`--quiet`, `--debug`, `--log-file FILE` and `--log-level`, and those that show what is in the index have"
    yield "`--as NAME[@TENANT]`.\n"
    yield from _help()
    for title, commands in COMMANDS.items():
        yield f"## {title}\n"
        for name in commands:
            yield f"### ctx {name}\n"
            yield from _help(name)
            command = load_command(name)
            for verb in command.list_commands(None) if isinstance(command, Group) else ():
                yield f"#### ctx {name} {verb}\n"
                yield from _help(name, verb)


def _help(*words: str) -> Iterator[str]:
    with redirect_stdout(StringIO()) as printed:
        main([*words, "--help"])
    yield "```text"
    common = False
    for line in printed.getvalue().strip().splitlines():
        if words and line.startswith("  -"):
            common = line.split()[0] in _COMMON
        common = common and bool(line)
        if not common:
            yield line.rstrip()
    yield "```\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(commands_page(), encoding="utf-8")
