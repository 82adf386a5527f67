"""ctx reindex: every derived index built anew from the catalog."""

from __future__ import annotations

import time
from dataclasses import asdict

import typer

from cli.ingest import WaitCommand
from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, WaitOption, common, index_for

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
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.output import write, write_document
    from cli.signals import orderly_end
    from research.store.upkeep.reindex import reindex

    given = common(ctx, index, quiet)
    paths = index_for(given)
    started = time.monotonic()
    with orderly_end():
        done = reindex(paths, wait=wait)
    seconds = time.monotonic() - started
    if as_json:
        fields = {"index": str(paths.root), **asdict(done), "seconds": round(seconds, 3)}
        write_document("ctx.reindex/1", fields)
    elif not given.quiet:
        write(f"full text of {done.pages:,} pages, {done.text_records:,} chunks and {done.visual_records:,} pages")
        write(f" in the collections, {seconds:.1f} s\n")
    return 0
