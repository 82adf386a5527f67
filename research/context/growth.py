"""The budget by passages: each source its header and best passage first, then more of its page while there is room.

    best passage → its paragraph, list or table → the page's further passages → their section → the whole page

Level by level, and in each level by rank. What is left out of a page is marked `[…]` where it stood. A row keeps its
table's header. Rank stays honest: a source whose best passage does not fit is cut to the room that is left, as the
last one; no lower one takes its place.

Tokens are estimated unit by unit, each counted once. What comes out is counted exactly, as a whole: room that was
estimated too small is filled in a second round, and what would go above the limit is taken back.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from research.context.page_breaks import continuation, neutralize_page_marks
from research.context.pipeline import CUT_MARK, LEAST_BODY_TOKENS, Fitted, Renderer
from research.context.tokens import RunningCount, TokenCounter
from research.models import Item
from research.units import Unit

_MARK_TOKENS = 3  # a mark and the line break or blank that it brings
_LONGEST_TOKEN = 64  # characters; a text so many times longer than the room is not counted to learn that it is too long
_NOT_WORTH_A_MARK = 16  # characters: what is left out is as short as the marks for it
_ROUNDS = 3  # of growth with what an exact count has left
_WORD_END = re.compile(r"(?<=\S)(?=\s)")


@dataclass(slots=True, eq=False)
class _Page:
    """A source while it grows: the units of its page, and which of them are kept."""

    item: Item
    text: str  # of the page, with forged marks made harmless
    units: list[Unit]
    best: range  # the units of its best passage
    others: list[range]  # and of the others
    carry: str = ""  # how its last sentence ends on the next page
    kept: set[int] = field(default_factory=set)
    headers: set[int] = field(default_factory=set)  # the kept units that are the headers of tables
    clip: int | None = None  # where the last kept unit is cut, if it did not fit whole

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

    def body(self, *, carry: bool) -> str:
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


class _Growth:
    """The budget, and the pages that grow in it."""

    def __init__(self, items: Sequence[Item], max_tokens: int, renderer: Renderer, counter: TokenCounter) -> None:
        self._items = items
        self._max = max_tokens
        self._renderer = renderer
        self._counter = counter
        self._left = max_tokens
        self._pages: list[_Page] = []
        self._steps: list[tuple[_Page, list[int]]] = []  # what was kept, in order, to be taken back
        self._costs: dict[tuple[int, int], int] = {}

    @property
    def size(self) -> int:
        """How many units are kept."""
        return sum(len(page.kept) for page in self._pages)

    @property
    def has_all_passages(self) -> bool:
        wanted = ((page, index) for page in self._pages for part in (page.best, *page.others) for index in part)
        return all(page.clip is None and index in page.kept for page, index in wanted)

    def whole(self) -> Fitted | None:
        """All pages whole, if there is room. Nothing is cut up for that."""
        self._pages = [
            _Page(item, neutralize_page_marks(item.text), [], range(0), [], continuation(item)) for item in self._items
        ]
        return self._fitted()

    def passages(self) -> None:
        """Each source's best passage, in order, until one does not fit."""
        self._pages, self._left = [], self._max
        for number, item in enumerate(self._items, start=1):
            page = _page(item)
            head = f"{self._renderer.separator if self._pages else ''}{self._renderer.header(item, number)}\n"
            room = self._left - self._counter.count(head)
            if room < 0:
                break
            self._pages.append(page)
            kept, self._left = self._left, room
            marks = _MARK_TOKENS * ((page.best.start > 0) + (page.best.stop < len(page.units)))
            if self._keep(page, page.best, marks):
                continue
            if not self._clip(page):
                self._pages.pop()
                self._left = kept
            break

    def further(self) -> None:
        """The other passages of each page."""
        for page in self._growing():
            for other in page.others:
                if not self._keep(page, other, 2 * _MARK_TOKENS):
                    break

    def surroundings(self) -> None:
        for page in self._growing():
            self._outwards(page, page.best, page.block_of(page.best))
        self.further()
        for page in self._growing():
            block = page.block_of(page.best)
            self._outwards(page, block, page.section_of(block))
        for page in self._growing():
            self._outwards(page, page.best, range(len(page.units)))

    def settled(self) -> tuple[Fitted, bool]:
        """What there is now, within the limit, and whether nothing had to be taken back for it."""
        taken = 0
        while (fitted := self._fitted()) is None:
            # Twice as much each time: a page may be made so that every estimate is too low.
            for _ in range(min(len(self._steps), max(1, taken))):
                self._take_back()
                taken += 1
        self._left = self._max - fitted.tokens
        return fitted, not taken

    def _take_back(self) -> None:
        page, units = self._steps.pop()
        page.kept.difference_update(units)
        page.headers &= page.kept
        if page.kept.isdisjoint(page.best):
            self._pages = [other for other in self._pages if other is not page]

    def _growing(self) -> Iterator[_Page]:
        for page in self._pages:
            if page.clip is None and not page.whole:
                yield page

    def _keep(self, page: _Page, units: range, marks: int = 0) -> bool:
        """Keep these units and the headers of their tables, if they fit."""
        headers = {index for unit in units for index in page.header_of(unit)}
        new = sorted(({*units} | headers) - page.kept)
        cost = marks
        for index in new:
            if (cost := cost + self._cost(page, index)) > self._left:
                return False
        self._left -= cost
        page.kept.update(new)
        page.headers |= headers
        self._steps.append((page, new))
        return True

    def _cost(self, page: _Page, index: int) -> int:
        """Tokens of a unit with what stands before it, and of the next page's words for the last one."""
        key = (id(page), index)
        if key not in self._costs:
            start = page.units[index - 1].end if index else 0
            last = index == len(page.units) - 1
            text = page.text[start : page.units[index].end] + (page.carry if last else "")
            if len(text) > _LONGEST_TOKEN * self._max:
                return self._max + 1
            self._costs[key] = self._counter.count(text)
        return self._costs[key]

    def _outwards(self, page: _Page, inner: range, outer: range) -> None:
        """Grow from within to these borders, a unit after it and a unit before it in turn, while they fit."""
        after, before = inner.stop, inner.start - 1
        while after < outer.stop or before >= outer.start:
            if after < outer.stop:
                after = after + 1 if after in page.kept or self._keep(page, range(after, after + 1)) else outer.stop
            if before >= outer.start:
                fits = before in page.kept or self._keep(page, range(before, before + 1))
                before = before - 1 if fits else outer.start - 1

    def _clip(self, page: _Page) -> bool:
        """As much of the best passage as there is room for: whole units, or the first one's words."""
        units = page.best
        marks = 2 * _MARK_TOKENS
        if self._left < LEAST_BODY_TOKENS or not units:
            return False
        for stop in range(units.stop - 1, units.start, -1):
            if self._keep(page, range(units.start, stop), marks):
                return True
        first = page.units[units.start]
        room = self._left - marks
        header = page.header_of(units.start)
        # The row itself matters more than its header, where there is no room for both.
        if sum(self._cost(page, index) for index in header) <= room // 2 and self._keep(page, header):
            page.headers.update(header)
            room = self._left - marks
        end = self._word_end(page.text[first.start : first.end], room)
        if not end:
            return False
        page.kept.add(units.start)
        page.clip = first.start + end
        self._left = 0
        self._steps.append((page, [units.start]))
        return True

    def _word_end(self, text: str, room: int) -> int:
        """How much of a text has room, up to the end of a word; 0 if none."""
        text = text[: _LONGEST_TOKEN * max(0, room)]
        length = tokens = 0
        for piece in self._counter.pieces(text):
            tokens += self._counter.count_pieces([piece])
            if tokens > room:
                break
            length += len(piece)
        if length == len(text):
            return length
        ends = [match.start() for match in _WORD_END.finditer(text, 0, length + 1)]
        return ends[-1] if ends else 0

    def _fitted(self) -> Fitted | None:
        """The text of the pages with its exact tokens; None if they are above the limit."""
        begun = {str(page.item.ref) for page in self._pages if page.whole or 0 in page.kept}
        parts: list[str] = []
        items: list[Item] = []
        count = RunningCount(self._counter)
        for number, page in enumerate(self._pages, start=1):
            item = _shown(page, begun)
            head = f"{self._renderer.separator if parts else ''}{self._renderer.header(item, number)}\n"
            parts.append(head + self._renderer.body(item.text))
            items.append(item)
            count = count.plus(parts[-1])
            if count.tokens > self._max:
                return None
        return Fitted("".join(parts), items, count.tokens, list(self._items[len(items) :]))


def fit_passages(
    items: Sequence[Item], max_tokens: int, renderer: Renderer, counter: TokenCounter, *, only: bool = False
) -> Fitted:
    """The items with as much of them as fits, from their passages outwards. `only`: nothing but the passages."""
    growth = _Growth(items, max_tokens, renderer, counter)
    if not only and (whole := growth.whole()) is not None:
        return whole
    growth.passages()
    for _ in range(_ROUNDS):
        before = growth.size
        if only:
            growth.further()
        else:
            growth.surroundings()
        fitted, well = growth.settled()
        if not well or growth.size == before:
            break
    return replace(fitted, as_asked=only and growth.has_all_passages)


def _page(item: Item) -> _Page:
    text, units = neutralize_page_marks(item.text), item.units  # which stay where they are: it is as long as before
    if not units and text.strip():  # nothing but markup
        units = [Unit(0, len(text), "line", 0, 0)]
    spans = [(passage.start, passage.end) for passage in item.passages if passage.end > passage.start]
    parts = [part for part in (_overlapping(units, start, end) for start, end in spans) if part]
    best = parts[0] if parts else _beginning(units)
    if best and len(text) - (units[best[-1]].end - units[best[0]].start) <= _NOT_WORTH_A_MARK:
        best = range(len(units))
    return _Page(item, text, units, best, parts[1:], continuation(item))


def _overlapping(units: Sequence[Unit], start: int, end: int) -> range:
    first = bisect_right(units, start, key=lambda unit: unit.end)
    return range(first, max(first, bisect_left(units, end, key=lambda unit: unit.start)))


def _beginning(units: Sequence[Unit]) -> range:
    """To the first unit that is no heading: what stands for a page on which nothing fits the question."""
    for index, unit in enumerate(units):
        if unit.kind != "heading":
            return range(index + 1)
    return range(len(units))


def _shown(page: _Page, begun: Collection[str]) -> Item:
    """The item with the text that is kept. A sentence that runs on is not told twice: `begun` are pages whose
    beginning is shown."""
    ref, number = page.item.ref, int(page.item.ref.part) if page.carry else 0
    carry = bool(page.carry) and (page.whole or len(page.units) - 1 in page.kept)
    carry = carry and str(replace(ref, part=str(number + 1))) not in begun
    cut = page.item.cut or not page.whole
    return replace(page.item, text=page.body(carry=carry), cut=cut, pages=(number, number + 1) if carry else ())
