"""The sentences that most likely answer a question: the best passages of its sources, verbatim, each with its citation.

Nothing is composed. A row of a table or a label with its value is a quote, too. Text that a document has from an
attacker (orders to a model, forged citations) is never quoted, and what stands in two places is quoted once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from research.context.injection.detector import signals_of
from research.context.injection.headers import neutralize_headers
from research.context.units import split
from research.models import Item, Passage, Quote

MOST = 3
_AS_GOOD = 0.45  # of the best one's score, for a further one
_PAGE = 0.5  # what the score of its page counts beside that of a passage


def quotes_from(sources: Sequence[Item], whole: Sequence[Item]) -> list[Quote]:
    """Of the sources, in the order of their citations. `whole` are items with all of their text, these among them."""
    texts = {str(item.ref): item.text for item in whole}
    found = [
        (passage.score + _PAGE * item.score, citation, passage, texts[str(item.ref)])
        for citation, item in enumerate(sources, start=1)
        for passage in item.passages
        if passage.end > passage.start
    ]
    found.sort(key=lambda entry: -entry[0])
    chosen: dict[str, Quote] = {}
    for score, citation, passage, text in found:
        if len(chosen) == MOST or score < _AS_GOOD * found[0][0]:
            break
        quoted = text[passage.start : passage.end]  # of this page alone, where a sentence runs on
        said = " ".join(quoted.split()).casefold()
        if said not in chosen and _is_sound(quoted):
            chosen[said] = _quote(sources[citation - 1], passage, citation, text)
    return list(chosen.values())


def _quote(item: Item, passage: Passage, citation: int, text: str) -> Quote:
    return Quote(
        text=text[passage.start : passage.end],
        citation=citation,
        ref=str(item.ref),
        page=int(item.ref.part),
        score=passage.score,
        start=passage.start,
        end=passage.end,
        box=passage.box,
        header=_header(passage, text),
    )


def _header(passage: Passage, text: str) -> str:
    if "|" not in text[passage.start : passage.end]:
        return ""
    units = split(text)
    row = units[max(0, bisect_right([unit.start for unit in units], passage.start) - 1)] if units else None
    if row is None or row.header is None or row.header[1] > passage.start:
        return ""
    return text[row.header[0] : row.header[1]]


def _is_sound(text: str) -> bool:
    return any(map(str.isalnum, text)) and neutralize_headers(text) == text and not signals_of(text)
