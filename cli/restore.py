"""ctx restore: an index out of a backup."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import WaitOption, common, index_for
from cli.running import WaitCommand

if TYPE_CHECKING:
    pass

DETAILS = """
The backup is checked as a whole before anything is put in place, and what was there stays until it is replaced in one
step. Without --force only an empty or absent index is filled. The documents themselves are not in a backup and are
not needed to ask questions.
"""

EPILOG = """
\b
Examples:
  ctx restore papers.ctx.zip
  ctx restore papers.ctx.zip --index ~/papers/.ctx
  ctx restore papers.ctx.zip --force
"""

COMMAND_CLASS = WaitCommand


def command(
    ctx: typer.Context,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by ctx backup.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the documents of a filled index.")] = False,
    wait: WaitOption = 0.0,
) -> int:
    from cli.output import say, write_document, write_line
    from cli.running import orderly_end

    given = common(ctx)
    opened = index_for(given)
    with orderly_end():
        done = opened.admin.restore(file.expanduser().absolute(), force=force, wait=wait)
    if given.as_json:
        write_document("ctx.restore/1", {"index": str(opened.root), **asdict(done)})
    else:
        write_line(opened.root)
    if not given.quiet:
        say(f"ctx: {done.documents:,} documents, {done.pages:,} pages, {done.chunks:,} chunks are back")
        if done.kept_aside:
            say(f"ctx: the damaged catalog was kept as {done.kept_aside}")
        for name in done.foreign_encoders:
            say(f"ctx: it was filled by {name}, which is not part of ctx and is used only if you allow it")
    return 0
