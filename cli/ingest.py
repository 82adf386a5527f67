"""ctx ingest: PDFs into the index."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, common, index_of, settings_for

if TYPE_CHECKING:
    from ingest.report import IngestSummary, PageOutcome

DETAILS = """
Folders are searched to the bottom. Files that have not changed are skipped, changed ones replace their old self,
renamed ones keep their id. A run that was stopped goes on where it was when it is started again.

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
  ctx ingest ./scans --ocr-engine rapidocr
  ctx ingest ./scans --ocr-language deu+eng
  ctx ingest ./slides --visual ModernVBERT/colmodernvbert
"""

FOR_EVER = -1.0


class Ocr(StrEnum):
    auto = "auto"
    off = "off"
    force = "force"


class OcrEngine(StrEnum):
    auto = "auto"
    tesseract = "tesseract"
    rapidocr = "rapidocr"


_NUMBER = re.compile(r"-?\d+(\.\d*)?")


class WaitCommand(TyperCommand):
    """Lets `--wait` stand without a number, which Typer's options cannot."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spell_out_wait(args))


COMMAND_CLASS = WaitCommand


def spell_out_wait(args: list[str]) -> list[str]:
    """`--wait` without a number after it becomes `--wait=-1`."""
    spelled: list[str] = []
    for position, arg in enumerate(args):
        if arg == "--":
            return spelled + args[position:]
        follower = args[position + 1] if position + 1 < len(args) else ""
        bare = arg == "--wait" and not _NUMBER.fullmatch(follower)
        spelled.append(f"--wait={FOR_EVER}" if bare else arg)
    return spelled


def command(
    ctx: typer.Context,
    *,
    path: Annotated[list[Path], typer.Argument(metavar="PATH...", help="PDF files, or folders of them.")],
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
        typer.Option("--device", metavar="DEVICE", help="Where a visual model runs: auto, cpu, cuda, mps."),
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links that lead out of the folders given.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try again the pages and files that were given up and wait.")
    ] = False,
    no_images: Annotated[bool, typer.Option("--no-images", help="Draw no page images; saves disk.")] = False,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.log import shown_log
    from cli.output import write_document
    from cli.progress import observer_for
    from cli.signals import orderly_end
    from ingest.run import ingest

    given = common(ctx, index, quiet)
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
    wants_log = debug or bool(ctx.find_root().params.get("debug"))
    with orderly_end(), shown_log(wants_log), observer_for(quiet=given.quiet, as_json=as_json) as observer:
        summary = ingest(
            path, folder, settings=settings, observer=observer, wait=wait, follow_links=follow_links, retry=retry
        )
    if as_json:
        write_document("ctx.ingest/1", {"index": str(folder.root), **summary.to_dict()})
    elif not given.quiet:
        _write_summary(summary)
    return _verdict(summary, path, given.index)


def _write_summary(summary: IngestSummary) -> None:
    from cli.given_up import page_line
    from cli.output import write
    from cli.terminal import one_line

    counts = {
        "added": summary.count("added"),
        "replaced": summary.count("replaced"),
        "renamed": summary.count("renamed"),
        "unchanged": summary.count("unchanged"),
        "copies": summary.count("copy"),
        "failed": summary.count("failed"),
    }
    shown = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    speed = f", {summary.pages / summary.seconds:.1f} pages/s" if summary.pages and summary.seconds > 0 else ""
    write(f"{shown or ('nothing finished' if summary.interrupted else 'nothing to do')}\n")
    ocr = f", {summary.ocr_pages} read by OCR" if summary.ocr_pages else ""
    seen = f", {summary.visual_pages} seen by the visual model" if summary.visual_pages else ""
    write(f"{summary.pages} pages{ocr}{seen}, {summary.chunks} chunks, {summary.seconds:.1f} s{speed}\n")
    for outcome in summary.files:
        for warning in outcome.warnings:
            write(f"warning: {one_line(outcome.path)}: {one_line(warning)}\n")
    if summary.links_not_followed:
        first = one_line(summary.links_not_followed[0])
        more = f" and {len(summary.links_not_followed) - 1} more" if len(summary.links_not_followed) > 1 else ""
        write(f"warning: links out of the folder were not followed ({first}{more}); --follow-links takes them\n")
    if summary.dangling_links:
        first = one_line(summary.dangling_links[0])
        more = f" and {len(summary.dangling_links) - 1} more" if len(summary.dangling_links) > 1 else ""
        write(f"warning: links lead nowhere ({first}{more})\n")
    for page in summary.failed_pages:
        write(f"given up: {one_line(page_line(page))}\n")
    if summary.waiting_pages:
        write(f"note: {_waiting(summary.waiting_pages)}\n")
    for outcome in summary.failed:
        write(f"failed: {one_line(outcome.path)}: {one_line(outcome.reason)}\n")


def _waiting(pages: list[PageOutcome]) -> str:
    from cli.given_up import places
    from cli.terminal import one_line

    return f"{one_line(places(pages))} given up earlier, not tried in this run; --retry tries again"


def _as_argument(path: Path) -> str:
    """The path so that it cannot be taken for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _verdict(summary: IngestSummary, paths: list[Path], index: str | None) -> int:
    """The closing line on stderr, where there is something to say, and the exit code."""
    import shlex

    from cli.app import StoppedError
    from cli.given_up import places
    from cli.output import complain
    from research.errors import CtxError, SomeFilesFailedError

    error: CtxError | None = None
    again = ["ctx", "ingest", *map(_as_argument, paths), *([] if index is None else ["--index", index])]
    if summary.interrupted:
        kept = summary.count("added") + summary.count("replaced")
        waiting = f"{summary.pending_chunks} chunks wait for vectors"
        if summary.pending_ocr:
            waiting += f", {summary.pending_ocr} pages for OCR"
        error = StoppedError(
            f"interrupted; {kept} documents of this run are kept, {waiting}",
            hint=f"go on with: {shlex.join(again)}",
        )
    elif summary.failed:
        others = "the others are in the index" if len(summary.failed) < len(summary.files) else "nothing was added"
        error = SomeFilesFailedError(
            f"{len(summary.failed)} of {len(summary.files)} files failed; {others}",
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
        return f"this is a bug in ctx, please report it; to see where: {again} --retry --debug"
    if "killed" in codes:
        return f"what was killed is tried again by: {again}"
    if "timeout" in codes:
        return f"what ran out of its time waits until it changes, or for: {again} --retry"
    if summary.failed:
        return "the reasons stand above; --json lists them for scripts"
    return f"try again with: {again} --retry"
