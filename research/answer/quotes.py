"""The sentences that most likely answer a question: the best passages of its sources, verbatim, each with its citation.

Nothing is composed. A row of a table or a label with its value is a quote, too. Text that a document has from an
attacker (orders to a model, forged citations) is never quoted, and what stands in two places is quoted once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from research.context.injection.detector import signals_of
from research.context.injection.headers import neutralize_headers
from research.models import Item, Passage, Quote
from research.search.passages import BEST
from research.units import Unit

MOST = 3
ROOM = 400  # characters of a quote with its neighbours
_AS_GOOD = 0.45  # of the best one's score, for a further one
_PAGE = 0.35  # what the score of its page counts beside that of a passage

_Span = tuple[int, int, int]  # citation, start, end


def quotes_from(sources: Sequence[Item], whole: Sequence[Item]) -> list[Quote]:
    """Of the sources, in the order of their citations. `whole` are items with all of their text, these among them."""
    pages = {str(item.ref): item for item in whole}
    best = max((item.score for item in sources), default=0.0) or 1.0
    found = [
        (BEST * passage.score + _PAGE * item.score / best, citation, passage)
        for citation, item in enumerate(sources, start=1)
        for passage in item.passages
        if passage.end > passage.start
    ]
    found.sort(key=lambda entry: -entry[0])
    chosen: dict[str, tuple[int, Passage]] = {}
    for score, citation, passage in found:
        if len(chosen) == MOST or score < _AS_GOOD * found[0][0]:
            break
        page = pages[str(sources[citation - 1].ref)]
        quoted = page.text[passage.start : passage.end]  # of this page alone, where a sentence runs on
        said = " ".join(quoted.split()).casefold()
        if said not in chosen and _is_sound(quoted):
            chosen[said] = citation, passage
    taken = [(citation, passage.start, passage.end) for citation, passage in chosen.values()]
    return [
        _quote(pages[str(sources[citation - 1].ref)], passage, citation, taken) for citation, passage in chosen.values()
    ]


def _quote(page: Item, passage: Passage, citation: int, taken: list[_Span]) -> Quote:
    start, end = _grown(page, passage, citation, taken)
    return Quote(
        text=page.text[start:end],
        citation=citation,
        ref=str(page.ref),
        page=int(page.ref.part),
        score=passage.score,
        start=start,
        end=end,
        box=passage.box,
        header=_above(page, passage),
        marked=(passage.start - start, passage.end - start),
    )


def _above(page: Item, passage: Passage) -> str:
    """The title and the header of the table that a row stands in, as the page has them."""
    row = _unit_at(page.units, passage.start)
    spans = [span for span in (row.title, row.header) if span is not None and span[1] <= passage.start] if row else []
    if len(spans) == 2 and spans[1][1] - spans[0][0] > ROOM:
        del spans[0]
    above = page.text[spans[0][0] : spans[-1][1]] if spans else ""
    return above if _is_sound(above) else ""


def _unit_at(units: Sequence[Unit], place: int) -> Unit | None:
    return units[max(0, bisect_right(units, place, key=lambda unit: unit.start) - 1)] if units else None


def _grown(page: Item, passage: Passage, citation: int, taken: list[_Span]) -> tuple[int, int]:
    """The passage with the units after and before it, as far as there is room, no heading parts them, and none is part
    of another quote. `taken` is added to."""
    units, start, end = page.units, passage.start, passage.end
    row = _unit_at(units, start)
    top = max((span[1] for span in (row.title, row.header) if span is not None), default=0) if row else 0
    others = [(first, last) for number, first, last in taken if number == citation and (first, last) != (start, end)]

    def may_join(unit: Unit) -> bool:
        free = all(unit.end <= first or last <= unit.start for first, last in others)
        return unit.kind != "heading" and unit.start >= top and free and _is_sound(page.text[unit.start : unit.end])

    after = bisect_right(units, end - 1, key=lambda unit: unit.start)
    before = bisect_right(units, start, key=lambda unit: unit.start) - 2
    while True:
        if after < len(units) and units[after].end - start <= ROOM and may_join(units[after]):
            end, after = units[after].end, after + 1
        elif before >= 0 and end - units[before].start <= ROOM and may_join(units[before]):
            start, before = units[before].start, before - 1
        else:
            if not _is_sound(page.text[start:end]):  # what an attacker wrote may stand in several units
                start, end = passage.start, passage.end
            taken.append((citation, start, end))
            return start, end


def _is_sound(text: str) -> bool:
    return any(map(str.isalnum, text)) and neutralize_headers(text) == text and not signals_of(text)
