"""What speaks against a claim in the text that it cites, in a few plain words each: a "no" on one side only, another bound,
names or numbers that have changed places, a number of another column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from research.answer.evidence import Window
from research.answer.quantities import fit, is_same
from research.answer.wording import COMPARISONS, Quantity, Reading, Word, read

DENIED = "it says “no” to this"

_NEGATED = 3  # words after a "no" that it speaks of
_BOUNDS = {"≤": "at most", "≥": "at least", "<": "less than", ">": "more than"}
_BESIDE = 2  # places on both sides of a number, whatever else stands near
_NEAR = 4  # places beside a name or number, for what it is said of
_SPEAKS_OF = 0.4  # of the words beside a number
_SAME_BREATH = 4  # places that a "no" may have moved


def conflicts_of(claim: Reading, windows: Sequence[Window], turned: list[tuple[Word, str]]) -> Iterator[str]:
    parts = [part for window in windows for part in window.parts]
    denied = list(_denials(claim, parts))
    # "not safe" for "unsafe": what is turned round twice is as it was.
    cancelled = min(len(denied), len(turned))
    yield from denied[cancelled:]
    for word, opposite in turned[cancelled:]:
        yield f"it says “{opposite}”, not “{word.text}”"
    yield from _other_bounds(claim, parts)
    particles = frozenset().union(*(part.particles for part in parts))
    for one, other in (("on", "off"), ("off", "on"), ("up", "down"), ("down", "up")):
        if one in claim.particles - particles and other in particles - claim.particles:
            yield f"it says “{other}”, not “{one}”"
    if claim.modals != (said := frozenset().union(*(part.modals for part in parts))) and len(claim.modals) == len(said) == 1:
        if not claim.negations:
            yield f"it says “{min(said)}”, not “{min(claim.modals)}”"
    yield from _plans(claim, parts)
    yield from _torn(claim, parts)
    yield from _swapped(claim, parts)
    for window in windows:
        if window.row:
            yield from _other_column(claim, window)


def _denials(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """A "no" of one side that has none on the other. Each stands for one: "No opinion is not needed" has one too many."""
    there = [(part, cue) for part in parts for cue in part.negations]
    distances = sorted(
        (distance, here, other)
        for here, cue in enumerate(claim.negations)
        for other, (part, theirs) in enumerate(there)
        if (distance := _distance(claim, cue, part, theirs)) <= _SAME_BREATH
    )
    paired: dict[int, int] = {}
    for _, here, other in distances:
        if here not in paired and other not in paired.values():
            paired[here] = other
    for here in range(len(claim.negations)):
        if here not in paired:
            yield "it does not say “no” to this"
    for other, (part, cue) in enumerate(there):
        words = _scope(part, cue)
        held = [bool(word.keys & claim.keys) for word in words]
        joined = [True, *(two.place - one.place == 2 and one.place + 1 in part.links for one, two in pairwise(words))]
        spoken = any(is_held and is_joined for is_held, is_joined in zip(held, joined, strict=False))
        if other not in paired.values() and (spoken or 2 * sum(held) > len(held)):
            yield DENIED


def _distance(claim: Reading, cue: tuple[int, int], part: Reading, theirs: tuple[int, int]) -> int:
    """How much nearer to the same word one of two "no" stands."""
    near = [word for word in claim.words if word.clause == cue[1] and abs(word.place - cue[0]) <= _SAME_BREATH]
    return min(
        (
            abs((word.place - cue[0]) - (other.place - theirs[0]))
            for word in near
            for other in part.words
            if word.keys & other.keys and abs(other.place - theirs[0]) <= 2 * _SAME_BREATH
        ),
        default=99,
    )


def _scope(reading: Reading, cue: tuple[int, int]) -> list[Word]:
    same = [word for word in reading.words if word.clause == cue[1]]
    after = [word for word in same if word.place > cue[0]]
    return after[:_NEGATED] or same[-_NEGATED:]


def _other_bounds(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """"at most" for "at least", "more than" for "less than", of the same number."""
    for sign, place in claim.comparisons:
        number = next((q for q in claim.quantities if place <= q.place <= place + 3), None)
        for part in parts:
            for other, at in part.comparisons:
                stated = next((q for q in part.quantities if at <= q.place <= at + 3), None)
                same = number is None or stated is None or number.number.values & stated.number.values
                if same and other in COMPARISONS[sign]:
                    yield f"it says “{_BOUNDS[other]}”, not “{_BOUNDS[sign]}”"
                    return


def _plans(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """What is planned or expected there is a fact in the claim."""
    if claim.plans or claim.modals:
        return
    for part in parts:
        for cue in part.plans:
            words = _scope(part, cue)
            if words and all(word.keys & claim.keys for word in words):
                yield "it is planned or expected there"
                return


def _torn(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """A number that stands there beside other words than in the claim, or not as often."""
    here = _cells(claim, [quantity.place for quantity in claim.quantities])
    cells = [_cells(part, [quantity.place for quantity in part.quantities]) for part in parts]
    used: set[tuple[int, int]] = set()
    for quantity in claim.quantities:
        near = here[quantity.place]
        there = {
            (number, other.place): [
                *cells[number][other.place],
                *(word for word in part.words if abs(word.place - other.place) <= _BESIDE),
            ]
            for number, part in enumerate(parts)
            for other in part.quantities
            if is_same(quantity, other) and (len(parts) == 1 or _is_of(claim, quantity, part))
        }
        fitting = [place for place, words in there.items() if not near or not words or _common(near, words)]
        free = [place for place in fitting if place not in used]
        if free:
            used.add(free[0])
        elif any(is_same(quantity, other) for part in parts for other in part.quantities):
            yield f"{quantity.text} stands beside other words there"


def _is_of(claim: Reading, quantity: Quantity, part: Reading) -> bool:
    """Whether a sentence among several that holds a number also speaks of what the claim counts with it."""
    own = [word for word in _cells(claim, [other.place for other in claim.quantities])[quantity.place] if not word.is_light]
    return _SPEAKS_OF * len(own) <= sum(bool(word.keys & part.keys) for word in own)


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A name or number that stands once in the claim and once in the source: its places in both."""

    place: int
    there: int
    is_name: bool


def _swapped(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    for part in parts:
        anchors = _anchors(claim, part)[:8]
        if (claim.is_respective or part.is_respective) and len({_are_inverted(anchors, names) for names in (True, False)}) > 1:
            yield "names and numbers belong together in another way there"
            return
        for n, one in enumerate(anchors):
            for two in anchors[n + 1 :]:
                if one.is_name == two.is_name and _changed_places(claim, part, one, two, anchors):
                    yield "names or numbers have changed places"
                    return


def _are_inverted(anchors: list[_Anchor], names: bool) -> bool:
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
    by = any(one.place < place < two.place for place in claim.passives)
    by_there = any(low < place < high for place in part.passives)
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
    named = [n for term, _ in sorted(_placed(claim), key=lambda entry: entry[1]) for n, head in enumerate(own) if term in head]
    stated = [
        n
        for quantity in claim.quantities
        for n, (head, value) in enumerate(columns)
        if fit(quantity, value, frozenset()) and not _terms_of(quantity) & head
    ]
    order = list(dict.fromkeys(named))
    values = [n for n in dict.fromkeys(stated) if n in order]
    if order and stated and not values:
        yield "the number stands in another column"
    elif len(values) > 1 and values != [n for n in order if n in values]:
        yield "the numbers stand in other columns"


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
