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
    group = ctx.parent.command
    return [name for name in group.list_commands(ctx.parent) if name.startswith(incomplete)]


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

    above = ctx.parent
    if above is None:  # never: it is a command of ctx
        return 0
    if name is None:
        write(above.get_help() + "\n")
        return 0
    group: typer.core.TyperGroup = above.command  # type: ignore[assignment]
    _, found, _ = group.resolve_command(above, [name])
    if found is None:  # never: the group raises for a name it has not
        return 0
    with type(ctx)(found, parent=above, info_name=name) as told:
        write(found.get_help(told) + "\n")
    return 0
