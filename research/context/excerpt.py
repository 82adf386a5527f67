"""An item as it grows in a budget: the units of its text, which of them are kept, and how what is kept reads.

What is left out is marked `[…]` where it stood, in a line of its own unless it parts sentences of one paragraph.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from research.context.escape import page_text
from research.context.page_breaks import continuation
from research.models import Item
from research.units import Unit

CUT_MARK = "[…]"
NO_LIMIT = 10**9
_NOT_WORTH_A_MARK = 16  # characters: what is left out is as short as the marks for it


@dataclass(slots=True, eq=False)
class Section:
    """What a section was given and may still use, and the most that one item of it may take."""

    given: float = NO_LIMIT
    left: float = NO_LIMIT
    cap: int = NO_LIMIT
    used: float = 0.0
    full: bool = False  # its next item did not fit


@dataclass(slots=True, eq=False)
class Excerpt:
    """An item while it grows: the units of its text, and which of them are kept."""

    item: Item
    text: str  # with forged marks made harmless
    units: list[Unit]
    best: range  # the units of its best passage
    others: list[range]  # and of the others
    section: Section
    carry: str = ""  # how its last sentence ends on the next page
    room: int = NO_LIMIT  # what it may still take
    costs: dict[int, int] = field(default_factory=dict)  # of its units, as far as they are known
    kept: set[int] = field(default_factory=set)
    headers: set[int] = field(default_factory=set)  # the kept units that are the headers of tables
    clip: int | None = None  # where the last kept unit is cut, if it did not fit whole

    @classmethod
    def uncut(cls, item: Item, section: Section, *, whole: bool) -> Self:
        """The whole item, which nobody has taken apart yet. `whole`: items are asked for as they are."""
        return cls(item, page_text(item.text), [], range(0), [], section, "" if whole else continuation(item))

    @classmethod
    def of(cls, item: Item, section: Section, *, whole: bool) -> Self:
        """An item of which nothing is kept yet."""
        text, units = page_text(item.text), item.units  # which stay in place: it is as long as before
        if not units and text.strip():  # nothing but markup
            units = [Unit(0, len(text), "line", 0, 0)]
        spans = [] if whole else [(each.start, each.end) for each in item.passages if each.end > each.start]
        parts = [part for part in (_overlapping(units, start, end) for start, end in spans) if part]
        best = parts[0] if parts else range(len(units)) if whole else _beginning(units)
        if best and len(text) - (units[best[-1]].end - units[best[0]].start) <= _NOT_WORTH_A_MARK:
            best = range(len(units))
        return cls(item, text, units, best, parts[1:], section, "" if whole else continuation(item))

    @property
    def whole(self) -> bool:
        return self.clip is None and len(self.kept) == len(self.units)

    def header_of(self, index: int) -> range:
        """The units of the header that a row stands under."""
        header = self.units[index].header
        if header is None:
            return range(0)
        first = bisect_left(self.units, header[0], key=lambda unit: unit.start)
        return range(first, bisect_left(self.units, header[1], key=lambda unit: unit.start))

    def block_of(self, units: range) -> range:
        """The paragraphs, lists or tables in which these units stand."""
        first, last = self.units[units[0]].block, self.units[units[-1]].block
        return range(
            bisect_left(self.units, first, key=lambda unit: unit.block),
            bisect_right(self.units, last, key=lambda unit: unit.block),
        )

    def section_of(self, units: range) -> range:
        """Outwards from these units as long as the section is theirs."""
        start, stop = units.start, units.stop
        while start > 0 and self.units[start - 1].section == self.units[units.start].section:
            start -= 1
        while stop < len(self.units) and self.units[stop].section == self.units[units[-1]].section:
            stop += 1
        return range(start, stop)

    def shown(self, begun: Collection[str]) -> Item:
        """The item with the text that is kept. A sentence that runs on is not told twice: `begun` are pages whose
        beginning is shown."""
        ref, number = self.item.ref, int(self.item.ref.part) if self.carry else 0
        carry = bool(self.carry) and (self.whole or len(self.units) - 1 in self.kept)
        carry = carry and str(replace(ref, part=str(number + 1))) not in begun
        cut = self.item.cut or not self.whole
        return replace(self.item, text=self._body(carry=carry), cut=cut, pages=(number, number + 1) if carry else ())

    def _body(self, *, carry: bool) -> str:
        """The text with its marks. `carry`: it goes on to the next page's first sentence end."""
        if self.whole:
            return f"{self.text.rstrip()}{self.carry}" if carry else self.text
        parts: list[str] = []
        last = -1
        for run in self._runs():
            parts += [self._mark(last, run.start), self.text[self._start(run.start) : self._end(run)]]
            last = run[-1]
        if carry:
            parts.append(self.carry)
        elif self.clip is not None or last < len(self.units) - 1:
            parts.append(self._end_mark(last))
        return "".join(parts)

    def _runs(self) -> Iterator[range]:
        """Neighbours among the kept units. A heading at the end of a run promises what does not follow: it goes."""
        kept = sorted(self.kept)
        start = 0
        for at in range(1, len(kept) + 1):
            if at < len(kept) and kept[at] == kept[at - 1] + 1:
                continue
            first, stop = kept[start], kept[at - 1] + 1
            while stop > first and stop < len(self.units) and self._promises(stop - 1):
                stop -= 1
            if stop > first:
                yield range(first, stop)
            start = at

    def _promises(self, index: int) -> bool:
        return self.units[index].kind == "heading" and index not in self.best

    def _start(self, index: int) -> int:
        return self.units[index].start if index else 0

    def _end(self, run: range) -> int:
        last = run[-1]
        if self.clip is not None and last == max(self.kept):
            return self.clip
        if last == len(self.units) - 1:
            return len(self.text.rstrip())
        end = self.units[last].end
        if last in self.headers:  # with the rule below it
            end += len(self.text[end : self.units[last + 1].start].rstrip())
        return end

    def _mark(self, before: int, after: int) -> str:
        """What stands for the units between these two: in a line of its own, unless it parts sentences."""
        if after == 0:
            return ""
        if before < 0:
            return f"{CUT_MARK}{self._gap(after - 1)}"
        if self.units[before].block != self.units[after].block:
            return f"\n\n{CUT_MARK}\n\n"
        gap = self._gap(before)
        return f"{gap}{CUT_MARK}{gap}"

    def _end_mark(self, last: int) -> str:
        inside = self.clip is not None  # a sentence is cut, not what follows it
        return f"{' ' if inside else self._gap(last)}{CUT_MARK}"

    def _gap(self, index: int) -> str:
        """What parts a unit from the next: sentences of one paragraph share its line."""
        left, right = self.units[index : index + 2]
        return " " if left.block == right.block and left.kind == right.kind == "sentence" else "\n"


def _overlapping(units: Sequence[Unit], start: int, end: int) -> range:
    first = bisect_right(units, start, key=lambda unit: unit.end)
    return range(first, max(first, bisect_left(units, end, key=lambda unit: unit.start)))


def _beginning(units: Sequence[Unit]) -> range:
    """To the first unit that is no heading: what stands for a page on which nothing fits the question."""
    for index, unit in enumerate(units):
        if unit.kind != "heading":
            return range(index + 1)
    return range(len(units))
