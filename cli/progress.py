"""What a person sees while a long command works: one line a stage, on stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from cli.output import console, say
from ingest import FileOutcome, Observer, PageOutcome
from research.reports import page_line
from research.text import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from cli.call import Call
    from ingest import Stage

T = TypeVar("T")

_WIDE, _NARROW = 76, 40  # columns: below, pages, rate, time left and name go; then the bar
_BAR, _SHORT_BAR = 14, 8
_BESIDE_NOTE, _LEAST_NOTE = 33, 31  # columns of a wide line: label, bar, time left; and those of a note
_NAME, _LEAST_NAME = 40, 8
_STAGES: dict[Stage, tuple[str, str]] = {
    "embed": ("embed", "chunks"),
    "render": ("draw", "docs"),
    "ocr": ("OCR", "pages"),
    "visual": ("look", "pages"),
    "commits": ("history", "commits"),
    "publish": ("publish", "collections"),
}


@contextmanager
def observer_for(call: Call) -> Iterator[Observer]:
    """A bar on a terminal; failures and warnings line by line in a log; only failures when quiet."""
    if call.quiet or call.as_json or not sys.stderr.isatty():
        yield LogObserver(warnings=not call.quiet)
    else:
        with bars() as progress:
            yield BarObserver(progress)


def counted(items: Iterable[T], total: int, doing: str, unit: str, *, quiet: bool) -> Iterator[T]:
    """Give the items, with a bar on a terminal that moves with each."""
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    with bars() as progress:
        task = progress.add_task(doing, total=total, note="", name="")
        for done, item in enumerate(items, start=1):
            progress.update(task, completed=done, note=f"{done}/{total} {unit}")
            yield item


class LogObserver(Observer):
    """Says failures and warnings as they happen, and nothing else."""

    def __init__(self, *, warnings: bool = True) -> None:
        self._warn: Callable[[str], None] = say if warnings else lambda _: None

    def on_note(self, message: str) -> None:
        self._warn(f"ctx: {message}")

    def on_file(self, outcome: FileOutcome) -> None:
        if outcome.result == "failed":
            say(f"ctx: failed: {outcome.path}: {outcome.reason}")
        for warning in outcome.warnings:
            self.on_warning(outcome.path, warning)

    def on_warning(self, path: str, message: str) -> None:
        self._warn(f"ctx: warning: {path}: {message}")

    def on_failed_page(self, page: PageOutcome) -> None:
        say(f"ctx: given up: {page_line(page)}")


class BarObserver(Observer):
    """Files are measured in bytes, because their pages are not known before they are opened."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._reading: TaskID | None = None
        self._steps: dict[str, TaskID] = {}
        self._started = self._clock()
        self._files = self._done = 0
        self._pages: dict[str, int] = {}  # by file; not every page of a file is told of
        self._bytes: dict[str, float] = {}

    def on_plan(self, files: int, size_bytes: int) -> None:
        self._started, self._files = self._clock(), files
        self._reading = self._progress.add_task("read", total=max(1, size_bytes), note="", name="")

    def on_page(self, path: str, page: int, pages: int) -> None:
        self._read(path, page, page / max(1, pages))

    def on_file(self, outcome: FileOutcome) -> None:
        if self._reading is not None:  # else settled without reading
            self._done += 1
            self._read(outcome.path, outcome.pages, 1)

    def on_progress(self, stage: Stage, done: int, total: int) -> None:
        """Move one stage's line; a stage that comes again, as embedding does after OCR, begins anew."""
        name, unit = _STAGES[stage]
        if stage == "publish":
            self._progress.add_task(name, total=None, note=unit, name="")
            return
        if name not in self._steps or done == 0:
            self._started = self._clock()
            if name in self._steps:
                self._progress.remove_task(self._steps[name])
            self._steps[name] = self._progress.add_task(name, total=total, note="", name="")
        self._progress.update(self._steps[name], completed=done, note=f"{done}/{total} {unit}{self._rate(done)}")

    def on_note(self, message: str) -> None:
        self._progress.console.print(f"ctx: {one_line(message)}", markup=False, highlight=False)

    def _read(self, path: str, pages: int, share: float) -> None:
        if self._reading is None:
            return
        self._pages[path], self._bytes[path] = pages, _size(path) * share
        note, name, width = f"{min(self._done, self._files)}/{self._files} files", "", self._progress.console.width
        if width >= _WIDE and (total := sum(self._pages.values())):  # source files have none
            note += f"  {total} pages{self._rate(total)}"
        if (room := min(width - _BESIDE_NOTE - max(len(note), _LEAST_NOTE), _NAME)) >= _LEAST_NAME:
            from cli.layout import shorten_middle

            name = shorten_middle(one_line(os.path.basename(path)), room)  # noqa: PTH119  a name, no path of ours
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
