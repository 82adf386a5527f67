"""The one fitter: as much of the items as fits a budget of tokens, from their passages outwards.

    best passage → its paragraph, list or table → the item's further passages → their section → the whole item

Level by level, and in each level by rank. What is left out is marked `[…]` where it stood. A row keeps its table's
header. Rank stays honest: an item whose best passage does not fit is cut to the room that is left, as the last one; no
lower one takes its place.

With a `Plan` the items stand in sections that share the budget by weight. What a section does not need flows on to the
others, and no item takes more than a part of what its source has.

Tokens are estimated unit by unit, each counted once. What comes out is counted exactly, as a whole: room that was
estimated too small is filled in a further round, and what would go above the limit is taken back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from research.context.page import NO_LIMIT, Excerpt, Section
from research.context.tokens import RunningCount, TokenCounter
from research.models import Extent, Item

LEAST_BODY_TOKENS = 16
"""A cut item must still say something: with fewer tokens than this it is dropped instead."""

_LEAST_CAP = 28  # tokens of its own words that an item has in a section, however small that is
_HEADING_TOKENS = 8  # of a section
_NOTE_TOKENS = 16  # below an item that was cut: where the rest is
_MARK_TOKENS = 3  # a mark and the line break or blank that it brings
_LONGEST_TOKEN = 64  # characters; a text so many times longer than the room is not counted to learn that it is too long
_ROUNDS = 3  # of growth with what an exact count has left
_ENOUGH = 8  # characters a token, more than text of any language has
_WORD_END = re.compile(r"(?<=\S)(?=\s)")


class Renderer(Protocol):
    """How items stand in a text: each as an entry, with something between them and below all of them."""

    def joint(self, before: Item | None, item: Item) -> str:
        """What parts an item from the one before it; in front of the first, what the text begins with."""
        ...

    def entry(self, item: Item, number: int) -> str:
        """An item with what names it."""
        ...

    def end(self, items: Sequence[Item]) -> str: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How sections share a budget. They come out in the order of `weights`; `section_of` names an item's. Sections of
    one source are named source/part, and `most` is the part of a source's share that one item may take."""

    weights: Mapping[str, float]
    section_of: Callable[[Item], str]
    most: float = 0.25


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits: the text, its items as they stand there, its exact tokens, and the items that were left out."""

    text: str
    items: list[Item]
    tokens: int
    dropped: list[Item]
    as_asked: bool = False  # whatever is cut was not asked for: passages were, and they are all there
    costs: list[int] = field(default_factory=list)  # of each item, in tokens

    @property
    def truncated(self) -> bool:
        return bool(self.dropped) or (not self.as_asked and any(item.cut for item in self.items))


def fit_items(
    items: Sequence[Item],
    max_tokens: int,
    renderer: Renderer,
    counter: TokenCounter,
    *,
    extent: Extent = "fit",
    plan: Plan | None = None,
) -> Fitted:
    """As much of the items as fits, the first ones first. Those with passages grow from them to their whole while there
    is room; `extent` "passages" leaves it at them. Without passages, or if "pages" are asked for, an item is taken
    whole, and the one that crosses the budget is cut."""
    whole = extent == "pages" or not any(item.passages for item in items)
    growth = _Growth(items, max_tokens, renderer, counter, plan, whole)
    only = extent == "passages"
    if not only and (everything := growth.everything()) is not None:
        return everything
    growth.begin()
    for _ in range(_ROUNDS if plan is None else 2 * _ROUNDS):
        before = growth.size
        if only:
            growth.further()
        else:
            growth.surroundings()
        fitted, well = growth.settled()
        if (not well or growth.size == before) and not growth.open_sections():
            break
    return replace(fitted, as_asked=only and growth.has_all_passages)


def shares(weights: Mapping[str, float], total: float) -> dict[str, float]:
    """The total by weight."""
    sum_of_weights = sum(weights.values())
    return {name: weight / sum_of_weights * total for name, weight in weights.items()} if sum_of_weights else {}


def allotted(weights: Mapping[str, float], needs: Mapping[str, float], total: float) -> dict[str, float]:
    """What each may use: its share, and of what others leave over its part by weight. Where all need less than there
    is, each gets what it needs."""
    given: dict[str, float] = {}
    open_to_more, left = {name: weight for name, weight in weights.items() if weight > 0}, total
    while open_to_more:
        parts = shares(open_to_more, left)
        content = [name for name in open_to_more if needs.get(name, 0.0) <= parts[name]]
        if not content:
            return {**dict.fromkeys(weights, 0.0), **given, **parts}
        for name in content:
            given[name] = needs.get(name, 0.0)
            left -= given[name]
            del open_to_more[name]
    return {**dict.fromkeys(weights, 0.0), **given}


@dataclass(slots=True, eq=False)
class _Growth:
    """The budget, and the items that grow in it."""

    items: Sequence[Item]
    max: int
    renderer: Renderer
    counter: TokenCounter
    plan: Plan | None
    whole: bool
    left: int = 0
    pages: list[Excerpt] = field(default_factory=list)
    steps: list[tuple[Excerpt, list[int]]] = field(default_factory=list)  # what was kept, in order, to be taken back
    sections: dict[str, Section] = field(default_factory=dict)
    balanced: bool = False  # sections that came out longer than estimated have given back what is not theirs

    def __post_init__(self) -> None:
        self.left = self.max
        if self.plan is not None and self.items:
            self._share(self.plan)

    @property
    def size(self) -> int:
        """How many units are kept."""
        return sum(len(page.kept) for page in self.pages)

    @property
    def has_all_passages(self) -> bool:
        wanted = ((page, index) for page in self.pages for part in (page.best, *page.others) for index in part)
        return all(page.clip is None and index in page.kept for page, index in wanted)

    def everything(self) -> Fitted | None:
        """All items whole, if there is room. Nothing is cut up for that."""
        if sum(len(item.text.split()) for item in self.items) > self.max:  # a word has a token at least
            return None
        self.pages = [Excerpt.uncut(item, self._section(item), whole=self.whole) for item in self.items]
        fitted, over = self._fitted()
        return None if over else fitted

    def begin(self) -> None:
        """Each item's best passage, in order, until one does not fit; in sections, until one does not in any."""
        self.pages, self.left = [], self.max - (self._frame() if self.plan else 0)
        for item in self.items:
            page = self._page(item)
            if not page.section.full and not self._begun(page):
                if self.plan is None:
                    break
                page.section.full = True

    def open_sections(self) -> bool:
        """What is left goes item by item to whichever section is furthest below what it was given, and none gets more
        than an item above that; whether any did."""
        if self.plan is None:
            return False
        shown, before = {id(page.item) for page in self.pages}, len(self.pages)
        waiting: dict[str, list[Item]] = {}
        for item in self.items:
            if id(item) not in shown:
                waiting.setdefault(self.plan.section_of(item), []).append(item)
        for section in self.sections.values():
            section.left = NO_LIMIT
        while waiting:
            name = max(waiting, key=lambda name: self.sections[name].given - self.sections[name].used)
            section, items = self.sections[name], waiting[name]
            above = section.used >= section.given and len(self.sections) > 1
            if above or not self._begun(self._page(items.pop(0))) or not items:
                del waiting[name]
        return len(self.pages) > before

    def further(self) -> None:
        """The other passages of each item."""
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
        while True:
            fitted, over = self._fitted()
            if not over:
                break
            [too_long] = over
            if too_long is not None:
                self._shorten(too_long)
                continue
            # Twice as much each time: an item may be made so that every estimate is too low.
            for _ in range(min(len(self.steps), max(1, taken))):
                self._take_back(*self.steps.pop())
                taken += 1
        self.left = self.max - fitted.tokens
        if self.plan is not None:
            for section in self.sections.values():
                section.used = 0.0
            for page, cost in zip(self._in_order(), fitted.costs, strict=True):
                page.section.used += cost
            if not self.balanced and self._balance(fitted.costs):
                return self.settled()
            for section in self.sections.values():
                section.left = section.given - section.used
        return fitted, not taken

    def _balance(self, costs: Sequence[int]) -> bool:
        """Take the last items of sections back that came out longer than was estimated, so that others get what is
        theirs; once, and whether there were any."""
        self.balanced = True
        before, shown = len(self.pages), {id(page.item) for page in self.pages}
        wanting = {id(self._section(item)) for item in self.items if id(item) not in shown}
        if any(id(section) in wanting and section.used < section.given for section in self.sections.values()):
            for page, cost in reversed(list(zip(self._in_order(), costs, strict=True))):
                if page.section.used - cost >= page.section.given:
                    page.section.used -= cost
                    self.pages = [other for other in self.pages if other is not page]
                    self.steps = [step for step in self.steps if step[0] is not page]
        return len(self.pages) < before

    def _share(self, plan: Plan) -> None:
        """What flows on makes items longer, too: a source that is alone has the whole budget as its own."""
        used = {plan.section_of(item) for item in self.items}
        weights = {name: weight for name, weight in plan.weights.items() if name in used}
        room = max(0, self.max - self._frame() - _HEADING_TOKENS * len(used))
        given = shares(weights, room)
        for _ in range(2):
            caps = self._caps(given)
            needs = dict.fromkeys(weights, 0.0)
            for item in self.items:
                name = plan.section_of(item)
                if needs[name] <= room:
                    needs[name] += min(self._entry_cost(item, caps[name]), caps[name])
            flowed = allotted(weights, needs, room)
            given = {name: max(given[name], flowed[name]) for name in weights}
        caps = self._caps(given)
        self.sections = {name: Section(flowed[name], flowed[name], int(caps[name])) for name in weights}

    def _caps(self, given: Mapping[str, float]) -> dict[str, float]:
        """The most of one item, by what its source has, of which several sections may tell."""
        assert self.plan is not None
        whole: dict[str, float] = {}
        for name, tokens in given.items():
            source = name.partition("/")[0]
            whole[source] = whole.get(source, 0.0) + tokens
        return {name: self.plan.most * whole[name.partition("/")[0]] for name in given}

    def _entry_cost(self, item: Item, most: float) -> float:
        if len(item.text) > _LONGEST_TOKEN * most:
            return most
        return self.counter.count(self.renderer.entry(item, 1)) + 1

    def _frame(self) -> int:
        """What stands around the sections."""
        if not self.items:
            return 0
        return self.counter.count(self.renderer.joint(None, self.items[0]) + self.renderer.end(self.items))

    def _section(self, item: Item) -> Section:
        if self.plan is None:
            return self.sections.setdefault("", Section())
        return self.sections[self.plan.section_of(item)]

    def _page(self, item: Item) -> Excerpt:
        return Excerpt.of(item, self._section(item), whole=self.whole)

    def _begun(self, page: Excerpt) -> bool:
        """Keep an item's best passage, or as much of it as there is room for."""
        section = page.section
        bare = replace(page.item, text="")
        before = self._before(page)
        joint, entry = self.renderer.joint(before, bare), self.renderer.entry(bare, len(self.pages) + 1)
        # A section's heading is not the section's to pay.
        parting = 0 if self.plan is None else self.counter.count(joint)
        head = self.counter.count(joint + entry if self.plan is None else entry)
        if head + parting > self.left or head > section.left:
            return False
        self.left -= parting
        page.room = NO_LIMIT if self.plan is None else max(section.cap, head + _LEAST_CAP + _NOTE_TOKENS)
        self._pay(page, head)
        self.pages.append(page)
        marks = _MARK_TOKENS * ((page.best.start > 0) + (page.best.stop < len(page.units)))
        may_cut = self.plan is None or page.room < min(self.left, section.left)
        if self._keep(page, page.best, marks) or (may_cut and self._clip(page)):
            return True
        self.pages.pop()
        self._pay(page, -head)
        self.left += parting
        return False

    def _before(self, page: Excerpt) -> Item | None:
        """What an item will stand below, as far as that matters for what stands between them."""
        if self.plan is None:
            return self.pages[-1].item if self.pages else None
        same = (other.item for other in self.pages if other.section is page.section)
        return next(same, self.pages[-1].item if self.pages else None)

    def _take_back(self, page: Excerpt, units: Collection[int]) -> None:
        page.kept.difference_update(units)
        page.headers &= page.kept
        if page.kept.isdisjoint(page.best):
            self.pages = [other for other in self.pages if other is not page]

    def _shorten(self, page: Excerpt) -> None:
        """By its last words that are not those it was found for."""
        outside = page.kept.difference(page.best)
        self._take_back(page, [max(outside or page.kept)])

    def _growing(self) -> Iterator[Excerpt]:
        for page in self.pages:
            if page.clip is None and not page.whole:
                yield page

    def _room(self, page: Excerpt) -> int:
        return int(min(self.left, page.section.left, page.room))

    def _pay(self, page: Excerpt, cost: int) -> None:
        self.left -= cost
        page.section.left -= cost
        page.section.used += cost
        page.room -= cost

    def _keep(self, page: Excerpt, units: range, marks: int = 0) -> bool:
        """Keep these units and the headers of their tables, if they fit."""
        headers = {index for unit in units for index in page.header_of(unit)}
        new = sorted(({*units} | headers) - page.kept)
        cost, room = marks, self._room(page)
        for index in new:
            if (cost := cost + self._cost(page, index)) > room:
                return False
        self._pay(page, cost)
        page.kept.update(new)
        page.headers |= headers
        self.steps.append((page, new))
        return True

    def _cost(self, page: Excerpt, index: int) -> int:
        """Tokens of a unit with what stands before it, and of the next page's words for the last one."""
        if index not in page.costs:
            start = page.units[index - 1].end if index else 0
            last = index == len(page.units) - 1
            text = page.text[start : page.units[index].end] + (page.carry if last else "")
            if len(text) > _LONGEST_TOKEN * self.max:
                return self.max + 1
            page.costs[index] = self.counter.count(text)
        return page.costs[index]

    def _outwards(self, page: Excerpt, inner: range, outer: range) -> None:
        """Grow from within to these borders, a unit after it and a unit before it in turn, while they fit."""
        after, before = inner.stop, inner.start - 1
        while after < outer.stop or before >= outer.start:
            if after < outer.stop:
                after = after + 1 if after in page.kept or self._keep(page, range(after, after + 1)) else outer.stop
            if before >= outer.start:
                fits = before in page.kept or self._keep(page, range(before, before + 1))
                before = before - 1 if fits else outer.start - 1

    def _clip(self, page: Excerpt) -> bool:
        """As much of the best passage as there is room for: whole units, or the first one's words."""
        units = page.best
        marks = 2 * _MARK_TOKENS + (_NOTE_TOKENS if self.plan else 0)
        room = self._room(page)
        if room < LEAST_BODY_TOKENS or not units:
            return False
        used, stop = marks, units.start
        while stop < units.stop - 1 and (used := used + self._cost(page, stop)) <= room:
            stop += 1
        for end in range(stop, units.start, -1):
            if self._keep(page, range(units.start, end), marks):
                return True
        first = page.units[units.start]
        room -= marks
        header = page.header_of(units.start)
        # The row itself matters more than its header, where there is no room for both.
        if sum(self._cost(page, index) for index in header) <= room // 2 and self._keep(page, header):
            page.headers.update(header)
            room = self._room(page) - marks
        end = self._word_end(page.text[first.start : first.end], room)
        if not end:
            return False
        page.kept.add(units.start)
        page.clip = first.start + end
        self._pay(page, room + marks)
        self.steps.append((page, [units.start]))
        return True

    def _word_end(self, text: str, room: int) -> int:
        """How much of a text has room, up to the end of a word; 0 if none."""
        text = text[: _LONGEST_TOKEN * max(0, room)]
        length = tokens = 0
        for piece in self.counter.pieces(text):
            tokens += self.counter.count_pieces([piece])
            if tokens > room:
                break
            length += len(piece)
        if length == len(text):
            return length
        ends = [match.start() for match in _WORD_END.finditer(text, 0, length + 1)]
        if ends:
            return ends[-1]
        length = min(len(text), _ENOUGH * max(0, room))  # a word longer than the room
        while length > _ENOUGH and self.counter.count(text[:length]) > room:
            length = length * 4 // 5
        return length if length > _ENOUGH else 0

    def _in_order(self) -> list[Excerpt]:
        """As they come out: section by section, and in each by rank."""
        if self.plan is None:
            return self.pages
        places = {name: place for place, name in enumerate(self.plan.weights)}
        ranks = {id(item): rank for rank, item in enumerate(self.items)}
        section_of = self.plan.section_of
        return sorted(self.pages, key=lambda page: (places[section_of(page.item)], ranks[id(page.item)]))

    def _fitted(self) -> tuple[Fitted, tuple[Excerpt | None, ...]]:
        """The text of the items with its exact tokens; and, if there is too much of it, what of it is too long: an item
        or, None, the whole."""
        pages = self._in_order()
        begun = {str(page.item.ref) for page in pages if page.whole or 0 in page.kept}
        parts: list[str] = []
        items: list[Item] = []
        costs: list[int] = []
        count, used = RunningCount(self.counter), 0
        for number, page in enumerate(pages, start=1):
            item = page.shown(begun)
            entry = self.renderer.entry(item, number)
            if page.section.cap < NO_LIMIT and self._is_too_long(page, item, entry):
                return _NOTHING, (page,)
            parts.append(self.renderer.joint(items[-1] if items else None, item) + entry)
            items.append(item)
            head = parts[-1].find("\n", len(parts[-1]) - len(entry)) + 1
            count = count.plus(parts[-1][:head]).plus(parts[-1][head:])  # a page is known whatever its number
            costs.append(count.tokens - used)
            used += costs[-1]
            if used > self.max:
                return _NOTHING, (None,)
        if end := self.renderer.end(items) if items else "":
            parts.append(end)
            used = count.plus(end).tokens
            if used > self.max:
                return _NOTHING, (None,)
        shown = {id(page.item) for page in pages}
        dropped = [item for item in self.items if id(item) not in shown]
        return Fitted("".join(parts), items, used, dropped, costs=costs), ()

    def _is_too_long(self, page: Excerpt, item: Item, entry: str) -> bool:
        """Whether it takes more than its part, though it could be shorter."""
        if len(page.kept) < 2 and page.units:
            return False
        bare = self.counter.count(self.renderer.entry(replace(item, text="", cut=True), 1))
        return self.counter.count(entry) > max(page.section.cap, bare + _LEAST_CAP)


_NOTHING = Fitted("", [], 0, [])
