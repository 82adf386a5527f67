"""What is known of a page's text: the sections it stands in, what runs on over its end, and the part that is shown.

Headings are those of the stored markdown. A bookmark that no line of its page repeats is known from the page's section
path alone. Running headers repeat a heading on page after page; in a table of contents it counts where it comes first.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from research.context.escape import page_text
from research.models import DocumentOutline, Item, OutlineEntry, PageBeginning, Passage
from research.records import DocumentInfo
from research.store import PageText
from research.text import UNSPACED
from research.units import Unit, iter_units

if TYPE_CHECKING:
    from research.store import Reader

_SEPARATOR = " > "  # of the stored path
_MOST_NAME = 120  # characters of a heading in a path, as in ingest/pdf/headings.py
_MOST_TITLE = 200
# A page of nothing but headings is no table of contents.
_MOST_ON_PAGE = 200
_MOST_LINES = 5000  # of a page
_FENCE = "```"
_NUMBER = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){0,5}|[A-Z])[.):]?\s+(?=\S)")  # a bookmark often lacks its heading's
_BEGINNING = 80  # characters of a page

_Heading = tuple[int, int, str]  # where it begins, its level, its title


def section_path(markdown: str, units: Sequence[Unit], at: int, stored: str) -> str:
    """The path for what stands at this place. `stored` is that of the page, in force where its main text begins.

    The levels of headings on earlier pages are not known. Of the stored path, what stands above a heading is taken if
    the page shows that it does: if the heading, or one of its level before the main text, is named in it. Otherwise
    the page's own headings stand alone, which is less and never wrong.
    """
    headings = [_heading(markdown, unit) for unit in units if unit.kind == "heading" and unit.start <= at]
    above: list[_Heading] = []
    for heading in headings:
        while above and above[-1][1] >= heading[1]:
            above.pop()
        above.append(heading)
    if not above:
        return stored
    main = next((unit.start for unit in units if unit.kind != "heading"), len(markdown))
    names = stored.split(_SEPARATOR)
    known = [_letters(name) for name in names]
    for start, level, title in headings:
        if start < main and level == above[0][1] and _letters(title) in known:
            names = names[: known.index(_letters(title))]
            break
    else:
        names = []
    return _SEPARATOR.join([*names, *(title for _, _, title in above)])


def _heading(markdown: str, unit: Unit) -> _Heading:
    line = markdown[unit.start : unit.end]
    marks = len(line) - len(line.lstrip("#"))
    title = " ".join(line[marks:].replace(_SEPARATOR, " › ").split())
    return unit.start, marks, title if len(title) <= _MOST_NAME else f"{title[: _MOST_NAME - 1].rstrip()}…"


def _letters(title: str) -> str:
    """Letters and digits only, without case: how titles are compared."""
    return "".join(filter(str.isalnum, title.casefold()))


def document_outline(document: DocumentInfo, pages: Iterable[PageText]) -> DocumentOutline:
    """Of pages that come in order."""
    read = list(pages)
    entries = outline_of(read)
    return DocumentOutline(document, entries, [] if entries else [_page_beginning(page) for page in read])


def outline_of(pages: Iterable[PageText]) -> list[OutlineEntry]:
    """The headings of pages that come in order."""
    entries: list[OutlineEntry] = []
    above: list[tuple[float, str]] = []  # the headings in force: level as marked, folded title
    before: list[str] = []  # the section path of the page before
    for page in pages:
        marked = list(_headings(page.markdown))
        on_page = {_folded(title) for _, title in marked}
        path = [name for name in page.section_path.split(_SEPARATOR) if name]
        found = [*_unseen(path, before, on_page, above), *marked]
        before = path
        depths = {_folded(name): depth for depth, name in enumerate(path)}
        for level, title in found[:_MOST_ON_PAGE]:
            key = _folded(title)
            if any(key == known for _, known in above):
                continue  # a running header
            if key in depths:  # the page's path knows how deep it stands
                del above[depths[key] :]
            while above and above[-1][0] >= level:
                above.pop()
            above.append((level, key))
            entries.append(OutlineEntry(len(above), title, page.page, page.label))
    return entries


def _unseen(
    path: list[str], before: list[str], on_page: set[str], above: list[tuple[float, str]]
) -> Iterator[tuple[float, str]]:
    """The sections that begin on a page without a heading: each below those it stands in."""
    for depth, name in enumerate(path):
        known = path[: depth + 1] == before[: depth + 1] or _folded(name) in on_page
        if not known and _folded(name) not in {title for _, title in above}:
            yield (above[depth - 1][0] if 0 < depth <= len(above) else 0.0) + 0.5, name


def _headings(markdown: str) -> Iterator[tuple[float, str]]:
    in_code = False
    for line in markdown.splitlines()[:_MOST_LINES]:
        if line.startswith(_FENCE):
            in_code = not in_code
        marks = len(line) - len(line.lstrip("#")) if line.startswith("#") and not in_code else 0
        if 0 < marks <= 6 and line[marks : marks + 1] == " ":
            title = " ".join(line[marks : marks + 2 * _MOST_TITLE].split())
            if title:
                yield float(marks), title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…"


def _folded(title: str) -> str:
    """Letters and digits only, without case and a number before them: how titles are compared."""
    bare = title[number.end() :] if (number := _NUMBER.match(title)) else title
    return "".join(filter(str.isalnum, bare.casefold())) or title


def _page_beginning(page: PageText) -> PageBeginning:
    words = page.markdown[: 4 * _BEGINNING].replace("#", " ").replace("|", " ").split()
    text = " ".join(words)
    short = text if len(text) <= _BEGINNING else f"{text[: _BEGINNING - 1].rstrip()}…"
    return PageBeginning(page.page, page.label, short)


_MOST = 600  # characters of the next page: a sentence that does not end there is cut
_GOES_ON = ",-–—&(/"
_BEGINS_WORD = re.compile(r"[\"'“‘«(]?(\w)")


def page_mark(page: int) -> str:
    """Stands where the text goes over to this page."""
    return f"[→ page {page}]"


def continuation(item: Item) -> str:
    """What follows the page's last sentence, with its mark, if one of the passages runs on over the page break."""
    for passage in item.passages:
        if len(passage.pages) > 1:
            return passage.text[passage.end - passage.start :]
    return ""


def join_page_breaks(reader: Reader, items: Sequence[Item]) -> list[Item]:
    """The items, with the end of the sentence from the next page where a passage runs on over a page break."""
    joined = list(items)
    for place, item in enumerate(items):
        end = len(item.text.rstrip())
        last = {passage for passage in item.passages if passage.end >= end > passage.start}
        if item.ref.kind != "page" or not last:
            continue
        page = int(item.ref.part)
        following = _without_running_head(reader.pages.markdown(item.ref.key, page + 1) or "", item.text)
        if rest := _rest(item.text, following):
            passages = [_over(each, item.text, page, rest) if each in last else each for each in item.passages]
            joined[place] = replace(item, passages=tuple(passages))
    return joined


def _without_running_head(following: str, text: str) -> str:
    """The next page without a first line that both begin with: a chapter's name, which is no text."""
    head, _, rest = following.lstrip().partition("\n")
    return rest if head and head.strip() == text.lstrip().partition("\n")[0].strip() else following


def _over(passage: Passage, text: str, page: int, rest: str) -> Passage:
    here = text[passage.start : passage.end].rstrip()
    joined = f"{here} {page_mark(page + 1)} {page_text(rest)}"
    return replace(passage, text=joined, end=passage.start + len(here), pages=(page, page + 1))


def _rest(text: str, following: str) -> str:
    """The beginning of the next page, to its first sentence end, if the last sentence of this one goes on there."""
    begin = following[: 4 * _MOST]
    first = next(iter_units(begin), None)
    if first is None or first.kind not in {"sentence", "line"} or not _runs_on(text, begin[first.start :]):
        return ""
    # Only a sentence goes on; a label or a row at the foot of a page does not.
    last = [unit.kind for unit in deque(iter_units(text), maxlen=1)]
    return _cut(begin, first) if last and last[0] in {"sentence", "item"} else ""


def _runs_on(text: str, following: str) -> bool:
    """A small letter goes on with what stands before it. Without one, the end of the page must show it: a comma, a
    dash, or, in scripts without capitals, a letter where a full stop is usual."""
    word = _BEGINS_WORD.match(following)
    if word is None:
        return False
    if word[1].islower():
        return True
    last = text.rstrip()[-1:]
    return last != "" and (last in _GOES_ON or re.match(f"[{UNSPACED}]", last) is not None)


def _cut(text: str, unit: Unit) -> str:
    rest = text[unit.start : unit.end]
    if len(rest) <= _MOST:
        return rest
    blank = rest.rfind(" ", _MOST // 2, _MOST)
    return f"{rest[: blank if blank > 0 else _MOST]} […]"


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
