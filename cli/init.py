"""ctx init: a project's own index."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli.options import DebugOption, JsonOption, QuietOption, common
from research.errors import IndexUnusableError
from research.settings import PROJECT_FOLDER
from research.store.files.paths import IndexPaths

DETAILS = "Makes DIR/.ctx, readable by you alone. Commands run in DIR or below it then use that index."

EPILOG = """
\b
Examples:
  ctx init
  ctx init ~/papers
"""

_PRIVATE = 0o700


def command(
    ctx: typer.Context,
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The project's folder. Default: this one.", show_default=False)
    ] = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.output import say, write_document, write_line
    from research.store.files.own_files import refuse_link

    given = common(ctx, None, quiet)
    paths = IndexPaths(folder.expanduser().absolute() / PROJECT_FOLDER)
    refuse_link(paths.root)
    existed = paths.root.is_dir()
    paths.create()
    _make_private(paths.root)
    if as_json:
        write_document("ctx.init/1", {"index": str(paths.root), "created": not existed})
    else:
        write_line(paths.root)
    if not given.quiet:
        say("ctx: this index was there already" if existed else "ctx: made; add documents with: ctx ingest PATH")
    return 0


def _make_private(folder: Path) -> None:
    try:
        if folder.stat().st_mode & 0o077:
            folder.chmod(_PRIVATE)
    except OSError as error:
        raise IndexUnusableError(
            f"cannot make {folder} private: {error.strerror or error}", hint=f"chmod 700 {shlex.quote(str(folder))}"
        ) from error
