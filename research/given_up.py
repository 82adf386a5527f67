"""Pages and files that were given up, in words: one line each, or a few of many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from cli.terminal import amount

_SHOWN = 3
_DOING = {"read": "", "images": "drawing it: ", "ocr": "OCR: ", "visual": "the visual model: "}


class Failed(Protocol):
    """A page that was given up, in a run or in the index; page 0 is every page of the file."""

    @property
    def path(self) -> str: ...
    @property
    def page(self) -> int: ...
    @property
    def stage(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Noted(Failed, Protocol):
    """One that the index remembers."""

    @property
    def waits(self) -> bool: ...


def page_line(failed: Failed) -> str:
    """`docs/a.pdf, page 3: OCR: a page took more than 90 seconds`"""
    page = f", page {failed.page}" if failed.page else ""
    return f"{failed.path}{page}: {_DOING.get(failed.stage, '')}{failed.reason}"


def places(found: Sequence[Failed]) -> str:
    """`2 pages (a.pdf p. 3, b.pdf p. 1)`; a file that was given up as a whole stands there without a page."""
    pages = sum(1 for failed in found if failed.page)
    counts = [amount(count, noun) for count, noun in ((pages, "page"), (len(found) - pages, "file")) if count]
    names = [_place(failed) for failed in found[:_SHOWN]] + ["…"] * (len(found) > _SHOWN)
    return f"{' and '.join(counts)} ({', '.join(names)})"


def remedy(found: Sequence[Noted]) -> str:
    """The next command to type."""
    return f"try again with: ctx ingest PATH{' --retry' if any(failed.waits for failed in found) else ''}"


def _place(failed: Failed) -> str:
    name = os.path.basename(failed.path)  # noqa: PTH119  a name from anywhere, no path of ours
    return f"{name} p. {failed.page}" if failed.page else name
