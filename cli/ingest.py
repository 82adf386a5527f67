"""ctx ingest and watch: PDFs, source code and commits into the index, once or whenever a folder changes."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ingest as ingesting
from cli.call import Call, orderly_end
from cli.options import CodeOption, CommitsOption, NoImagesOption, WaitOption
from cli.output import complain, say, write, write_document
from cli.progress import LogObserver, observer_for
from ingest import PdfFilter, changes
from research.errors import CtxError, NothingFoundError, SomeFilesFailedError, StoppedError, UsageError
from research.reports import amount, page_line, places
from research.settings import Ocr, OcrEngine
from research.text import one_line

if TYPE_CHECKING:
    from ingest import CommitsSummary, IngestSummary
    from research.index import Index

_SCHEMES = ("http", "https", "ftp", "s3", "file")
_KINDS = 6  # of files that were passed over, named in a line


def ingest(
    call: Call,
    path: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="PDF files, or folders of them; source code with --code.", show_default=False
        ),
    ] = None,
    *,
    code: CodeOption = False,
    commits: CommitsOption = None,
    wait: WaitOption = 0.0,
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
        ),
    ] = None,
    visual: Annotated[
        str | None,
        typer.Option(
            "--visual",
            metavar="MODEL|regions|off|auto",
            help="What sees the pages: a ColPali-family model (hub name or folder), or their visible text (regions)."
            " Default: auto, which keeps the index's own.",
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
    no_images: NoImagesOption = False,
) -> int:
    """Folders are searched to the bottom. Files that have not changed are skipped, changed ones replace their old self,
    renamed ones keep their id. Those that are gone are told, and removed with --prune: only from the folders given, and
    not from one that is entirely empty, for a drive that is not mounted looks like that. A run that was stopped goes on
    where it was when it is started again.

    --code takes source files instead of PDFs: their functions, classes and methods (Python, JavaScript, TypeScript, Go,
    Rust, Java, C, C++; other languages by lines). What .gitignore names, what others wrote and what no person did
    (generated, minified, large files) is passed over and counted; keys and passwords in code are masked.

    --commits takes the history of a repository, read with git: messages, authors by name, paths, functions. Each run
    reads what is new; commits that no branch leads to any more go; with --prune those of a repository that is gone go,
    too.

    A page on which the reading process dies or hangs is tried twice and then given up: the rest of its file is in the
    index, and the exit code is 4. The next run tries it again if the process was killed; a page that ran out of its
    time waits until the file changes, or for --retry.

    Examples:
      ctx ingest ./docs
      ctx ingest report.pdf appendix.pdf --json
      ctx ingest ./docs --wait 60
      ctx ingest ./docs --prune
      ctx ingest ./scans --ocr-language deu+eng
      ctx ingest ./slides --visual ModernVBERT/colmodernvbert
      ctx ingest ./src --code
      ctx ingest --commits .
    """
    from cli.progress import LogObserver, observer_for

    paths, repositories = _files(path or ()), [Path(each) for each in commits or ()]
    if not paths and not repositories:
        raise UsageError("missing argument 'PATH...'", hint="name files or folders: ctx ingest PATH")
    settings = call.settings(
        ocr=ocr.value if ocr else None,
        ocr_engine=ocr_engine.value if ocr_engine else None,
        ocr_language=ocr_language,
        visual=visual,
        device=device,
        images=False if no_images else None,
    )
    index = call.index_of(settings)
    summary, history = ingesting.IngestSummary(), None
    with orderly_end(), observer_for(call) as observer:
        run: dict[str, Any] = {"settings": settings, "observer": observer, "wait": wait, "prune": prune}
        if paths:
            take = ingesting.ingest_code if code else ingesting.ingest
            summary = take(index, paths, follow_links=follow_links, retry=retry, **run)
        if repositories and not summary.interrupted:
            history = ingesting.ingest_commits(index, repositories, **run)
    if call.as_json:
        more = {"commits": history.to_dict()} if history else {}
        write_document("ctx.ingest/2", {"index": str(index.root), **summary.to_dict(), **more})
    elif not call.quiet:
        if paths:
            _write_summary(summary)
        for each in history.repositories if history else ():
            if each.result == "read":
                counts = {
                    "added": each.added,
                    "removed": each.removed,
                    "in the index from another copy": each.elsewhere,
                }
                words = [f"{name} {count:,}" for name, count in counts.items() if count]
                write(f"{one_line(each.path)}: {', '.join([*words, f'{each.commits:,} commits in the index'])}\n")
            elif each.result == "removed":
                write(f"{one_line(each.path)}: {amount(each.removed, 'commit')} removed\n")
    for note in notes_of(summary, told=isinstance(observer, LogObserver), prune=prune):
        call.say(note)
    for each in history.repositories if history else ():
        for note in each.notes:
            call.note(f"{one_line(each.path)}: {note}")
    return _verdict(call, summary, paths) or (commits_verdict(history, repositories, call.folder) if history else 0)


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
    name = shlex.quote(name if name.lower().endswith(".pdf") else f"{name or 'document'}.pdf")
    return f"download it first: curl -Lo {name} {shlex.quote(url)}; then: ctx ingest {name}"


def _write_summary(summary: IngestSummary) -> None:
    write(f"{counts_line(summary) or ('nothing finished' if summary.interrupted else 'nothing to do')}\n")
    if summary.code:
        pieces, embedded = amount(summary.code.units, "piece"), f"{summary.code.embedded:,} embedded"
        write(f"{pieces} of code, {embedded}, {summary.seconds:.1f} s\n")
        return
    ocr = f", {summary.ocr_pages} read by OCR" if summary.ocr_pages else ""
    seen = f", {summary.visual_pages} seen by the visual model" if summary.visual_pages else ""
    speed = f", {summary.pages / summary.seconds:.1f} pages/s" if summary.pages and summary.seconds > 0 else ""
    pages, chunks = amount(summary.pages, "page"), amount(summary.chunks, "chunk")
    write(f"{pages}{ocr}{seen}, {chunks}, {summary.seconds:.1f} s{speed}\n")


def counts_line(summary: IngestSummary, *, without: Collection[str] = ()) -> str:
    """`added 2, unchanged 7`: what became of the files, empty if there is nothing to tell."""
    counts = {name: summary.count(name) for name in ("added", "replaced", "renamed", "unchanged")}
    counts |= {"copies": summary.count("copy"), "failed": summary.count("failed")}
    counts["removed"] = len(summary.removed) + (len(summary.code.removed) if summary.code else 0)
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count and name not in without)


def notes_of(summary: IngestSummary, *, told: bool, prune: bool) -> Iterator[str]:
    """What else there is to say, once: where warnings and failures were `told` as they came, only the rest."""
    if not told:
        for outcome in summary.files:
            yield from (f"warning: {outcome.path}: {warning}" for warning in outcome.warnings)
        yield from (f"given up: {page_line(page)}" for page in summary.failed_pages)
        yield from (f"failed: {outcome.path}: {outcome.reason}" for outcome in summary.failed)
    if kinds := summary.passed_over:
        named = [f"{kind or 'without ending'} {count}" for kind, count in list(kinds.items())[:_KINDS]]
        other = sum(list(kinds.values())[_KINDS:])
        yield f"passed over {sum(kinds.values())}: {', '.join(named + [f'other {other}'] * bool(other))}"
    if summary.links_not_followed:
        links = _first_of(summary.links_not_followed)
        yield f"warning: links out of the folder were not followed ({links}); --follow-links takes them"
    if summary.dangling_links:
        yield f"warning: links lead nowhere ({_first_of(summary.dangling_links)})"
    for folder in summary.empty_folders:
        remedy = f"ctx remove {shlex.quote(f'{folder}/*')}"
        yield (
            f"note: {folder} is empty, as it is when a drive is not mounted; what was read from it is kept"
            f" (to remove it: {remedy})"
        )
    if summary.gone and not prune:
        are, they, them = ("file is", "it", "it") if len(summary.gone) == 1 else ("files are", "they", "them")
        remedy = f"{they} will be found until you remove {them}: --prune"
        yield f"note: {len(summary.gone)} {are} gone ({_first_of(summary.gone)}); {remedy}"
    if summary.waiting_pages:
        yield f"note: {places(summary.waiting_pages)} given up earlier, not tried in this run; --retry tries again"
    if summary.code and summary.code.syntax_errors:
        yield f"note: {amount(summary.code.syntax_errors, 'file')} with syntax errors; the rest of each is taken"
    if summary.code and summary.code.secrets:
        yield f"note: {amount(summary.code.secrets, 'secret')} masked: what looks like a key or a password is not kept"


def _first_of(names: list[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _again(words: Sequence[str | Path], folder: str | None) -> str:
    """The command that goes on with a run; no path in it can be taken for an option."""
    safe = [f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in words]
    return shlex.join(["ctx", "ingest", *safe, *([] if folder is None else ["--index", folder])])


def _verdict(call: Call, summary: IngestSummary, paths: list[Path]) -> int:
    """The closing line on stderr, where there is something to say, and the exit code."""
    again = _again([*paths, *(["--code"] if summary.code else [])], call.folder)
    error: CtxError | None = None
    if summary.interrupted:
        kept = summary.count("added") + summary.count("replaced")
        done = f"{amount(kept, 'file' if summary.code else 'document')} of this run {'is' if kept == 1 else 'are'} kept"
        pending, unit = (summary.code.pending, "piece") if summary.code else (summary.pending_chunks, "chunk")
        waiting = f"{amount(pending, unit)} {'waits' if pending == 1 else 'wait'} for vectors"
        if summary.pending_ocr:
            waiting += f", {amount(summary.pending_ocr, 'page')} for OCR"
        error = StoppedError(f"interrupted; {done}, {waiting}", hint=f"go on with: {again}")
    elif summary.failed:
        others = "the others are in the index" if len(summary.failed) < len(summary.files) else "nothing was added"
        error = SomeFilesFailedError(
            f"{len(summary.failed)} of {amount(len(summary.files), 'file')} failed; {others}",
            hint=_next_step(summary, again),
        )
    elif summary.failed_pages:
        named = places(summary.failed_pages)
        error = SomeFilesFailedError(
            f"{named} given up; the rest of the documents is in the index", hint=_next_step(summary, again)
        )
    elif summary.visual_error:
        error = CtxError(f"the visual side was left as it was: {summary.visual_error}", hint=summary.visual_hint)
    return _complained(error)


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


def commits_verdict(summary: CommitsSummary, repositories: Sequence[Path], folder: str | None) -> int:
    """The closing line on stderr, where there is something to say, and the exit code."""
    error: CtxError | None = None
    failed = summary.failed
    if summary.interrupted:
        again = _again([word for each in repositories for word in ("--commits", str(each))], folder)
        kept = f"{amount(sum(each.added for each in summary.repositories), 'commit')} of this run kept"
        error = StoppedError(f"interrupted; what was read is kept ({kept})", hint=f"go on with: {again}")
    elif len(failed) == 1 and len(summary.repositories) == 1:
        error = CtxError(one_line(failed[0].reason), hint=one_line(failed[0].hint))
    elif failed:
        for each in failed:
            hint = f" ({one_line(each.hint)})" if each.hint else ""
            say(f"ctx: failed: {one_line(each.path)}: {one_line(each.reason)}{hint}")
        count = f"{len(failed)} of {len(summary.repositories)} repositories"
        error = SomeFilesFailedError(f"{count} could not be read; the others are in the index")
    return _complained(error)


def _complained(error: CtxError | None) -> int:
    if error is None:
        return 0
    complain(error, as_json=False)
    return error.exit_code


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
                summary = ingesting.ingest(
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
