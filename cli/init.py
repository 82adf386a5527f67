"""ctx init: a project's own index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.options import common
from research.errors import CtxError
from research.files import PROJECT_FILE, PROJECT_FOLDER, index_folder, user_config
from research.settings import load_settings

DETAILS = "Makes DIR/.ctx, readable by you alone. Commands run in DIR or below it then use that index."

EPILOG = """
\b
Examples:
  ctx init
  ctx init ~/papers
"""

WITHOUT = ("index",)  # it makes one, and is told where by DIR


def command(
    ctx: typer.Context,
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The project's folder. Default: this one.", show_default=False)
    ] = Path(),
) -> int:
    from cli.output import say, write_document, write_line
    from research.index import Index

    given = common(ctx)
    made = Index(folder.expanduser().absolute() / PROJECT_FOLDER)
    existed = not made.create()
    if given.as_json:
        write_document("ctx.init/1", {"index": str(made.root), "created": not existed})
    else:
        write_line(made.root)
    if not given.quiet:
        say("ctx: this index was there already" if existed else "ctx: made; add documents with: ctx ingest PATH")
        note = _other_index(made.root)
        if note:
            say(f"ctx: note: {note}")
    return 0


def _other_index(made: Path) -> str:
    """Which index commands use in this project, or beside it, though this one was made."""
    folder = made.parent
    try:
        settings = load_settings(folder=folder)
        used = index_folder(settings, folder)
        outer = index_folder(settings, folder.parent)
    except CtxError:  # whatever it is, the next command tells it
        return ""
    if used != made:
        why = "CTX_INDEX is set" if os.environ.get("CTX_INDEX") else f"set in {PROJECT_FILE} or {user_config()}"
        return f"commands here use {used}, not this one ({why})"
    if outer != made and outer.name == PROJECT_FOLDER:
        return f"it lies inside another project, whose index {outer} stays in use outside {folder}"
    return ""
