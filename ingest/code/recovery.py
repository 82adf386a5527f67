"""What a parser gives up behind an error: a bracket that is never closed swallows the rest of a file.

People begin a definition at the beginning of a line. Where a file has errors and such a line is the beginning of
nothing that was recognised, what follows is parsed by itself, up to the next such line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ingest.code.definitions import Definition, Parsed

_MOST = 500  # parts that are parsed by themselves
_JAVASCRIPT = (
    rb"(?:export\s+)?(?:default\s+)?(?:async\s+function\b|function\b|class\b|abstract\s+class\b|interface\b|enum\b)"
    rb"|(?:export\s+)?const\s+\w+\s*=\s*(?:async\s*)?(?:\(|function\b)"
)
_C = (
    rb"(?:struct|class|enum|union|typedef|namespace|template)\b"
    rb"|[A-Za-z_][\w \t*&:<>,~]{0,200}\([^;{}\n]{0,400}\)[^;{}\n]{0,80}(?:\{|$)"
)
_STARTS = {
    language: re.compile(rb"^(?:" + pattern + rb")", re.M)
    for language, pattern in {
        "python": rb"(?:async[ \t]+)?def[ \t]|class[ \t]",
        "go": rb"(?:func|type)[ \t]",
        "rust": rb"(?:pub(?:\([a-z]+\))?[ \t]+)?(?:async[ \t]+)?(?:unsafe[ \t]+)?(?:fn|impl|struct|enum|trait|mod)\b",
        "java": rb"(?:(?:public|final|abstract)[ \t]+)*(?:class|interface|enum|record)\b",
        "javascript": _JAVASCRIPT,
        "typescript": _JAVASCRIPT,
        "tsx": _JAVASCRIPT,
        "c": _C,
        "cpp": _C,
    }.items()
}


def recover(source: bytes, parsed: Parsed, language: str, parse: Callable[[bytes, str], Parsed]) -> Parsed:
    """The same with what was lost behind errors."""
    starts = [match.start() for match in _STARTS[language].finditer(source)]
    claimed = {at for each in parsed.definitions for at in (each.start, each.own_start)}
    ends = dict(pairwise([*starts, len(source)]))
    lost = [at for at in starts if at not in claimed][:_MOST]
    more = [_moved(found, source, at) for at in lost for found in parse(source[at : ends[at]], language).definitions]
    begun = sorted({each.start for each in more} | claimed.intersection(starts))
    kept = [
        each if each.is_scope or (each.is_class and language != "python") else _ended(each, begun, source)
        for each in parsed.definitions
    ]
    known = {each.start for each in kept}
    found = [*kept, *(each for each in more if each.start not in known)]
    return replace(parsed, definitions=_nested(sorted(found, key=lambda each: (each.start, -each.end))))


def _moved(found: Definition, source: bytes, by: int) -> Definition:
    rows = source.count(b"\n", 0, by)
    return replace(
        found,
        start=found.start + by,
        end=found.end + by,
        own_start=found.own_start + by,
        body_start=found.body_start + by if found.body_start >= 0 else -1,
        body_end=found.body_end + by if found.body_end >= 0 else -1,
        first_row=found.first_row + rows,
        last_row=found.last_row + rows,
        comment_start=found.comment_start + by,
    )


def _ended(each: Definition, begun: Sequence[int], source: bytes) -> Definition:
    """One that swallowed others ends where the first of them begins."""
    at = next((start for start in begun[bisect_right(begun, each.own_start) :] if start < each.end), 0)
    if not at:
        return each
    end = len(source[:at].rstrip())
    return replace(each, end=end, body_end=min(each.body_end, end), last_row=source.count(b"\n", 0, end))


def _nested(ordered: Sequence[Definition]) -> list[Definition]:
    stack: list[Definition] = []
    for each in ordered:
        while stack and stack[-1].end <= each.start:
            stack.pop()
        each.parent = stack[-1] if stack else None
        stack.append(each)
    return list(ordered)
