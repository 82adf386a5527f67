"""Filters: which documents and pages a question is asked of. The command line, batches and the library use the same."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from research.errors import UsageError

LAST_PAGE = 999_999_999
"""The end of a range of pages that has none: more than any document has."""

PageRange = tuple[int, int]
"""First and last physical page."""

_RANGE = re.compile(r"(?P<first>[0-9]{1,9})?\s*(?P<to>[-–])?\s*(?P<last>[0-9]{1,9})?", re.ASCII)
_YEAR_OR_MONTH = re.compile(r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2}))?", re.ASCII)
_SHOWN = 60  # characters of a wrong value
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_MILLISECONDS = 1e11  # a number beyond this counts them, not seconds


@dataclass(frozen=True, slots=True)
class Filters:
    """What a question is restricted to; empty fields restrict nothing. A text or a path stands for a list of one.

    A filter only takes away: the legs score what is left as they would among everything, and in the same order. Raises
    UsageError for pages and times that nobody can read.
    """

    documents: tuple[str, ...] = ()  # names, paths, patterns, titles or words of them, ids or their beginnings: any
    not_documents: tuple[str, ...] = ()  # the same, left out
    under: tuple[str, ...] = ()  # folders, any of them: documents that a file below is known of
    pages: str = ""  # physical pages: "3", "3-5", "1,4-6,10-"
    since: str = ""  # documents added or changed in the index then or later: a day, a month, a year or a time; UTC
    until: str = ""  # then or earlier; a day counts to its end
    tags: tuple[str, ...] = ()  # documents that have all of them

    def __post_init__(self) -> None:
        for name in ("documents", "not_documents", "under", "tags"):
            value = getattr(self, name)
            single = isinstance(value, str | os.PathLike)
            texts = tuple(map(os.fspath, [value] if single else value))
            if any(not text.strip() for text in texts):
                raise _empty(name)
            object.__setattr__(self, name, texts)
        self.pages_read()
        since, until = self.times()
        if since >= until:
            raise UsageError(
                f"since {_shown(self.since)} is after until {_shown(self.until)}", hint="no time lies between them"
            )

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def pages_read(self) -> tuple[PageRange, ...]:
        """The pages as ranges, in order and apart from each other; empty: all."""
        ranges = sorted(_range(part, self.pages) for part in self.pages.split(",")) if self.pages else []
        joined: list[PageRange] = []
        for first, last in ranges:
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], last))
            else:
                joined.append((first, last))
        return tuple(joined)

    def times(self) -> tuple[datetime, datetime]:
        """From when, and until before when, documents were added."""
        since = _span("since", self.since)[0] if self.since else _EARLIEST
        return since, _span("until", self.until)[1] if self.until else _LATEST


# What each field is called on the command line and in JSON.
_KEYS = {
    "documents": "doc",
    "not_documents": "not_doc",
    "under": "under",
    "pages": "pages",
    "since": "since",
    "until": "until",
    "tags": "tag",
}
_TIMES = "a day (2026-05-31), a month (2026-05), a year (2026) or a time (2026-05-31T14:30); UTC unless it says more"
_HINTS = {
    "documents": "see the documents with: ctx list",
    "not_documents": "see the documents with: ctx list",
    "under": "name a folder",
    "pages": "pages count from 1 as a PDF viewer does: 3, 3-5, 1,4-6,10-",
    "since": _TIMES,
    "until": _TIMES,
    "tags": "see the tags with: ctx tag",
}


def read_time(value: object) -> datetime | None:
    """ISO 8601 with Z, an offset or neither (then it is UTC), a date, or seconds since 1970; None if unreadable."""
    try:
        if isinstance(value, datetime):
            found = value
        elif isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = float(value)
            found = datetime.fromtimestamp(seconds / 1000 if abs(seconds) > _MILLISECONDS else seconds, UTC)
        else:
            return None
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):  # beyond the calendar, too
        return None


def _range(part: str, pages: str) -> PageRange:
    match = _RANGE.fullmatch(part.strip())
    if match is None or not (match["first"] or match["last"]):
        raise _wrong("pages", pages)
    first = int(match["first"] or 1)
    last = int(match["last"]) if match["last"] else LAST_PAGE if match["to"] else first
    if not 0 < first <= last:
        raise _wrong("pages", pages)
    return first, last


def _span(name: str, text: str) -> tuple[datetime, datetime]:
    """When a day, a month, a year or a moment begins, and when it is over."""
    text = text.strip()
    try:
        if short := _YEAR_OR_MONTH.fullmatch(text):
            year, month = int(short["year"]), int(short["month"] or 1)
            begins = datetime(year, month, 1, tzinfo=UTC)
            later = (year + 1, 1) if not short["month"] or month == 12 else (year, month + 1)
            return begins, datetime(*later, 1, tzinfo=UTC) if later[0] <= datetime.max.year else _LATEST
        begins = datetime.fromisoformat(text)
        length = timedelta(days=1) if len(text) <= len("2026-05-31") else timedelta(microseconds=1)
        begins = begins.replace(tzinfo=UTC) if begins.tzinfo is None else begins.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _wrong(name, text) from None
    return begins, begins + length if begins < _LATEST - length else _LATEST


def _wrong(name: str, value: str) -> UsageError:
    kind = "pages" if name == "pages" else "a time"
    return UsageError(f"the filter {name} has {_shown(value)}, which is not {kind}", hint=_HINTS[name])


def _empty(name: str) -> UsageError:
    return UsageError(f"the filter {_KEYS[name]} has an empty value", hint=_HINTS[name])


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
