"""ctx help: the help of ctx, or of one command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

DETAILS = "`ctx help ask` is `ctx ask --help`."

EPILOG = """
\b
Examples:
  ctx help
  ctx help ask
"""

WITHOUT = ("index", "as_json")


def _command_names(ctx: Any, incomplete: str) -> list[str]:
    root = ctx.find_root()
    return [name for name in root.command.list_commands(root) if name.startswith(incomplete)]


def command(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="COMMAND", help="The command to tell of.", show_default=False, autocompletion=_command_names
        ),
    ] = None,
) -> int:
    from cli.output import write

    root: Any = ctx.find_root()
    if name is None:
        write(root.get_help() + "\n")
        return 0
    _, found, _ = root.command.resolve_command(root, [name])
    with type(ctx)(found, parent=root, info_name=name) as told:
        write(found.get_help(told) + "\n")
    return 0
