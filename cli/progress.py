"""What a person sees while a long command works: one line a stage, on stderr.

What a run of `ctx ingest` or `ctx watch` came to, in words.

Source code at the command line: `ctx ingest PATH --code`, `ctx remove --code PATH`.

Commits at the command line: `ctx ingest --commits REPO`, `ctx remove --commits REPO`.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cli.output import complain, console, say, write, write_document, write_line
from ingest import FileOutcome, Observer, PageOutcome
from research.errors import CtxError, NothingFoundError, SomeFilesFailedError, StoppedError, UsageError
from research.reports import amount
from research.text import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from ingest import CommitsSummary, IngestSummary, PageOutcome, RepositoryOutcome, Stage


T = TypeVar("T")

_WIDE, _NARROW = 76, 40  # columns: below, pages, rate, time left and name go; then the bar
_BAR, _SHORT_BAR = 14, 8
_BESIDE_NOTE = 33  # columns of a wide line beside its note and its name: label, bar, time left, what stands between
_LEAST_NOTE = 31  # columns: those of the other stages are as wide
_NAME, _LEAST_NAME = 40, 8
_STAGES: dict[Stage, tuple[str, str]] = {
    "embed": ("embed", "chunks"),
    "render": ("draw", "docs"),
    "ocr": ("OCR", "pages"),
    "visual": ("look", "pages"),
    "commits": ("history", "commits"),
}


@contextmanager
def observer_for(*, quiet: bool, as_json: bool) -> Iterator[Observer]:
    """A bar on a terminal; failures and warnings line by line in a log; only failures when quiet."""
    if quiet:
        yield LogObserver(warnings=False)
    elif as_json or not sys.stderr.isatty():
        yield LogObserver()
    else:
        with bars() as progress:
            yield BarObserver(progress)


def counted(items: Iterable[T], total: int, doing: str, unit: str, *, quiet: bool) -> Iterator[T]:
    """The same items, with a bar on a terminal that moves with each."""
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    with bars() as progress:
        task = progress.add_task(doing, total=total, note="", name="")
        for done, item in enumerate(items, start=1):
            progress.update(task, completed=done, note=f"{done}/{total} {unit}")
            yield item


class LogObserver(Observer):
    """Tells of failures and warnings as they happen, and of nothing else."""

    def __init__(self, *, warnings: bool = True) -> None:
        self._warnings = warnings

    def on_note(self, message: str) -> None:
        if self._warnings:
            say(f"ctx: {message}")

    def on_file(self, outcome: FileOutcome) -> None:
        if outcome.result == "failed":
            say(f"ctx: failed: {outcome.path}: {outcome.reason}")
        for warning in outcome.warnings if self._warnings else ():
            say(f"ctx: warning: {outcome.path}: {warning}")

    def on_warning(self, path: str, message: str) -> None:
        if self._warnings:
            say(f"ctx: warning: {path}: {message}")

    def on_failed_page(self, page: PageOutcome) -> None:
        from research.reports import page_line

        say(f"ctx: given up: {page_line(page)}")


class BarObserver(Observer):
    """Files are measured in bytes, because their pages are not known before they are opened."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._reading: TaskID | None = None
        self._steps: dict[str, TaskID] = {}
        self._started = self._clock()
        self._files = 0
        self._done = 0
        self._pages: dict[str, int] = {}  # by file; not every page of a file is told of
        self._bytes: dict[str, float] = {}

    def on_plan(self, files: int, size_bytes: int) -> None:
        self._started = self._clock()
        self._files = files
        self._reading = self._progress.add_task("read", total=max(1, size_bytes), note="", name="")

    def on_page(self, path: str, page: int, pages: int) -> None:
        self._pages[path] = page
        self._bytes[path] = _size(path) * page / max(1, pages)
        self._show_reading(path)

    def on_file(self, outcome: FileOutcome) -> None:
        if self._reading is None:  # settled without reading
            return
        self._done += 1
        self._pages[outcome.path] = outcome.pages
        self._bytes[outcome.path] = _size(outcome.path)
        self._show_reading(outcome.path)

    def on_progress(self, stage: Stage, done: int, total: int) -> None:
        if stage == "publish":
            self._progress.add_task("publish", total=None, note="collections", name="")
        else:
            self._step(*_STAGES[stage], done, total)

    def on_note(self, message: str) -> None:
        from research.text import one_line

        self._progress.console.print(f"ctx: {one_line(message)}", markup=False, highlight=False)

    def _step(self, name: str, unit: str, done: int, total: int) -> None:
        """Move one stage's line; a stage that comes again, as embedding does after OCR, begins anew."""
        if name not in self._steps or done == 0:
            self._started = self._clock()
            if name in self._steps:
                self._progress.remove_task(self._steps[name])
            self._steps[name] = self._progress.add_task(name, total=total, note="", name="")
        self._progress.update(self._steps[name], completed=done, note=f"{done}/{total} {unit}{self._rate(done)}")

    def _show_reading(self, path: str) -> None:
        if self._reading is None:
            return
        done = min(self._done, self._files)
        pages = sum(self._pages.values())
        width = self._progress.console.width
        note = f"{done}/{self._files} files"
        if width >= _WIDE and pages:  # source files have none
            note += f"  {pages} pages{self._rate(pages)}"
        name = _short(path, width - _BESIDE_NOTE - max(len(note), _LEAST_NOTE))
        self._progress.update(self._reading, completed=sum(self._bytes.values()), note=note, name=name)

    def _rate(self, count: int) -> str:
        """Left out where the line is short: how far it is says more."""
        seconds = self._clock() - self._started
        known = seconds > 0.5 and self._progress.console.width >= _WIDE
        return f"  {count / seconds:.1f}/s" if known else ""


def bars(screen: Console | None = None) -> Progress:
    """A line a stage. What a narrow terminal has no room for is left out whole: a cut label says nothing."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    screen = screen or console(stderr=True)
    wide = screen.width >= _WIDE
    bar = [BarColumn(bar_width=_BAR if wide else _SHORT_BAR)] if screen.width >= _NARROW else []
    rest = [TimeRemainingColumn(), TextColumn("{task.fields[name]}", markup=False, style="dim")] if wide else []
    return Progress(
        TextColumn("{task.description:<7}", markup=False),
        *bar,
        TextColumn("{task.fields[note]}", markup=False),
        *rest,
        console=screen,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116  called once a page
    except (OSError, ValueError):
        return 0


def _short(path: str, room: int) -> str:
    """The file's name, if there is room for something of it."""
    from cli.layout import shorten_middle
    from research.text import one_line

    name = one_line(os.path.basename(path))  # noqa: PTH119  a name from anywhere, no path of ours
    return shorten_middle(name, min(room, _NAME)) if room >= _LEAST_NAME else ""


_KINDS = 6  # of files that were passed over, named in a line


def counts_line(summary: IngestSummary, *, without: Collection[str] = ()) -> str:
    """`added 2, unchanged 7`: what became of the files, empty if there is nothing to tell."""
    counts = {
        "added": summary.count("added"),
        "replaced": summary.count("replaced"),
        "renamed": summary.count("renamed"),
        "unchanged": summary.count("unchanged"),
        "copies": summary.count("copy"),
        "failed": summary.count("failed"),
        "removed": len(summary.removed) + (len(summary.code.removed) if summary.code else 0),
    }
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count and name not in without)


def notes_of(summary: IngestSummary, *, told: bool, prune: bool) -> Iterator[str]:
    """What else there is to say, once: where warnings and failures were `told` as they came, only the rest."""
    from research.reports import page_line

    if not told:
        for outcome in summary.files:
            yield from (f"warning: {outcome.path}: {warning}" for warning in outcome.warnings)
        yield from (f"given up: {page_line(page)}" for page in summary.failed_pages)
        yield from (f"failed: {outcome.path}: {outcome.reason}" for outcome in summary.failed)
    if summary.passed_over:
        yield _passed_over(summary.passed_over)
    if summary.links_not_followed:
        links = _first_of(summary.links_not_followed)
        yield f"warning: links out of the folder were not followed ({links}); --follow-links takes them"
    if summary.dangling_links:
        yield f"warning: links lead nowhere ({_first_of(summary.dangling_links)})"
    for folder in summary.empty_folders:
        yield (
            f"note: {folder} is empty, as it is when a drive is not mounted; what was read from it is kept"
            f" (to remove it: ctx remove {shlex.quote(f'{folder}/*')})"
        )
    if summary.gone and not prune:
        are, they = ("file is", "it") if len(summary.gone) == 1 else ("files are", "they")
        remedy = f"{they} will be found until you remove {'it' if they == 'it' else 'them'}: --prune"
        yield f"note: {len(summary.gone)} {are} gone ({_first_of(summary.gone)}); {remedy}"
    if summary.waiting_pages:
        yield f"note: {_waiting(summary.waiting_pages)}"


def _passed_over(kinds: dict[str, int]) -> str:
    """`passed over 12: .docx 9, .md 3`: files of other kinds, of which a few are named."""
    named = [f"{kind or 'without ending'} {count}" for kind, count in list(kinds.items())[:_KINDS]]
    other = sum(list(kinds.values())[_KINDS:])
    return f"passed over {sum(kinds.values())}: {', '.join(named + [f'other {other}'] * bool(other))}"


def _first_of(names: list[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _waiting(pages: list[PageOutcome]) -> str:
    from research.reports import places

    return f"{places(pages)} given up earlier, not tried in this run; --retry tries again"


def write_code(summary: IngestSummary) -> None:
    """What a run came to, for people."""

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
    from ingest import remove_paths
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


def write_commits(summary: CommitsSummary) -> None:
    """A line a repository, for people."""
    for each in summary.repositories:
        if each.result == "read":
            write(f"{one_line(each.path)}: {_counts(each)}\n")
        elif each.result == "removed":
            write(f"{one_line(each.path)}: {amount(each.removed, 'commit')} removed\n")


def note_commits(summary: CommitsSummary) -> None:
    for each in summary.repositories:
        for note in each.notes:
            say(f"ctx: note: {one_line(each.path)}: {one_line(note)}")


def commits_verdict(summary: CommitsSummary, repositories: Sequence[Path], index: str | None) -> int:
    """The closing line on stderr, where there is something to say, and the exit code."""
    error = _error(summary, repositories, index)
    if error is None:
        return 0
    complain(error, as_json=False)
    return error.exit_code


def _error(summary: CommitsSummary, repositories: Sequence[Path], index: str | None) -> CtxError | None:
    failed = summary.failed
    if summary.interrupted:
        options = [word for each in repositories for word in ("--commits", str(each))]
        again = ["ctx", "ingest", *options, *([] if index is None else ["--index", index])]
        kept = f"{amount(sum(each.added for each in summary.repositories), 'commit')} of this run kept"
        return StoppedError(f"interrupted; what was read is kept ({kept})", hint=f"go on with: {shlex.join(again)}")
    if len(failed) == 1 and len(summary.repositories) == 1:
        return CtxError(one_line(failed[0].reason), hint=one_line(failed[0].hint))
    for each in failed:
        hint = f" ({one_line(each.hint)})" if each.hint else ""
        say(f"ctx: failed: {one_line(each.path)}: {one_line(each.reason)}{hint}")
    if failed:
        count = f"{len(failed)} of {len(summary.repositories)} repositories"
        return SomeFilesFailedError(f"{count} could not be read; the others are in the index")
    return None


def remove_commits(index: Path, repositories: Sequence[str], *, as_json: bool, dry_run: bool) -> int:
    from cli.output import write_document, write_line
    from ingest import remove_repositories
    from research.index import Index

    if dry_run:
        raise UsageError("--dry-run is for documents", hint="ctx status tells how many commits there are")
    paths = [Path(each) for each in repositories]
    summary = remove_repositories(Index(index).paths, paths)
    if as_json:
        gone = [each for each in summary.repositories if each.result == "removed"]
        listed = [{"repository": each.repository, "commits": each.removed} for each in gone]
        write_document("ctx.remove/2", {"removed": [], "removed_commits": listed})
    else:
        for each in summary.repositories:
            if each.result == "removed":
                write_line("removed", amount(each.removed, "commit"), one_line(each.repository))
    return commits_verdict(summary, paths, None)


def _counts(each: RepositoryOutcome) -> str:
    return ", ".join(
        [
            *_named(
                ("added", each.added), ("removed", each.removed), ("in the index from another copy", each.elsewhere)
            ),
            f"{each.commits:,} commits in the index",
        ]
    )


def _named(*counts: tuple[str, int]) -> Iterator[str]:
    yield from (f"{name} {count:,}" for name, count in counts if count)
