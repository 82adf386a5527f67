"""ctx reindex: every derived index built anew from the catalog."""

from __future__ import annotations

import time
from dataclasses import asdict

import typer

from cli.options import WaitOption, common, index_for
from cli.running import WaitCommand

DETAILS = """
Full-text search and the Chroma collections are rebuilt from what the catalog holds: no file is read and nothing is
embedded again. Questions are answered meanwhile. Stopped in the middle, it leaves the old ones in use.
"""

EPILOG = """
\b
Examples:
  ctx reindex
  ctx reindex --wait --index ~/papers/.ctx
"""

COMMAND_CLASS = WaitCommand


def command(
    ctx: typer.Context,
    *,
    wait: WaitOption = 0.0,
) -> int:
    from cli.output import write, write_document
    from cli.running import orderly_end

    given = common(ctx)
    opened = index_for(given)
    started = time.monotonic()
    with orderly_end():
        done = opened.admin.reindex(wait=wait)
    seconds = time.monotonic() - started
    if given.as_json:
        fields = {"index": str(opened.root), **asdict(done), "seconds": round(seconds, 3)}
        write_document("ctx.reindex/1", fields)
    elif not given.quiet:
        write(f"full text of {done.pages:,} pages, {done.text_records:,} chunks and {done.visual_records:,} pages")
        write(f" in the collections, {seconds:.1f} s\n")
    return 0
