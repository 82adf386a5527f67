"""ctx watch: an index that keeps in step with folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call, orderly_end
from cli.ingest import counts_line, notes_of
from cli.output import write
from cli.progress import LogObserver, observer_for
from ingest import PdfFilter, changes, ingest
from research.errors import CtxError, NothingFoundError, UsageError

if TYPE_CHECKING:
    from ingest import IngestSummary
    from research.index import Index

_FOR_EVER = -1.0


def watch(
    call: Call,
    folder: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Folders to follow.")],
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep documents whose files are gone.")] = False,
    poll: Annotated[bool, typer.Option("--poll", help="Look again and again; for network drives.")] = False,
) -> int:
    """Ingests the folders, and again whenever PDFs in them come, change or go; documents whose files are gone are
    removed, unless a drive is no longer mounted. A file that cannot be read is told and stops nothing. A run takes the
    settings of `ctx ingest`: OCR, images and models come from ctx.toml or CTX_*. Ctrl-C ends it, with exit code 0.

    Each run that did something is a line on stdout; with --json a document a line, as `ctx ingest --json` prints it.

    Examples:
      ctx watch ./docs
      ctx watch ./papers ./reports --keep
      ctx watch /mnt/share/docs --poll
    """
    index = call.index_of(call.settings())
    for path in folder:
        if not path.is_dir():
            raise UsageError(f"not a folder: {path}", hint="ctx watch follows folders; for a file: ctx ingest FILE")
    wanted = PdfFilter(folder, index.root)
    follower = _Follower(call, index, folder, wanted, keep=keep)
    with orderly_end():
        try:
            follower.run()
            call.say(f"watching {', '.join(map(str, folder))}; Ctrl-C ends it")
            for _ in changes(folder, wanted, poll=poll):
                follower.run()
        except KeyboardInterrupt:
            call.say("stopped watching")
    return 0


class _Follower:
    """Runs, and tells of each what is new."""

    def __init__(self, call: Call, index: Index, folders: list[Path], wanted: PdfFilter, *, keep: bool) -> None:
        self._call = call
        self._index = index
        self._folders = folders
        self._wanted = wanted
        self._keep = keep
        self._lost: tuple[list[str], list[str]] = ([], [])  # what was told of last

    def run(self) -> None:
        """One run. Folders without PDFs are no fault here: they may come."""
        for folder in self._folders:
            if not folder.is_dir():
                raise CtxError(f"the folder is gone: {folder}", hint="nothing was removed; watch it when it is back")
        try:
            with observer_for(self._call) as observer:
                summary = ingest(
                    self._index,
                    self._folders,
                    observer=observer,
                    wait=_FOR_EVER,
                    prune=not self._keep,
                    known_folders=self._wanted.folders,
                )
        except NothingFoundError:
            return
        self._wanted.remember(file.path for file in summary.files)
        self._tell(summary, told=isinstance(observer, LogObserver))
        if summary.interrupted:
            raise KeyboardInterrupt

    def _tell(self, summary: IngestSummary, *, told: bool) -> None:
        lost = (summary.gone, summary.empty_folders)
        done = counts_line(summary, without=("unchanged",))
        if not done and lost == self._lost:
            return
        self._lost = lost
        if self._call.as_json:
            document = {"schema": "ctx.ingest/2", "index": str(self._index.root), **summary.to_dict()}
            write(json.dumps(document) + "\n")
        elif done and not self._call.quiet:
            write(f"{done}\n")
        for note in notes_of(summary, told=told, prune=not self._keep):
            self._call.say(note)
