"""A page's markdown as units of meaning: sentences, list entries, table rows, single lines, headings.

Passages and quotes are made of whole units, so that nothing is cut in the middle. Every step goes over a line once:
pages are hostile, and one may be a single line of a hundred thousand characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from research.text import SENTENCE_BREAK


@dataclass(frozen=True, slots=True)
class Unit:
    """What is never cut. `text[start:end]` is it with its list mark or heading mark."""

    start: int
    end: int
    kind: str  # "sentence", "item" (of a list), "row" (of a table), "line" (of a slide or chart) or "heading"
    block: int  # number of its paragraph, list or table on the page
    section: int  # number of the last heading above it; 0 before the first
    header: tuple[int, int] | None = None  # the span of its table's header, for a row


_LONGEST = 1500  # characters; what has no end mark for so long is cut between words
_LONG_ITEM = 300  # a list entry longer than this is several units, a sentence each
_WRAPPED = 30  # characters that a line has at least if the next one goes on with it
_SHORT = 80  # a line that may stand between a table's header and its rows
_MOST_HEADER_ROWS = 3
_LONGEST_WORD = 24  # characters before a full stop that may be an abbreviation
_GAP = 4  # lines that may stand between a table's header and its rows

_LINE = re.compile(r"[^\n]+")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•◦▪‣·–][ \t]+|\(?(?:\d{1,2}|[A-Za-z]|[ivx]{1,5})[.)][ \t]+)\S")
_VALUE = re.compile(r"\d")  # other than years and the marks of footnotes
_YEAR_OR_NOTE = re.compile(r"\b(?:1[89]|20)\d\d\b|\(\d\)")

# After one of these a full stop ends no sentence, whatever follows; in the languages that are read most.
_ABBREVIATIONS = frozenset(
    """
    e.g i.e eg ie cf vs viz al fig figs eq eqs sec secs ch chap tab no nos vol vols ed eds approx ca resp incl excl
    dr mr mrs ms prof st mt ft rev hon gen col lt capt sgt jr gov sen rep pres p pp para art arts ref refs dept est
    jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k u.n d.c
    z.b d.h u.a bzw nr abs bd hrsg vgl ggf evtl zzgl inkl str tel
    mme mlle m.m ex env sr sra srta núm num pág pag dott sig ing avv
    """.split()  # noqa: SIM905 (one word a line would hide the list)
)
_MONTHS = frozenset("Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split())  # noqa: SIM905
_WORD_BEFORE = re.compile(r"[^\s(\[\"'„“‘«]*\Z")
_WORD_AFTER = re.compile(r"\w+")


def split(markdown: str) -> list[Unit]:
    """The units of a page in order: they do not overlap, and hold all of its text but markup that stands alone."""
    return _with_headers(markdown, list(iter_units(markdown)))


def iter_units(markdown: str) -> Iterator[Unit]:
    """The units in order, without their tables' headers."""
    block, section = -1, 0
    for lines in _blocks(markdown):
        block += 1
        start, end, kind = lines[0]
        if kind == "heading":
            section += 1
            yield Unit(start, end, kind, block, section)
            continue
        for start, end, kind in _joined(markdown, lines):
            if kind in {"row", "line", "rule"}:
                cuts = _shortened(markdown, start, end)
            elif kind == "item" and end - start <= _LONG_ITEM:
                cuts = iter([(start, end)])
            else:
                cuts = _sentences(markdown, start, end)
            for first, last in cuts:
                yield Unit(first, last, kind, block, section)


_Line = tuple[int, int, str]  # start, end, kind


def _blocks(markdown: str) -> Iterator[list[_Line]]:
    """The lines with something to read, in groups that blank lines or headings part."""
    block: list[_Line] = []
    code, last = False, 0
    for match in _LINE.finditer(markdown):
        start, end = match.span()
        if block and start - last > 1:  # empty lines between
            yield block
            block = []
        last = end
        line = match.group()
        text = line.strip()
        if _FENCE.match(line):
            code = not code
            continue
        if not text:
            if block:
                yield block
                block = []
            continue
        start += line.index(text[0])
        end = start + len(text)
        kind = "line" if code else _kind(line, text)
        if kind == "heading":
            if block:
                yield block
                block = []
            yield [(start, end, kind)]
        elif kind == "rule" or any(char.isalnum() for char in text) or kind != "row":
            block.append((start, end, kind))
    if block:
        yield block


def _kind(line: str, text: str) -> str:
    if text[0] == "#" and _HEADING.match(line):
        return "heading"
    if "|" in text and not text.strip("|:- \t"):
        return "rule"  # between a table's header and its rows
    cells = text.count(" | ")
    is_item = _ITEM.match(line) is not None
    if (cells > is_item) or (text[0] == text[-1] == "|" and len(text) > 1):  # "- loss (dict | None)" is an entry
        return "row"
    if is_item:
        return "item"
    return "sentence"


def _joined(markdown: str, lines: list[_Line]) -> Iterator[_Line]:
    """Lines that go on in the next one are put together; a block of several others is a chart, a form, an address."""
    alone = len(lines) == 1
    held: _Line | None = None
    for start, end, kind in lines:
        if held is not None and kind == "sentence" and _goes_on(markdown, held, start):
            held = (held[0], end, held[2])
            continue
        if held is not None:
            yield _as_line(markdown, held, alone)
        held = (start, end, kind)
    if held is not None:
        yield _as_line(markdown, held, alone)


def _goes_on(markdown: str, held: _Line, start: int) -> bool:
    if held[2] != "sentence":
        return held[2] == "item"
    before = markdown.rfind("\n", held[0], held[1]) + 1 or held[0]
    return markdown[start].islower() and held[1] - before >= _WRAPPED and markdown[held[1] - 1] not in ".!?:;"


def _as_line(markdown: str, entry: _Line, alone: bool) -> _Line:
    """What stands among other lines without being a sentence is a line of its own."""
    start, end, kind = entry
    if kind != "sentence":
        return entry
    if alone:
        # A label, a caption, a slide's words: nothing in it ends a sentence.
        short = end - start <= _SHORT and SENTENCE_BREAK.search(markdown, start, end) is None
        return (start, end, "line") if short and markdown[end - 1] not in ".!?…。！？" else entry
    return entry if markdown[end - 1] in ".!?…。！？" else (start, end, "line")


def _sentences(markdown: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    for match in SENTENCE_BREAK.finditer(markdown, start, end):
        stop, following = match.span()
        if first < stop and following < end and _is_end(markdown, first, stop, following):
            yield from _shortened(markdown, first, stop)
            first = following
    yield from _shortened(markdown, first, end)


def _is_end(markdown: str, first: int, stop: int, following: int) -> bool:
    """Whether a sentence ends here, or an abbreviation, an initial, a number of a list or a date."""
    if markdown[following].islower():
        return False
    if markdown[stop - 1] != ".":
        return True
    before = markdown[max(first, stop - _LONGEST_WORD) : stop - 1]
    found = _WORD_BEFORE.search(before)
    word = found.group() if found else ""
    if word.isdigit() and len(word) <= 2:
        name = _WORD_AFTER.match(markdown, following, following + _LONGEST_WORD)
        is_day = name is not None and name.group() in _MONTHS
        return not is_day and stop - 1 - len(word) > first  # the number of an entry begins it
    initials = word.replace(".", "")
    # J. F. Glover, J.F. Glover, z. B.
    is_letter = initials.isalpha() and (len(initials) == 1 or (len(initials) == 2 and "." in word))
    return not is_letter and word.lower() not in _ABBREVIATIONS


def _shortened(markdown: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, in parts if nothing ends in it for too long."""
    while end - start > _LONGEST:
        blank = markdown.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
        stop = blank if blank > 0 else start + _LONGEST
        yield start, stop
        start = stop
        while start < end and markdown[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _with_headers(markdown: str, units: list[Unit]) -> list[Unit]:
    """Rows get the span of their table's header, and rules are left out."""
    found: list[Unit] = []
    waiting: tuple[int, int] | None = None  # a header whose rows stand in the next block, or in one after short lines
    gap = 0
    for _, group in groupby(units, key=attrgetter("block")):
        block = list(group)
        if not any(unit.kind == "row" for unit in block):
            gap += len(block)
            if gap > _GAP or any(unit.kind == "heading" or unit.end - unit.start > _SHORT for unit in block):
                waiting = None
            found += [unit for unit in block if unit.kind != "rule"]
            continue
        above = _header_rows(markdown, block)
        rows = [unit for unit in block if unit.kind == "row"]
        header = (above[0].start, above[-1].end) if above else waiting
        found += [
            replace(unit, header=header) if unit.kind == "row" and unit not in above and header else unit
            for unit in block
            if unit.kind != "rule"
        ]
        waiting, gap = (header, 0) if header and len(above) == len(rows) else (header if not above else None, 0)
    return found


def _header_rows(markdown: str, block: list[Unit]) -> list[Unit]:
    """The rows of a table that name its columns: those above the rule, or the first ones if they hold no values and
    others do."""
    rule = next((n for n, unit in enumerate(block) if unit.kind == "rule"), None)
    if rule is not None:
        return [unit for unit in block[:rule] if unit.kind == "row"][-_MOST_HEADER_ROWS:]
    rows = [unit for unit in block if unit.kind == "row"]
    lead: list[Unit] = []
    for unit in block:
        if unit.kind != "row" or not _names_columns(markdown[unit.start : unit.end]):
            break
        lead.append(unit)
    if len(lead) == len(rows) <= _MOST_HEADER_ROWS:
        return lead
    lead = lead[:_MOST_HEADER_ROWS]
    others = rows[len(lead) :]
    valued = [unit for unit in others if _VALUE.search(_YEAR_OR_NOTE.sub("", markdown[unit.start : unit.end]))]
    if 2 * len(valued) > len(others):
        return lead
    # A table of words: its first row names the columns if it is much shorter than the others.
    usual = sum(unit.end - unit.start for unit in rows) / len(rows)
    return [unit for unit in lead[:1] if 2 * (unit.end - unit.start) < usual]


def _names_columns(row: str) -> bool:
    """Whether a row may name columns: it is short, no sentence, and holds no values."""
    return len(row) <= 2 * _SHORT and not _VALUE.search(_YEAR_OR_NOTE.sub("", row)) and not SENTENCE_BREAK.search(row)
