"""ctx watch: an index that keeps in step with folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_of, settings_for

if TYPE_CHECKING:
    from cli.options import Common
    from ingest.report import IngestSummary
    from ingest.watch import PdfFilter
    from research.index import Index

DETAILS = """
Ingests the folders, and again whenever PDFs in them come, change or go; documents whose files are gone are removed.
Ends with Ctrl-C. A run takes the settings of `ctx ingest`: OCR, images and models come from ctx.toml or CTX_*.

Each run that did something is a line on stdout; with --json a document, one a line, as `ctx ingest --json` prints it.
"""

EPILOG = """
\b
Examples:
  ctx watch ./docs
  ctx watch ./papers ./reports --keep
  ctx watch /mnt/share/docs --poll
"""


def command(
    ctx: typer.Context,
    *,
    folder: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Folders to follow.")],
    keep: Annotated[bool, typer.Option("--keep", help="Keep documents whose files are gone.")] = False,
    poll: Annotated[bool, typer.Option("--poll", help="Look again and again; for network drives.")] = False,
) -> int:
    from cli.output import say
    from cli.signals import orderly_end
    from ingest.watch import PdfFilter, changes
    from research.errors import UsageError

    given = common(ctx)
    index = index_of(settings_for(given))
    for path in folder:
        if not path.is_dir():
            raise UsageError(f"not a folder: {path}", hint="ctx watch follows folders; for a file: ctx ingest FILE")
    wanted = PdfFilter(folder)
    with orderly_end():
        try:
            _follow(index, folder, wanted, given, keep=keep)
            if not given.quiet:
                say(f"ctx: watching {', '.join(map(str, folder))}; Ctrl-C ends it")
            for _ in changes(folder, wanted, poll=poll):
                _follow(index, folder, wanted, given, keep=keep)
        except KeyboardInterrupt:
            if not given.quiet:
                say("ctx: stopped watching")
    return 0


def _follow(index: Index, folders: list[Path], wanted: PdfFilter, given: Common, *, keep: bool) -> None:
    """One run. Folders without PDFs are no fault here: they may come."""
    from cli.progress import observer_for
    from cli.waiting import FOR_EVER
    from ingest.run import ingest
    from research.errors import NothingFoundError

    try:
        with observer_for(quiet=given.quiet, as_json=given.as_json) as observer:
            summary = ingest(index, folders, observer=observer, wait=FOR_EVER, prune=not keep)
    except NothingFoundError:
        return
    wanted.remember(file.path for file in summary.files)
    _tell(summary, given, str(index.root))
    if summary.interrupted:
        raise KeyboardInterrupt


def _tell(summary: IngestSummary, given: Common, root: str) -> None:
    from cli.output import write, write_document
    from cli.views import counts_line

    if given.as_json:
        write_document("ctx.ingest/2", {"index": root, **summary.to_dict()})
    elif (done := counts_line(summary, without=("unchanged", "copies"))) and not given.quiet:
        write(f"{done}\n")
