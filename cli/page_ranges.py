"""What a person types for pages: `3`, `3-5`, `1,4-6,10-`."""

from __future__ import annotations

import re

from research.errors import UsageError
from research.filters import LAST_PAGE, PageRange

_PAGE = re.compile(r"\d+", re.ASCII)
_RANGE = re.compile(r"(?P<first>\d{1,9})?\s*(?P<to>[-–])?\s*(?P<last>\d{1,9})?", re.ASCII)
_FORM = "pages count from 1 as a PDF viewer does: 3, 3-5, 1,4-6,10-"
_SHOWN = 60
_MOST_DIGITS = 18


def one_page(text: str | None) -> int | None:
    """The page, if the text names a single one."""
    if text is None or not _PAGE.fullmatch(text.strip()):
        return None
    digits = text.strip().lstrip("0") or "0"
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS  # no document has so many


def read_ranges(text: str) -> list[PageRange]:
    """First and last page of each range, in the order given. Raises UsageError."""
    return [_range(part.strip(), text) for part in text.split(",")]


def _range(part: str, text: str) -> PageRange:
    match = _RANGE.fullmatch(part)
    if match is None or not (match["first"] or match["last"]):
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise UsageError(f"{shown!r} names no pages", hint=_FORM)
    first = int(match["first"] or 1)
    last = int(match["last"]) if match["last"] else LAST_PAGE if match["to"] else first
    if first < 1:
        raise UsageError(f"there is no page {first}", hint=_FORM)
    if last < first:
        raise UsageError(f"the pages {part} run backwards", hint=f"write {last}-{first}" if last else _FORM)
    return first, last
