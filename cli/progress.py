"""What a person sees while a long command works: one line a stage, on stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from cli.output import console, say
from ingest.report import FileOutcome, Observer, PageOutcome, SilentObserver

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

T = TypeVar("T")

_WIDE, _NARROW = 76, 40  # columns: below, pages, rate, time left and name go; then the bar
_BAR, _SHORT_BAR = 14, 8
_BESIDE_NOTE = 33  # columns of a wide line beside its note and its name: label, bar, time left, what stands between
_LEAST_NOTE = 31  # columns: those of the other stages are as wide
_NAME, _LEAST_NAME = 40, 8


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


class LogObserver(SilentObserver):
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


class BarObserver(SilentObserver):
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

    def on_embed(self, done: int, total: int) -> None:
        self._step("embed", done, total, "chunks")

    def on_render(self, done: int, total: int) -> None:
        self._step("draw", done, total, "docs")

    def on_ocr(self, done: int, total: int) -> None:
        self._step("OCR", done, total, "pages")

    def on_visual(self, done: int, total: int) -> None:
        self._step("look", done, total, "pages")

    def on_commits(self, done: int, total: int) -> None:
        self._step("history", done, total, "commits")

    def on_note(self, message: str) -> None:
        from research.visible_text import one_line

        self._progress.console.print(f"ctx: {one_line(message)}", markup=False, highlight=False)

    def _step(self, name: str, done: int, total: int, unit: str) -> None:
        """Move one stage's line; a stage that comes again, as embedding does after OCR, begins anew."""
        if name not in self._steps or done == 0:
            self._started = self._clock()
            if name in self._steps:
                self._progress.remove_task(self._steps[name])
            self._steps[name] = self._progress.add_task(name, total=total, note="", name="")
        self._progress.update(self._steps[name], completed=done, note=f"{done}/{total} {unit}{self._rate(done)}")

    def on_publish(self) -> None:
        self._progress.add_task("publish", total=None, note="collections", name="")

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
    from research.visible_text import one_line

    name = one_line(os.path.basename(path))  # noqa: PTH119  a name from anywhere, no path of ours
    return shorten_middle(name, min(room, _NAME)) if room >= _LEAST_NAME else ""
