"""ctx backup: the index in one file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.options import common, index_for

DETAILS = """
The file is a plain zip: the catalog with every page, chunk and vector, and the page images. Chroma's files are not in
it; they are built again on restore. An ingest may run meanwhile: the backup holds the documents complete at its start.
"""

EPILOG = """
\b
Examples:
  ctx backup papers.ctx.zip
  ctx backup /media/disk/papers.ctx.zip --no-images --force
"""


def command(
    ctx: typer.Context,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")],
    no_images: Annotated[
        bool, typer.Option("--no-images", help="Leave out the page images; the next ingest draws them again.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> int:
    from cli.output import say, write_document, write_line
    from cli.running import orderly_end

    given = common(ctx)
    opened = index_for(given)
    with orderly_end():
        done = opened.admin.backup(file.expanduser().absolute(), images=not no_images, force=force)
    if given.as_json:
        write_document("ctx.backup/1", {"index": str(opened.root), **asdict(done)})
        return 0
    write_line(done.file)
    if not given.quiet:
        say(
            f"ctx: {done.documents:,} documents, {done.pages:,} pages, {done.images:,} image files,"
            f" {done.size_bytes / 1e6:,.1f} MB; bring it back with: ctx restore FILE"
        )
    return 0
