"""A page's markdown as units of meaning: sentences, list entries, table rows, single lines, headings, code blocks.

Passages and quotes are made of whole units, so that nothing is cut in the middle. Ingest finds them and stores them
with the page (`pack_units`); a question reads them (`Structure`). Every step goes over a line once: pages are hostile,
and one may be a single line of a hundred thousand characters.
"""

from __future__ import annotations

import re
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import NamedTuple

from research.text import SENTENCE_BREAK

RULES = 3
"""The version of the rules below. Units that other rules have found are found anew when they are read."""


class Unit(NamedTuple):
    """What is never cut. `text[start:end]` is it with its list mark or heading mark. A question makes a thousand."""

    start: int
    end: int
    kind: str  # "sentence", "item" (of a list), "row" (of a table), "line" (of a slide or chart), "heading" or "code"
    block: int  # number of its paragraph, list or table on the page
    section: int  # number of the last heading above it; 0 before the first
    header: tuple[int, int] | None = None  # the span of its table's header, for a row and for a line that parts rows
    title: tuple[int, int] | None = None  # and of the lines above it, or the caption below: what it shows


UNKNOWN = -1
_KINDS = ("sentence", "item", "row", "line", "heading", "code")
_FIELDS = 9  # numbers that a unit is stored in
_LONGEST = 1500  # characters; what has no end mark for so long is cut between words
_LONG_ITEM = 300  # a list entry longer than this is several units, a sentence each
_WRAPPED = 30  # characters that a line has at least if the next one goes on with it
_SHORT = 80  # a line that may stand between a table's header and its rows
_MOST_HEADER_ROWS = 4
_MOST_TITLES = 2  # lines
_LONGEST_WORD = 24  # characters before a full stop that may be an abbreviation

_ENDS = ".!?…。！？"  # of a sentence
_LINE = re.compile(r"[^\n]+")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•◦▪‣·–][ \t]+|\(?(?:\d{1,2}|[A-Za-z]|[ivx]{1,5})[.)][ \t]+)\S")
_CAPTION = re.compile(r"\W{0,3}(?:tab(?:le|elle|leau|la|ella|ela|el|\.)?|表)\s?[\dIVX]", re.IGNORECASE)
_VALUE = re.compile(r"\d")
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
# Years, marks of footnotes ("(1)", "Operational1,2"), quarters, and the days of dates: "December 31,", "31. Dezember".
_NO_VALUE = re.compile(
    rf"{_YEAR.pattern}|\(\d\)|\b[^\W\d_]{{3,}}\.? \d{{1,2}}\b|\b\d{{1,2}}\.? [^\W\d_]{{3,}}|\b[^\W\d_]+\d(?:,\d)*\b"
)
_VALUE_CELL = re.compile(rf"[\s$€£¥(]*(?!{_YEAR.pattern})(?:\d[\d.,’' ]*|[–—-])[\s%)]*")
_FIGURE = re.compile(r"\d(?:[\d.,’' ]*\d)?|(?<![\w–—-])[–—-](?![\w–—-])")

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

_CODE_FENCE = re.compile(r"(`{3,})[^`\n]*\n")
_ABOVE_SIGNATURE = re.compile(r"\s*(?:@|#|/|\*|$)")
_DOCSTRING = re.compile(r"\s*[rRuU]?(?:\"{3}|'{3})")
# Strings and comments are passed over: brackets in them are none.
_CODE_SIGN = re.compile(
    r"(\"{3}|'{3}|[()\[\]\n])|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n]){0,200}'|(?:#[^\S\n]|(?<![\w)\]] )//).*"
)
_LONGEST_STATEMENT = 600  # characters: brackets may never close, and a longer signature is no header


def split(markdown: str) -> list[Unit]:
    """The units of a page in order: they do not overlap, and hold all of its text but markup that stands alone."""
    return _with_tables(markdown, list(iter_units(markdown)))


def split_code(text: str) -> list[Unit]:
    """The statements of a piece of code: each is a line with what its brackets and triple quotes hold, the sentences of
    a docstring are units of their own, and each has its signature as header."""
    fence = _CODE_FENCE.match(text)
    start, end = fence.end() if fence else 0, len(text.rstrip())
    end -= len(fence[1]) + 1 if fence and text.endswith(f"\n{fence[1]}", start - 1, end) else 0
    units: list[Unit] = []
    depth, quotes, head, block = 0, "", 0, 0
    for found in _CODE_SIGN.finditer(f"{text[:end]}\n", start):
        sign, stop = found[1], found.start()
        if sign in ('"""', "'''"):
            quotes = "" if quotes == sign else quotes or sign
        elif sign == "\n" and (stop == end or (not quotes and (depth <= 0 or stop - start > _LONGEST_STATEMENT))):
            prose, blank = _DOCSTRING.match(text, start, stop) is not None, not text[start:stop].strip()
            for first, last in () if blank else (_sentences if prose else _shortened)(text, start, stop):
                units.append(Unit(first, last, "sentence" if prose else "line", block, 0))
            head = head or (0 if _ABOVE_SIGNATURE.match(text, start, stop) else stop)
            block += prose or blank
            start, depth = stop + 1, 0
        elif sign and not quotes:
            depth += {"\n": 0, "(": 1, "[": 1}.get(sign, -1)
    if not units:
        return []
    return under(units, head if 0 < head <= units[0].start + _LONGEST_STATEMENT else units[0].end)


def under(units: Sequence[Unit], end: int) -> list[Unit]:
    """The units, of which those from `end` on have those before it as their header."""
    return [unit if unit.start < end else unit._replace(header=(units[0].start, end)) for unit in units]


def pack_units(units: Sequence[Unit], signals: int = UNKNOWN) -> bytes:
    """Pack the units as they are stored, with what in the page speaks to a model (`detector.packed_signals`)."""
    numbers = array("i", [RULES, signals])
    for unit in units:
        header, title = unit.header or (-1, -1), unit.title or (-1, -1)
        numbers.extend((unit.start, unit.end, _KINDS.index(unit.kind), unit.block, unit.section, *header, *title))
    if sys.byteorder == "big":
        numbers.byteswap()
    return zlib.compress(numbers.tobytes())


def _numbers(packed: bytes) -> array[int]:
    """What `pack_units` has packed; nothing, if other rules did or it cannot be read."""
    numbers = array("i")
    try:
        numbers.frombytes(zlib.decompress(packed) if packed else b"")
    except (zlib.error, ValueError):
        return array("i")
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers if numbers and numbers[0] == RULES and len(numbers) % _FIELDS == 2 else array("i")


def unpack_units(numbers: array[int], markdown: str) -> list[Unit]:
    """The units of a page as they were stored; found anew, if they were not or do not fit its text."""
    if not numbers:
        return split(markdown)
    units: list[Unit] = []
    last, most = 0, len(markdown)
    kinds = range(len(_KINDS))
    for start, end, kind, block, section, *spans in zip(*[iter(numbers[2:])] * _FIELDS, strict=True):
        if not (last <= start < end <= most and kind in kinds and min(spans) >= -1 and max(spans) <= most):
            return split(markdown)  # a catalog that somebody else has written
        header = (spans[0], spans[1]) if spans[0] >= 0 else None
        title = (spans[2], spans[3]) if spans[2] >= 0 else None
        units.append(Unit(start, end, _KINDS[kind], block, section, header, title))
        last = end
    return units


class Structure:
    """A text with its units, which are read from what is stored, or found, when they are first asked for."""

    __slots__ = ("_packed", "_units", "text")

    def __init__(self, text: str, packed: bytes = b"", units: list[Unit] | None = None) -> None:
        self.text = text
        self._packed = _numbers(packed)
        self._units = units

    @property
    def units(self) -> list[Unit]:
        if self._units is None:
            self._units = unpack_units(self._packed, self.text)
        return self._units

    @property
    def signals(self) -> int:
        """What in the page speaks to a model, as it was packed; `UNKNOWN` if nobody has looked."""
        return self._packed[1] if self._packed else UNKNOWN


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
            if kind in {"row", "line", "rule", "code"}:
                cuts = _shortened(markdown, start, end)
            elif kind == "item" and end - start <= _LONG_ITEM:
                cuts = iter([(start, end)])
            else:
                cuts = _sentences(markdown, start, end)
            for first, last in cuts:
                yield Unit(first, last, kind, block, section)


_Line = tuple[int, int, str]  # start, end, kind


def _blocks(markdown: str) -> Iterator[list[_Line]]:
    """The lines with something to read, in groups that blank lines, headings or fences part; code is one line."""
    block: list[_Line] = []
    in_code, last = False, 0
    for match in _LINE.finditer(markdown):
        start, end = match.span()
        line = match.group()
        text = line.strip()
        fence = _FENCE.match(line) is not None
        if block and (fence or (start - last > 1 and not in_code)):  # empty lines between
            yield block
            block = []
        last = end
        if fence:
            in_code = not in_code
            continue
        if in_code:
            if text:
                block = [(block[0][0] if block else start + line.index(text[0]), start + len(line.rstrip()), "code")]
            continue
        if not text:
            if block:
                yield block
                block = []
            continue
        start += line.index(text[0])
        end = start + len(text)
        kind = _kind(line, text)
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
    if text[0] == "#" and _HEADING.match(line) and not any(map(_VALUE_CELL.fullmatch, text.split(" | ")[1:])):
        return "heading"  # and not a row: "# Samples | 10,112"
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
        return (start, end, "line") if short and markdown[end - 1] not in _ENDS else entry
    return entry if markdown[end - 1] in _ENDS else (start, end, "line")


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
    """The span, in parts if nothing ends in it for too long: between lines, else between words."""
    while end - start > _LONGEST:
        half, most = start + _LONGEST // 2, start + _LONGEST
        blank = max(markdown.rfind("\n", half, most), 0) or markdown.rfind(" ", half, most)
        stop = blank if blank > 0 else most
        yield start, stop
        start = stop
        while start < end and markdown[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _with_tables(markdown: str, units: list[Unit]) -> list[Unit]:
    """Rows get the title and the header of their table, and rules are left out."""
    table = _Table(markdown)
    for _, group in groupby(units, key=attrgetter("block")):
        block = list(group)
        rows = [unit for unit in block if unit.kind == "row"]
        if len(rows) < len(block) and any(unit.kind == "rule" for unit in block):
            table.name_columns(_above_rule(markdown, block))
            table.take(block)
        elif rows and not any(_has_values(_text(markdown, unit)) for unit in rows):
            table.name_columns(_above_words(markdown, rows))
            table.take(block)
        else:
            for unit in block:
                table.add(unit, inside=bool(rows))
    return _with_captions_below(markdown, table.units)


def is_caption(markdown: str, unit: Unit) -> bool:
    """Whether a unit begins as the caption of a table does: "Table 7: Accuracy", "Tabelle 2"."""
    return unit.kind != "row" and _CAPTION.match(markdown, unit.start, unit.end) is not None


def _with_captions_below(markdown: str, units: list[Unit]) -> list[Unit]:
    """Rows whose caption stands right below them, and none above, get it as their title."""
    for at, unit in enumerate(units):
        if not is_caption(markdown, unit):
            continue
        first = at
        while first and units[first - 1].kind == "row" and units[first - 1].block >= units[at - 1].block - 1:
            first -= 1
        title = units[first].title
        if first < at and (title is None or _CAPTION.match(markdown, title[0]) is None):
            units[first:at] = [row._replace(title=(unit.start, unit.end)) for row in units[first:at]]
    return units


class _Table:
    """The table that the walk over a page is in: what its rows stand under.

    Its header is the rows and lines that name columns (years, dates, words) right above the first row with values. It
    holds over lines that only part the rows ("CURRENT ASSETS"), and over headings if the rows below have as many
    values as those above. Running text ends it.
    """

    def __init__(self, markdown: str) -> None:
        self.units: list[Unit] = []
        self._markdown = markdown
        self._naming: list[Unit] = []  # that may turn out to be the next header
        self._header: tuple[int, int] | None = None
        self._title: tuple[int, int] | None = None
        self._columns: set[int] = set()  # how many values the rows under the header have
        self._doubtful = False  # a heading was passed since its last row

    def add(self, unit: Unit, *, inside: bool) -> None:
        """Go on with the next unit of the page; `inside`: rows stand in its block."""
        text = _text(self._markdown, unit)
        if unit.kind == "row" and _has_values(text):
            self._add_row(unit, len(values_of(text)))
            return
        if unit.kind == "row" or (unit.kind == "line" and _is_period(text)):
            if self._naming and not self._goes_on(unit):
                self._naming = []
            self._naming = [*self._naming, unit][-_MOST_HEADER_ROWS:]
        elif unit.kind == "heading" or unit.end - unit.start > _SHORT:
            if inside or unit.kind == "heading" or text[-1] not in _ENDS:  # a label may take several lines
                self._naming, self._doubtful = [], True
            else:
                self._close()
        self.units.append(unit)

    def _goes_on(self, unit: Unit) -> bool:
        """Whether only short lines of its block, pieces of columns' names, part a unit from what has named columns."""
        before = takewhile(lambda other: other is not self._naming[-1], reversed(self.units))
        return all(other.kind == "line" and other.block == unit.block for other in before)

    def name_columns(self, rows: Sequence[Unit]) -> None:
        """Take these rows of the block that follows as the header."""
        if rows:
            naming = self._naming
            self._close()
            self._naming = [*naming, *rows][-_MOST_HEADER_ROWS:]

    def take(self, block: Sequence[Unit]) -> None:
        """Add a block whose header is known."""
        named = list(self._naming)
        if named:
            self._begin()
        for unit in block:
            if unit.kind == "row" and unit not in named:
                unit = unit._replace(header=self._header, title=self._title)  # noqa: PLW2901
            if unit.kind != "rule":
                self.units.append(unit)
        self._columns = set()
        if len(named) == sum(unit.kind == "row" for unit in block):  # its rows stand in the next block
            self._naming = named

    def _add_row(self, unit: Unit, values: int) -> None:
        if self._naming:
            self._begin()
        elif self._doubtful and values not in self._columns:
            self._close()
        if self._title is None and self._header is None:
            self._title = self._above()
        self._doubtful = False
        self._columns.add(values)
        for at in range(len(self.units) - 1, -1, -1):  # what parts the rows stands under the header as well
            line = self.units[at]
            apart = line.kind != "line" or line.header is not None or line.block != unit.block
            if apart or self._header is None or line.start < self._header[1]:
                break
            self.units[at] = line._replace(header=self._header, title=self._title)
        self.units.append(unit._replace(header=self._header, title=self._title))

    def _begin(self) -> None:
        """Begin the rows under what has named columns so far."""
        first = self._naming[0]
        self._header = (first.start, self._naming[-1].end)
        before = next((at for at, unit in enumerate(self.units) if unit.start >= first.start), len(self.units))
        self._title = self._above(before) or self._title
        self._naming, self._columns, self._doubtful = [], set(), False

    def _close(self) -> None:
        self._naming, self._header, self._title, self._columns = [], None, None, set()

    def _above(self, before: int | None = None) -> tuple[int, int] | None:
        """The one or two lines above a table that say what it shows, in which unit, and for when."""
        titles: list[Unit] = []
        for unit in reversed(self.units[:before]):
            if unit.kind not in {"heading", "line", "sentence"} or unit.end - unit.start > 2 * _SHORT:
                break
            titles.insert(0, unit)
            if len(titles) == _MOST_TITLES:
                break
        return (titles[0].start, titles[-1].end) if titles else None


def values_of(row: str) -> list[str]:
    """The values of a table's row, in order: its figures and dashes behind the label."""
    label, bar, rest = row.strip("| ").partition(" | ")
    return _FIGURE.findall(rest if bar else label)


def _text(markdown: str, unit: Unit) -> str:
    return markdown[unit.start : unit.end]


def _has_values(row: str) -> bool:
    """Whether a cell is a figure or a dash, or figures stand in it that are no years, days of a date or footnotes."""
    cells = row.strip("| ").split(" | ")[1:]
    return any(map(_VALUE_CELL.fullmatch, cells)) or _VALUE.search(_NO_VALUE.sub("", row)) is not None


def _is_period(line: str) -> bool:
    """Whether a line above a table says which years or dates its columns are of."""
    return _YEAR.search(line) is not None and len(line) <= _SHORT and not _has_values(line)


def _above_rule(markdown: str, block: Sequence[Unit]) -> list[Unit]:
    """The rows above the rule, but not a name with its value, which a table without a header has there."""
    rule = next(at for at, unit in enumerate(block) if unit.kind == "rule")
    rows = [unit for unit in block[:rule] if unit.kind == "row"][-_MOST_HEADER_ROWS:]
    texts = [_text(markdown, unit).strip("| ") for unit in rows]
    return [] if texts and all(text.count(" | ") == 1 and _has_values(text) for text in texts) else rows


def _above_words(markdown: str, rows: Sequence[Unit]) -> list[Unit]:
    """The rows that name the columns of a table without values: all, if they are few, for the rows may follow in the
    next block; else the first, if it is much shorter than the others."""
    naming = list(takewhile(lambda unit: _names_columns(_text(markdown, unit)), rows))
    if len(naming) == len(rows) <= _MOST_HEADER_ROWS:
        return naming
    usual = sum(unit.end - unit.start for unit in rows) / len(rows)
    return [unit for unit in naming[:1] if 2 * (unit.end - unit.start) < usual]


def _names_columns(row: str) -> bool:
    """Whether a row may name columns: it is short, and holds no values and no sentence."""
    sentences = (cell for cell in row.split(" | ") if cell[-1:] in _ENDS and cell.count(" ") > 4)
    return len(row) <= 2 * _SHORT and not _has_values(row) and not any(sentences)
