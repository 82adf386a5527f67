"""Experiences as JSON Lines, one each. A line that cannot be read costs itself alone, and is told by its number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from research.errors import CtxError, UsageError
from research.experiences.experiences import Experiences
from research.experiences.records import Imported, ImportedLines, LineProblem

LONGEST_LINE = 1 << 19  # bytes; an experience has at most an eighth of it
MOST_PROBLEMS = 50  # that are told; the others are counted
_A_BATCH = 200
_BOM = b"\xef\xbb\xbf"


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """One by one, a very long one cut where it is too long anyway."""
    while line := stream.readline(LONGEST_LINE + 2):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE)


def import_lines(experiences: Experiences, lines: Iterable[bytes]) -> ImportedLines:
    """Take over what can be, some at a time."""
    added, changed, known = list[str](), list[str](), list[str]()
    problems: list[LineProblem] = []
    failed, still_open = 0, 0
    waiting: list[dict[str, Any]] = []

    def put() -> None:
        done = experiences.put(waiting)
        added.extend(done.added)
        changed.extend(done.changed)
        known.extend(done.known)
        waiting.clear()

    for number, line in enumerate(lines, start=1):
        raw = (line.removeprefix(_BOM) if number == 1 else line).strip()
        if not raw:
            continue
        try:
            record = _read(raw)
            experience, _ = experiences.read(record)
        except CtxError as error:
            failed += 1
            if len(problems) < MOST_PROBLEMS:
                problems.append(LineProblem(number, error.message, error.hint))
            continue
        still_open += experience.is_open
        waiting.append(record)
        if len(waiting) == _A_BATCH:
            put()
    put()
    return ImportedLines(Imported(added, changed, known), failed, tuple(problems), still_open)


def _read(raw: bytes) -> dict[str, Any]:
    if len(raw) > LONGEST_LINE:
        raise UsageError(f"the line is longer than {LONGEST_LINE:,} bytes")
    try:
        found = json.loads(raw)
    except UnicodeDecodeError as error:
        raise UsageError("the line is not UTF-8", hint="convert the file, with iconv -t utf-8 for example") from error
    except (ValueError, RecursionError) as error:
        raise UsageError("the line is no JSON", hint='one experience a line: {"goal": "…", …}') from error
    if not isinstance(found, dict):
        raise UsageError("the line is no JSON object", hint='one experience a line: {"goal": "…", …}')
    return found
