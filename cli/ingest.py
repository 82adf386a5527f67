"""ctx ingest: PDFs into the index."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_of, settings_for
from cli.running import WaitCommand
from research.errors import UsageError
from research.settings import Ocr, OcrEngine

if TYPE_CHECKING:
    from ingest import IngestSummary

DETAILS = """
Folders are searched to the bottom. Files that have not changed are skipped, changed ones replace their old self,
renamed ones keep their id. Those that are gone are told, and removed with --prune: only from the folders given, and
not from one that is entirely empty, for a drive that is not mounted looks like that. A run that was stopped goes on
where it was when it is started again.

--code takes source files instead of PDFs: their functions, classes and methods (Python, JavaScript, TypeScript, Go,
Rust, Java, C, C++; other languages by lines). What .gitignore names, what others wrote and what no person did
(generated, minified, large files) is passed over and counted; keys and passwords in code are masked.

--commits takes the history of a repository, read with git: messages, authors by name, paths, functions. Each run reads
what is new; commits that no branch leads to any more go; with --prune those of a repository that is gone go, too.

A page on which the reading process dies or hangs is tried twice and then given up: the rest of its file is in the
index, and the exit code is 4. The next run tries it again if the process was killed; a page that ran out of its time
waits until the file changes, or for --retry.
"""

EPILOG = """
\b
Examples:
  ctx ingest ./docs
  ctx ingest report.pdf appendix.pdf --json
  ctx ingest ./docs --wait 60
  ctx ingest ./docs --retry
  ctx ingest ./docs --prune
  ctx ingest ./scans --ocr-engine rapidocr
  ctx ingest ./scans --ocr-language deu+eng
  ctx ingest ./slides --visual ModernVBERT/colmodernvbert
  ctx ingest ./src --code
  ctx ingest --commits .
"""

_SCHEMES = ("http", "https", "ftp", "s3", "file")

COMMAND_CLASS = WaitCommand


def command(
    ctx: typer.Context,
    *,
    path: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="PDF files, or folders of them; source code with --code.", show_default=False
        ),
    ] = None,
    code: Annotated[bool, typer.Option("--code", help="PATH is source code: take its functions and classes.")] = False,
    commits: Annotated[
        list[str] | None,
        typer.Option(
            "--commits",
            metavar="REPO",
            help="The history of a git repository: what HEAD and its local branches lead to.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="[SECONDS]",
            help="Wait for another ingest to end, for ever or this long.",
            show_default=False,
        ),
    ] = 0.0,
    ocr: Annotated[
        Ocr | None,
        typer.Option(
            "--ocr",
            help="OCR: auto reads pages without text and large pictures, force every page of new files. Default: auto.",
            show_default=False,
        ),
    ] = None,
    ocr_engine: Annotated[
        OcrEngine | None,
        typer.Option("--ocr-engine", help="What reads them. Default: auto, tesseract if it is installed."),
    ] = None,
    ocr_language: Annotated[
        str | None,
        typer.Option(
            "--ocr-language",
            metavar="LANGUAGE",
            help="What the pages are written in, as tesseract names it: deu, deu+eng. Default: eng.",
            show_default=False,
        ),
    ] = None,
    visual: Annotated[
        str | None,
        typer.Option(
            "--visual",
            metavar="MODEL|regions|off|auto",
            help="What sees the pages: a ColPali-family model (hub name or folder), or their visible text (regions)."
            " Default: auto, which keeps the index's own.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="DEVICE", help="Where a visual model runs: auto, cpu, cuda, cuda:N, mps."),
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links that lead out of the folders given.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try again the pages and files that were given up and wait.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose files are gone from the folders given.")
    ] = False,
    no_images: Annotated[bool, typer.Option("--no-images", help="Draw no page images; saves disk.")] = False,
) -> int:
    from cli.output import say, write_document
    from cli.progress import (
        LogObserver,
        code_notes,
        commits_verdict,
        note_commits,
        notes_of,
        observer_for,
        write_commits,
    )
    from cli.running import orderly_end
    from ingest import IngestSummary

    given = common(ctx)
    paths, repositories = _files(path or ()), [Path(each) for each in commits or ()]
    if not paths and not repositories:
        raise UsageError("missing argument 'PATH...'", hint="name files or folders: ctx ingest PATH")
    settings = settings_for(
        given,
        ocr=ocr.value if ocr else None,
        ocr_engine=ocr_engine.value if ocr_engine else None,
        ocr_language=ocr_language,
        visual=visual,
        device=device,
        images=False if no_images else None,
    )
    folder = index_of(settings)
    summary, history = IngestSummary(), None
    with orderly_end(), observer_for(quiet=given.quiet, as_json=given.as_json) as observer:
        if paths:
            summary = _taker(code=code)(
                folder,
                paths,
                settings=settings,
                observer=observer,
                wait=wait,
                follow_links=follow_links,
                retry=retry,
                prune=prune,
            )
        if repositories and not summary.interrupted:
            from ingest import ingest_commits

            history = ingest_commits(folder, repositories, settings=settings, observer=observer, wait=wait, prune=prune)
    if given.as_json:
        more = {"commits": history.to_dict()} if history else {}
        write_document("ctx.ingest/2", {"index": str(folder.root), **summary.to_dict(), **more})
    elif not given.quiet:
        if paths:
            _write_summary(summary)
        if history:
            write_commits(history)
    if not given.quiet:
        for note in (*notes_of(summary, told=isinstance(observer, LogObserver), prune=prune), *code_notes(summary)):
            say(f"ctx: {note}")
        if history:
            note_commits(history)
    verdict = _verdict(summary, paths, given.index)
    return verdict or (commits_verdict(history, repositories, given.index) if history else 0)


def _taker(*, code: bool) -> Callable[..., IngestSummary]:
    if code:
        from ingest import ingest_code

        return ingest_code
    from ingest import ingest

    return ingest


def _files(words: Sequence[str]) -> list[Path]:
    """The paths that were typed. An address is none, unless a file or folder bears such a name."""
    for word in words:
        scheme, colon, rest = word.partition("://")
        if colon and scheme.lower() in _SCHEMES and not os.path.lexists(word):
            raise UsageError(f"{word} is an address; ctx reads files", hint=_instead_of(scheme.lower(), word, rest))
    return [Path(word) for word in words]


def _instead_of(scheme: str, url: str, rest: str) -> str:
    """The command to type in place of `ctx ingest URL`."""
    from urllib.parse import unquote

    rest = re.split("[?#]", rest, maxsplit=1)[0]
    if scheme == "file":
        return f"name the file: ctx ingest {shlex.quote(unquote(rest))}"
    name = rest.rstrip("/").rpartition("/")[2].lstrip("-.")
    name = name if name.lower().endswith(".pdf") else f"{name or 'document'}.pdf"
    name = shlex.quote(name)
    return f"download it first: curl -Lo {name} {shlex.quote(url)}; then: ctx ingest {name}"


def _write_summary(summary: IngestSummary) -> None:
    if summary.code:
        from cli.progress import write_code

        write_code(summary)
        return
    from cli.output import write
    from cli.progress import counts_line
    from research.reports import amount

    shown = counts_line(summary)
    speed = f", {summary.pages / summary.seconds:.1f} pages/s" if summary.pages and summary.seconds > 0 else ""
    write(f"{shown or ('nothing finished' if summary.interrupted else 'nothing to do')}\n")
    ocr = f", {summary.ocr_pages} read by OCR" if summary.ocr_pages else ""
    seen = f", {summary.visual_pages} seen by the visual model" if summary.visual_pages else ""
    pages, chunks = amount(summary.pages, "page"), amount(summary.chunks, "chunk")
    write(f"{pages}{ocr}{seen}, {chunks}, {summary.seconds:.1f} s{speed}\n")


def _as_argument(path: Path) -> str:
    """The path so that it cannot be taken for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _verdict(summary: IngestSummary, paths: list[Path], index: str | None) -> int:
    """The closing line on stderr, where there is something to say, and the exit code."""
    from cli.output import complain
    from research.errors import CtxError, SomeFilesFailedError, StoppedError
    from research.reports import amount, places

    error: CtxError | None = None
    again = ["ctx", "ingest", *map(_as_argument, paths), *(["--code"] if summary.code else [])]
    again += [] if index is None else ["--index", index]
    if summary.interrupted:
        kept = summary.count("added") + summary.count("replaced")
        kept_words = f"{amount(kept, 'file' if summary.code else 'document')} of this run"
        kept_words += f" {'is' if kept == 1 else 'are'} kept"
        pending, unit = (summary.code.pending, "piece") if summary.code else (summary.pending_chunks, "chunk")
        waiting = f"{amount(pending, unit)} {'waits' if pending == 1 else 'wait'} for vectors"
        if summary.pending_ocr:
            waiting += f", {amount(summary.pending_ocr, 'page')} for OCR"
        error = StoppedError(
            f"interrupted; {kept_words}, {waiting}",
            hint=f"go on with: {shlex.join(again)}",
        )
    elif summary.failed:
        others = "the others are in the index" if len(summary.failed) < len(summary.files) else "nothing was added"
        error = SomeFilesFailedError(
            f"{len(summary.failed)} of {amount(len(summary.files), 'file')} failed; {others}",
            hint=_next_step(summary, shlex.join(again)),
        )
    elif summary.failed_pages:
        named = places(summary.failed_pages)
        error = SomeFilesFailedError(
            f"{named} given up; the rest of the documents is in the index", hint=_next_step(summary, shlex.join(again))
        )
    elif summary.visual_error:
        error = CtxError(f"the visual side was left as it was: {summary.visual_error}", hint=summary.visual_hint)
    if error is None:
        return 0
    complain(error, as_json=False)
    return error.exit_code


def _next_step(summary: IngestSummary, again: str) -> str:
    codes = {file.code for file in summary.failed} | {page.code for page in summary.failed_pages}
    if "internal" in codes:
        return f"this is a bug in ctx, please report it with the log of: {again} --retry --log-file ctx.log"
    if "killed" in codes:
        return f"what was killed is tried again by: {again}"
    if "timeout" in codes:
        return f"what ran out of its time waits until it changes, or for: {again} --retry"
    if summary.failed:
        return "the reasons stand above; --json lists them for scripts"
    return f"try again with: {again} --retry"
