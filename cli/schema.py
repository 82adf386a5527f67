"""ctx schema: what the JSON of a command looks like."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import common

DETAILS = """
A JSON schema (draft 2020-12) of the document that `ctx NAME --json` prints. Without a name: the names there are.
Documents name their own in the field `schema`.
"""

EPILOG = """
\b
Examples:
  ctx schema
  ctx schema ask
  ctx schema ask | jq '.["$defs"].source.properties | keys'
"""

WITHOUT = ("index",)


def command(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A command's name, or error.", show_default=False)
    ] = None,
) -> int:
    import json

    from cli.output import write, write_line
    from cli.schemas import load, names
    from research.errors import NothingFoundError

    common(ctx)
    if name is None:
        for each in names():
            write_line(each)
        return 0
    if name not in names():
        raise NothingFoundError(f"there is no schema {name!r}", hint=f"there are: {', '.join(names())}")
    write(json.dumps(load(name), indent=2) + "\n")
    return 0
