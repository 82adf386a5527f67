"""ctx version: which ctx this is."""

from __future__ import annotations

import typer

from cli.options import common

DETAILS = ""

EPILOG = """
\b
Examples:
  ctx version
  ctx version --json | jq -r .version
"""

WITHOUT = ("index",)


def command(ctx: typer.Context) -> int:
    import platform

    from cli.output import version_line, write, write_document
    from research import __version__

    if common(ctx).as_json:
        write_document("ctx.version/1", {"version": __version__, "python": platform.python_version()})
    else:
        write(version_line())
    return 0
