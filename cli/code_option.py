"""Source code at the command line: `ctx ingest PATH --code`, `ctx remove --code PATH`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.output import write, write_document, write_line
from research.errors import NothingFoundError, UsageError
from research.reports import amount
from research.visible_text import one_line

if TYPE_CHECKING:
    from ingest.report import IngestSummary


def write_code(summary: IngestSummary) -> None:
    """What a run came to, for people."""
    from cli.run_summary import counts_line

    assert summary.code is not None
    shown = counts_line(summary)
    write(f"{shown or ('nothing finished' if summary.interrupted else 'nothing to do')}\n")
    pieces, embedded = amount(summary.code.units, "piece"), f"{summary.code.embedded:,} embedded"
    write(f"{pieces} of code, {embedded}, {summary.seconds:.1f} s\n")


def code_notes(summary: IngestSummary) -> Iterator[str]:
    """What else there is to say of it."""
    if summary.code is None:
        return
    if summary.code.syntax_errors:
        yield f"note: {amount(summary.code.syntax_errors, 'file')} with syntax errors; the rest of each is taken"
    if summary.code.secrets:
        yield f"note: {amount(summary.code.secrets, 'secret')} masked: what looks like a key or a password is not kept"


def remove_code(index: Path, paths: Sequence[str], *, as_json: bool, dry_run: bool) -> int:
    """Take the code of files and folders out, whether these are still there or not; they are not touched."""
    from ingest.code.run import remove_paths
    from research.index import Index

    if dry_run:
        raise UsageError("--dry-run is for documents", hint="ctx list tells which code there is")
    removed = remove_paths(Index(index).paths, [Path(path) for path in paths])
    if as_json:
        listed = [{"path": path, "files": files, "units": units} for path, files, units in removed]
        write_document("ctx.remove/2", {"removed": [], "removed_code": listed})
    for path, files, units in removed if not as_json else ():
        write_line("removed", f"{amount(units, 'piece')} of code, {amount(files, 'file')}", one_line(path))
    if not any(files for _, files, _ in removed):
        raise NothingFoundError("no code of these paths is in the index", hint="see what is with: ctx list")
    return 0
