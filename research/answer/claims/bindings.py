"""Whether what a claim puts together stands together in the text that it cites: numbers beside their words, names and
numbers in their roles, values under their column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from research.answer.claims.evidence import Window
from research.answer.claims.quantities import fit, is_same
from research.answer.claims.reading import Quantity, Reading, Word, read

_BESIDE = 2  # places on both sides of a number, whatever else stands near
_NEAR = 4  # places beside a name or number, for what it is said of
_AGENT = 4  # places after a "by" in which the one who did it is named
_SPEAKS_OF = 0.4  # of the words beside a number


def bindings_of(claim: Reading, windows: Sequence[Window]) -> Iterator[str]:
    """What does not stand together there, in a few words each."""
    parts = [part for window in windows if not window.row for part in window.parts]
    yield from _torn(claim, parts)
    for part in parts:
        yield from _borrowed(claim, part)
    yield from _swapped(claim, parts)
    for window in windows:
        if window.row:
            yield from _other_column(claim, window)


def _torn(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """A number that stands there beside other words than in the claim, or not as often."""
    here = _cells(claim, [quantity.place for quantity in claim.quantities])
    cells = [_cells(part, [quantity.place for quantity in part.quantities]) for part in parts]
    used: set[tuple[int, int]] = set()
    for quantity in claim.quantities:
        near = here[quantity.place]
        there = {
            (number, other.place): [*cells[number][other.place], *_beside(part, other.place)]
            for number, part in enumerate(parts)
            for other in part.quantities
            if is_same(quantity, other) and (len(parts) == 1 or _is_of(claim, quantity, part))
        }
        fitting = [place for place, words in there.items() if not near or not words or _common(near, words)]
        free = [place for place in fitting if place not in used]
        if free:
            used.add(free[0])
        elif any(is_same(quantity, other) for part in parts for other in part.quantities):
            yield f"has {quantity.text} beside other words"


def _borrowed(claim: Reading, part: Reading) -> Iterator[str]:
    """A number with words that the source says of another one: "60 months from purchase", of "36 months from purchase,
    and 60 months if you register"."""
    here = _cells(claim, [quantity.place for quantity in claim.quantities])
    there = _cells(part, [quantity.place for quantity in part.quantities])
    others = [other for other in part.quantities if not any(is_same(quantity, other) for quantity in claim.quantities)]
    for quantity in claim.quantities:
        own = [other for other in part.quantities if is_same(quantity, other)]
        if len(own) != 1:
            continue
        words = [*there[own[0].place], *_beside(part, own[0].place)]
        left_out = [word for word in there[own[0].place] if not word.is_light and not word.keys & claim.keys]
        lent = [
            word
            for word in here[quantity.place]
            if not word.is_light and not _common([word], words) and any(_common([word], there[o.place]) for o in others)
        ]
        if lent and left_out:
            yield f"says “{lent[0].text}” of another number"


def _beside(reading: Reading, place: int) -> list[Word]:
    return [word for word in reading.words if abs(word.place - place) <= _BESIDE]


def _is_of(claim: Reading, quantity: Quantity, part: Reading) -> bool:
    """Whether a sentence among several that holds a number also speaks of what the claim counts with it."""
    near = _cells(claim, [other.place for other in claim.quantities])[quantity.place]
    own = [word for word in near if not word.is_light]
    return sum(bool(word.keys & part.keys) for word in own) >= _SPEAKS_OF * len(own)


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A name or number that stands once in the claim and once in the source: its places in both."""

    place: int
    there: int
    is_name: bool


def _swapped(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    for part in parts:
        anchors = _anchors(claim, part)[:8]
        respective = claim.is_respective or part.is_respective
        if respective and _are_inverted(anchors, names=True) != _are_inverted(anchors, names=False):
            yield "puts names and numbers together otherwise"
            return
        for n, one in enumerate(anchors):
            for two in anchors[n + 1 :]:
                if one.is_name == two.is_name and _changed_places(claim, part, one, two, anchors):
                    yield "has names or numbers in other places"
                    return


def _are_inverted(anchors: list[_Anchor], *, names: bool) -> bool:
    return any(one.there > two.there for one, two in pairwise(anchor for anchor in anchors if anchor.is_name == names))


def _anchors(claim: Reading, part: Reading) -> list[_Anchor]:
    found = []
    for place, there, is_name in _shared(claim, part):
        if len(place) == len(there) == 1:
            found.append(_Anchor(place[0], there[0], is_name))
    return sorted(found, key=lambda anchor: anchor.place)


def _shared(claim: Reading, part: Reading) -> Iterator[tuple[list[int], list[int], bool]]:
    names = {word.stem for word in (*claim.words, *part.words) if word.is_name}
    for stem in dict.fromkeys(word.stem for word in claim.words if word.stem in names):
        yield (
            [word.place for word in claim.words if word.stem == stem],
            [word.place for word in part.words if word.stem == stem],
            True,
        )
    for quantity in claim.quantities:
        yield (
            [other.place for other in claim.quantities if is_same(quantity, other)],
            [other.place for other in part.quantities if is_same(quantity, other)],
            False,
        )


def _changed_places(claim: Reading, part: Reading, one: _Anchor, two: _Anchor, anchors: list[_Anchor]) -> bool:
    inverted = one.there > two.there
    low, high = sorted((one.there, two.there))
    by = any(max(one.place, two.place - _AGENT) < place < two.place for place in claim.passives)
    by_there = any(max(low, high - _AGENT) < place < high for place in part.passives)
    if one.is_name and two.is_name and by != by_there:
        return not inverted  # "Bob was paid by Anna" is "Anna paid Bob"
    if not inverted or (_linked(claim, one.place, two.place) and _linked(part, low, high)):
        return False
    here = _cells(claim, [anchor.place for anchor in anchors], _NEAR)
    there = _cells(part, [anchor.there for anchor in anchors], _NEAR)
    same = _common(here[one.place], there[one.there]) + _common(here[two.place], there[two.there])
    crossed = _common(here[one.place], there[two.there]) + _common(here[two.place], there[one.there])
    return crossed > same


def _linked(reading: Reading, low: int, high: int) -> bool:
    """Whether nothing but "and", "or" or a comma stands between."""
    return high - low == 1 or (high - low == 2 and low + 1 in reading.links)


def _cells(reading: Reading, places: list[int], reach: int = 1000) -> dict[int, list[Word]]:
    """The words that are nearest to each of the places."""
    cells: dict[int, list[Word]] = {place: [] for place in places}
    for word in reading.words if places else ():
        nearest = min(places, key=lambda place: (abs(place - word.place), place))
        if 0 < abs(nearest - word.place) <= reach:
            cells[nearest].append(word)
    return cells


def _common(ones: list[Word], others: list[Word]) -> int:
    return sum(any(one.keys & other.keys for other in others) for one in ones)


def _other_column(claim: Reading, window: Window) -> Iterator[str]:
    """A number of the right row, under another heading than the claim names."""
    columns = _columns(window)
    if not columns:
        return
    heads = [head for head, _ in columns]
    own = [head - frozenset().union(*(heads[:n] + heads[n + 1 :])) for n, head in enumerate(heads)]
    numeric = [n for n, (_, value) in enumerate(columns) if value.quantities]
    terms = sorted(_placed(claim), key=lambda entry: entry[1])
    named = [n for term, _ in terms for n in numeric if term in own[n]]
    stated = [
        n
        for quantity in claim.quantities
        for n, (head, value) in enumerate(columns)
        if fit(quantity, value, frozenset()) and not _terms_of(quantity) & head
    ]
    order = list(dict.fromkeys(named))
    values = [n for n in dict.fromkeys(stated) if n in order]
    if order and stated and not values:
        yield "has the number in another column"
    elif len(values) > 1 and values != [n for n in order if n in values]:
        yield "has the numbers in other columns"


def _columns(window: Window) -> list[tuple[frozenset[str], Reading]]:
    """What each column is called, and what the row has in it; nothing if they cannot be laid side by side."""
    cells, names = (
        [cell.strip() for cell in line.strip(" |").split("|")] for line in (window.row, window.header.split("\n")[-1])
    )
    if len(cells) < 3 or abs(len(cells) - len(names)) > 1:
        return []
    size = min(len(cells), len(names))  # what is missing is the corner
    return [
        (frozenset(term for term, _ in _placed(read(name))), read(cell))
        for name, cell in zip(names[-size:], cells[-size:], strict=True)
    ]


def _placed(reading: Reading) -> Iterator[tuple[str, int]]:
    for word in reading.words:
        yield word.stem, word.place
    for quantity in reading.quantities:
        for term in _terms_of(quantity):
            yield term, quantity.place


def _terms_of(quantity: Quantity) -> frozenset[str]:
    years = {float(date[0]) for date in quantity.number.dates if date[0]}
    return frozenset(f"{value:g}" for value in quantity.number.values | years)
