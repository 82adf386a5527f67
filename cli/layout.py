"""Text put into the cells of a terminal: shortened where it may be, wrapped between words, tables in columns.

Widths are cells, not characters: a Chinese one takes two.

A text that comes piece by piece, broken between words where a line of the terminal is full.

Links on a terminal (OSC 8): which terminals are given them, and text that carries one.

A terminal that does not know them shows the text alone, so they are left out only where they are known to do harm: on
consoles and in Emacs, which print the escapes, and in a VTE before 0.50, which crashed over them. `links` in the
settings, or CTX_LINKS, says it otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cli.output import on_terminal
from research.markdown import BULLET, Block, Marker

if TYPE_CHECKING:
    from rich.text import Text

ELLIPSIS = "…"
GAP = "  "  # between the columns of a table
BETWEEN = " · "  # the cells of a row that does not fit in columns

MARK = "bold"


def plain(text: str, style: str = "") -> Text:
    """Text as it is, styled as a whole."""
    from rich.text import Text

    return Text(text, style=style)


def cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def shorten_end(text: str, width: int) -> str:
    """The beginning of a text, and an ellipsis where something is missing."""
    if cells(text) <= width:
        return text
    return _beginning(text, width - 1) + ELLIPSIS if width > 0 else ""


def shorten_middle(text: str, width: int) -> str:
    """The beginning and the end of a name: the one tells what it is, the other which."""
    if cells(text) <= width:
        return text
    if width < 3:
        return shorten_end(text, width)
    end = _beginning(text[::-1], (width - 1) // 2)[::-1]
    while end and not cells(end[0]):  # an accent whose letter is not there
        end = end[1:]
    return _beginning(text, width - 1 - cells(end)) + ELLIPSIS + end


def shorten_path(path: str, width: int, between: str = " > ") -> str:
    """Headings, outermost first: those in the middle go before the last one is touched."""
    parts = path.split(between)
    if cells(path) <= width or len(parts) == 1:
        return shorten_middle(path, width)
    for shown in (
        *(between.join([parts[0], ELLIPSIS, *parts[i:]]) for i in range(2, len(parts))),
        between.join([ELLIPSIS, parts[-1]]),
    ):
        if cells(shown) <= width:
            return shown
    return shorten_middle(parts[-1], width)


def _beginning(text: str, width: int) -> str:
    """As many characters as fit into the width."""
    end = used = 0
    while end < len(text) and used <= width:
        used += cells(text[end])
        end += 1
    while end and cells(text[:end]) > width:  # signs that join may be wider than their parts
        end -= 1
    return text[:end]


def packed(parts: Sequence[str], width: int, between: str = BETWEEN) -> list[str]:
    """Short parts on as few lines as they need, broken only between them."""
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]}{between}{part}" if lines else ""
        if lines and cells(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return [shorten_end(line, width) for line in lines]


def marked(text: str, mark: Marker, style: str = "") -> Text:
    shown = plain(text, style)
    for start, end in mark(text):
        shown.stylize(MARK, start, end)
    return shown


def wrapped(text: Text, width: int) -> list[Text]:
    """Lines of at most `width` cells, broken between words where there are any."""
    from rich.console import Console

    lines = text.wrap(Console(width=max(1, width)), max(1, width), overflow="fold")
    for line in lines:
        line.rstrip()
    return list(lines)


def passage_lines(found: Sequence[Block], width: int, mark: Marker) -> list[Text]:
    """A passage for a glance: marks on the words that fit, tables in columns where they fit."""
    return [line for each in found for line in _passage_lines(each, width, mark)]


def _passage_lines(found: Block, width: int, mark: Marker) -> Iterator[Text]:
    if found.kind == "table":
        yield from table_lines(found.rows, width, mark)
    elif found.kind == "code":
        yield from (marked(shorten_end(line, width), mark) for line in found.text.split("\n") if line.strip())
    elif found.kind == "item" and found.text.startswith(BULLET):
        lines = wrapped(marked(found.text.removeprefix(BULLET), mark), width - len(BULLET))
        for number, line in enumerate(lines):
            yield plain(" " * len(BULLET) if number else BULLET).append_text(line)
    else:
        yield from wrapped(marked(found.text, mark, "dim" if found.kind == "heading" else ""), width)


def head_lines(found: Sequence[Block], width: int) -> int:
    """How many of a passage's lines are the header of the table it begins with."""
    if not found or found[0].kind != "table" or len(found[0].rows) < 2:
        return 0
    return 1 if fits_in_columns(found[0].rows, width) else len(list(table_lines(found[0].rows[:1], width, _nothing)))


def _nothing(_: str) -> Sequence[tuple[int, int]]:
    return ()


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    columns = max(len(row) for row in rows)
    return [max((cells(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]


def fits_in_columns(rows: Sequence[Sequence[str]], width: int) -> bool:
    """A row alone has none: nothing stands below it."""
    widths = column_widths(rows)
    return len(rows) > 1 and sum(widths) + len(GAP) * (len(widths) - 1) <= width


def table_lines(rows: Sequence[Sequence[str]], width: int, mark: Marker) -> Iterator[Text]:
    """The rows in columns; as text, broken between cells, where they are too wide for that."""
    widths = column_widths(rows)
    if fits_in_columns(rows, width):
        for row in rows:
            line = plain("")
            for cell, room in zip(row, widths, strict=False):
                line.append_text(marked(cell, mark)).append(" " * (room - cells(cell)) + GAP)
            line.rstrip()
            yield line
        return
    for row in rows:
        yield from (marked(line, mark) for line in row_lines(row, width))


def row_lines(row: Sequence[str], width: int) -> list[str]:
    """A row as text, broken between cells; what goes on is indented."""
    parts = [cell for cell in row if cell]
    lines = packed(parts, width)
    return (
        lines if len(lines) < 2 else [line if not n else GAP + line for n, line in enumerate(packed(parts, width - 2))]
    )


def excerpt(lines: Sequence[Text], count: int, width: int, *, indent: int = 0, head: int = 0) -> list[Text]:
    """The `count` lines in which most of the marked words stand, the first of such, after `head` lines that stay: a
    table's header. An ellipsis stands where lines are missing, before them in the indent, which is not of `width`."""
    if len(lines) <= count:
        return [plain(" " * indent).append_text(line) for line in lines]
    head = head if head < count else 0
    room = count - head
    held = [{line.plain[s.start : s.end].casefold() for s in line.spans if s.style == MARK} for line in lines]
    first = max(range(head, len(lines) - room + 1), key=lambda i: (len(set().union(*held[i : i + room])), -i))
    chosen = [*lines[:head], *lines[first : first + room]]
    if first + room < len(lines):
        chosen[-1] = _going_on(chosen[-1], width)
    before = (ELLIPSIS + " ").rjust(indent) if first > head and indent > 1 else " " * indent
    return [plain(before if number == head else " " * indent).append_text(line) for number, line in enumerate(chosen)]


def _going_on(line: Text, width: int) -> Text:
    """The line with an ellipsis at its end, shortened by whole words where it has some."""
    text = line.plain
    if cells(text) + 2 > width:
        text = _beginning(text, max(1, width - 2))
        if not line.plain[len(text) :].startswith(" "):
            text = text[: text.rfind(" ")] if " " in text else text
    kept = line[: len(text.rstrip())]
    return kept.append(f" {ELLIPSIS}" if width > 2 else "")


_PARTS = re.compile(r"\n| +|[^ \n]+")


class WordWrap:
    """Passes on what it can at once: a word is held back only until it is known whether it fits its line."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._at = 0  # cells of the line that are taken
        self._held = ""  # a gap, and the word after it as far as it has come

    def feed(self, text: str) -> str:
        """What may be shown now."""
        shown = []
        for part in _PARTS.findall(text):
            if part == "\n":
                shown += [self.end(), part]
                self._at = 0
            elif part.isspace():
                shown.append("" if self._held.isspace() else self.end())
                self._held += part
            elif self._held:
                self._held += part
            else:
                shown.append(part)
                self._at += cells(part)
        return "".join(shown)

    def end(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        if self._at and self._at + cells(held) > self._width:
            word = held.lstrip(" ")
            self._at = cells(word) or self._at
            return f"\n{word}" if word else ""
        self._at += cells(held)
        return held


_WITHOUT = ("dumb", "unknown", "linux", "cons", "vt", "eterm", "emacs", "ansi", "sun", "bsdos")
_FIRST_VTE = 5000  # 0.50.0


def has_links(setting: str, environment: Mapping[str, str] | None = None) -> bool:
    """Whether what is printed may carry links: never in a pipe or a file."""
    if setting == "off" or not on_terminal():
        return False
    return setting == "on" or knows_links(os.environ if environment is None else environment)


def knows_links(environment: Mapping[str, str]) -> bool:
    term = environment.get("TERM", "")
    vte = environment.get("VTE_VERSION", "")
    if not term or term.startswith(_WITHOUT) or "INSIDE_EMACS" in environment:
        return False
    return not (vte.isdecimal() and int(vte) < _FIRST_VTE)


def link(text: Text, uri: str, *, links: bool) -> Text:
    """The text, which opens the URI when it is clicked. The URI is percent-encoded, so it cannot end the escape."""
    if links and uri.isascii() and uri.isprintable():
        from rich.style import Style

        text.stylize(Style(link=uri))
    return text
