"""The sentences that most likely answer a question: the best passages of its sources, verbatim, each with its citation.

Nothing is composed. A row of a table or a label with its value is a quote, too. Text that a source has from an attacker
(orders to a model, forged citations) is never quoted, and what stands in two places is quoted once.

How likely a quote answers orders those of several kinds: of a page it is as documents judge it, less the further it is
behind the best; of anything else the item's calibrated score, by how much of the question is in the quote.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from research.answer.question import NO_NAMES, finder, names_in, words_in
from research.context import headers_in, imitates_item, signals_of
from research.models import Item, Passage, Quote
from research.search import BEST
from research.store import analyze
from research.units import Unit

MOST = 3
ROOM = 400  # characters of a quote with its neighbours
CODE_ROOM = 800  # and with the code that it leads to
_FEWEST_WORDS = 3  # of a further one without a number
_AS_GOOD = 0.65  # of the best one's score, for a further one
_PAGE = 0.35  # what its page counts beside the score of a passage

_ALIKE = 0.9  # of the first one's score, for another that answers as well as it
_AMOUNT = re.compile(r"(?<![\w.,])(\d+(?:[.,]\d+)*)\s?(%|[^\W\d_]{3,})")

_Span = tuple[int, int, int]  # citation, start, end


def quotes_from(sources: Sequence[Item], whole: Sequence[Item], asked: str = "", documents: float = 1.0) -> list[Quote]:
    """Of the sources, in the order of their citations. `whole` are items with all of their text, these among them;
    `documents`: how likely pages are to answer what was `asked`. What one of the sources says anew is not quoted."""
    pages = {str(item.ref): item for item in whole}
    known = {item.ref.key for item in sources}
    of_pages = [item for item in whole if item.ref.kind == "page"]
    worth = {str(item.ref): _worth(item.raw_score, rank) for rank, item in enumerate(of_pages, start=1)}
    best = max((worth.get(str(item.ref), 0.0) for item in sources), default=0.0) or 1.0
    found = [
        (BEST * passage.score + _PAGE * worth.get(str(item.ref), 0.0) / best, citation, passage)
        for citation, item in enumerate(sources, start=1)
        for passage in item.passages
        if passage.end > passage.start and item.metadata.get("superseded_by") not in known
    ]
    most = max((score for score, citation, _ in found if sources[citation - 1].ref.kind == "page"), default=0.0) or 1.0
    for at, (score, citation, passage) in enumerate(found):
        page = pages[str(sources[citation - 1].ref)]
        likely = documents * score / most if page.ref.kind == "page" else _likely(asked, page, passage.text)
        found[at] = likely, citation, passage
    found.sort(key=lambda entry: -entry[0])
    chosen: dict[str, tuple[int, Passage, tuple[int, int]]] = {}
    for score, citation, passage in found:
        if len(chosen) == MOST or score < _AS_GOOD * found[0][0]:
            break
        page = pages[str(sources[citation - 1].ref)]
        quoted = page.text[passage.start : passage.end]  # of this page alone, where a sentence runs on
        said = " ".join(quoted.split()).casefold()
        # What stands close to a better one is shown with it.
        near = any(
            citation == other and start <= passage.start and passage.end <= end
            for other, _, (start, end) in chosen.values()
        )
        says = not chosen or len(said.split()) >= _FEWEST_WORDS or any(map(str.isdigit, said))
        if said not in chosen and not near and says and _is_sound(quoted):
            chosen[said] = citation, passage, _grown(page, passage, 0, [])
    taken = [(citation, passage.start, passage.end) for citation, passage, _ in chosen.values()]
    return [
        _quote(pages[str(sources[citation - 1].ref)], passage, citation, taken, asked)
        for citation, passage, _ in chosen.values()
    ]


def _likely(asked: str, item: Item, said: str) -> float:
    """How likely a part of an item that is no page answers: as the item does, by how much of what the item says of the
    question is in that part, and less for names that the item has nowhere."""
    names, words, called = names_in(asked), words_in(asked), f"{item.title}\n{item.ref}\n"
    find = finder(words | names.keys())
    known = find(called + item.text)
    share = len(find(called + said) & words) / len(known & words) if known & words else 1.0
    lacking = sum(weight for name, weight in names.items() if name not in known)
    return item.score * share * (1.0 - lacking / (sum(names.values()) + NO_NAMES))


def _worth(total: float, rank: int) -> float:
    """What a page counts for its passages: by its sum and its rank, as it was fitted on questions for pages."""
    return 1.0 / (1.0 + math.exp(-(4.0 * total - 1.2 * math.log(rank) - 2.6)))


def differing_figures(question: str, quotes: Sequence[Quote], names: Mapping[int, str]) -> str:
    """Name the figures of quotes that answer alike and differ ("5 years, page 7; 10 years, page 10"), if any do.

    A figure counts if the question names its unit, the quotes say the same words of it, and each gives one alone.
    `names` are those of the files, by citation.
    """
    asked = frozenset(analyze(question))
    told: dict[str, Quote] = {}
    for quote in quotes:
        said = _marked(quote)
        same = not told or asked & set(analyze(said)) == asked & set(analyze(_marked(next(iter(told.values())))))
        amounts = {
            found for found in _AMOUNT.findall(said) if found[1] == "%" or not asked.isdisjoint(analyze(found[1]))
        }
        if same and len(amounts) == 1 and quote.score >= _ALIKE * quotes[0].score:
            number, unit = amounts.pop()
            told.setdefault(f"{number}{'' if unit == '%' else ' '}{unit}", quote)
    if len({quote.citation for quote in told.values()}) < len(told) or len(told) < 2:
        return ""  # one page says what each of its figures is of
    files = {names[quote.citation] for quote in told.values()}
    several = len(files) > 1
    if any(0 < sum(number in name for name in files) < len(files) for number in re.findall(r"\d+", question)):
        return ""  # "the 2025 handbook" has chosen
    places = (f"{f'{names[quote.citation]} ' if several else ''}page {quote.page}" for quote in told.values())
    return f"The pages differ: {'; '.join(f'{figure}, {place}' for figure, place in zip(told, places, strict=True))}."


def _marked(quote: Quote) -> str:
    return quote.text[slice(*quote.marked)]


def _quote(page: Item, passage: Passage, citation: int, taken: list[_Span], asked: str) -> Quote:
    start, end = _grown(page, passage, citation, taken)
    header, is_page = table_above(page, passage), page.ref.kind == "page"
    return Quote(
        text=page.text[start:end],
        citation=citation,
        ref=str(page.ref),
        page=int(page.ref.part) if is_page else 0,
        score=passage.score if is_page else round(_likely(asked, page, f"{header}\n{page.text[start:end]}"), 4),
        start=start,
        end=end,
        box=passage.box,
        header=header,
        marked=(passage.start - start, passage.end - start),
    )


def table_above(page: Item, passage: Passage) -> str:
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
    of another quote; of what is no page, those of its paragraph. `taken` is added to."""
    units, start, end = page.units, passage.start, passage.end
    row = _unit_at(units, start)
    above = [span[1] for span in (row.title, row.header) if span is not None and span[1] <= start] if row else []
    top = max(above, default=0)
    others = [(first, last) for number, first, last in taken if number == citation and (first, last) != (start, end)]

    def has_room(unit: Unit) -> bool:
        return max(end, unit.end) - min(start, unit.start) <= (CODE_ROOM if unit.kind == "code" else ROOM)

    def may_join(unit: Unit) -> bool:
        free = all(unit.end <= first or last <= unit.start for first, last in others)
        sound = not page.signals or _is_sound(page.text[unit.start : unit.end])
        near = page.ref.kind == "page" or row is None or unit.block == row.block
        return unit.kind != "heading" and unit.start >= top and free and sound and near

    after = bisect_right(units, end - 1, key=lambda unit: unit.start)
    before = bisect_right(units, start, key=lambda unit: unit.start) - 2
    while True:
        if after < len(units) and has_room(units[after]) and may_join(units[after]):
            end, after = units[after].end, after + 1
        elif before >= 0 and has_room(units[before]) and may_join(units[before]):
            start, before = units[before].start, before - 1
        else:
            if not _is_sound(page.text[start:end]):  # what an attacker wrote may stand in several units
                start, end = passage.start, passage.end
            taken.append((citation, start, end))
            return start, end


def _is_sound(text: str) -> bool:
    forged = any(headers_in(text)) or imitates_item(text)
    return any(map(str.isalnum, text)) and not forged and not signals_of(text)
