"""Whether what a claim puts together stands together in the text that it cites: numbers beside their words, names in
their roles, values in their row and under their column. What does not is told in words that follow the source's number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from research.answer.claims.evidence import Row, Window
from research.answer.claims.quantities import fit, is_same
from research.answer.claims.reading import Quantity, Reading, Word

_NEAR = 4  # places beside a name or number, for what it is said of
_BESIDE = 2  # places on both sides of a number, whatever else stands near
_FAR = 1000
_PARTS = 3  # places that a comma or an "and" counts for
_AGENT = 4  # places after a "by" in which the one who did it is named
_LIST_GAP = 3  # places between the entries of a list: its unit, a comma, an "and"


def bindings_of(claim: Reading, windows: Sequence[Window]) -> Iterator[str]:
    """What does not stand together there, in a few words each."""
    parts = [part for window in windows if not window.row for part in window.parts]
    for part in parts:
        if not (listed := _pairs(part)):
            yield from _other_number(claim, part, parts)
        else:
            yield from _other_pair(claim, listed)
        yield from _other_name(claim, part)
        yield from _swapped(claim, part)
    for window in windows:
        if window.row:
            yield from _other_column(claim, window.row)
            yield from _other_row(claim, window.row)


def _other_number(claim: Reading, part: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """A number with words that the source says of another one: "60 months from purchase", of "36 months from purchase,
    and 60 months if you register". Years compete with years, amounts with amounts."""
    for quantity in claim.quantities:
        own = [other.place for other in part.quantities if is_same(quantity, other)]
        rivals = [other for other in part.quantities if other.place not in own and other.is_year == quantity.is_year]
        if not own or not rivals or any(other is not part and fit(quantity, other, frozenset()) for other in parts):
            continue
        good, lent = 0, list[tuple[str, Quantity]]()
        for text, places in _beside(claim, quantity, part):
            near = min(_distance(part, place, at) for place in places for at in own)
            far, rival = min(
                ((_distance(part, place, other.place), other) for place in places for other in rivals),
                key=lambda entry: entry[0],
            )
            if max(near, far) <= _BESIDE:
                continue  # "months", between two numbers of them
            if near <= max(far, _BESIDE):
                good += 1
            else:
                lent.append((text, rival))
        foreign = [rival for _, rival in lent if not any(is_same(rival, other) for other in claim.quantities)]
        if lent and (not good or (foreign and _leaves_out(claim, part, own, rivals))):
            yield f"says “{lent[0][0]}” of {lent[0][1].text}, not of {quantity.text}"


def _beside(claim: Reading, quantity: Quantity, part: Reading) -> Iterator[tuple[str, list[int]]]:
    """What a claim says nearest to a number, years among it, with its places in the source."""
    alike = [other.place for other in claim.quantities if other.is_year == quantity.is_year]
    turned = bool(claim.passives) != bool(part.passives)  # "Anna paid", "was paid by Anna"
    for word in _cells(claim, alike, _FAR)[quantity.place]:
        places = [other.place for other in part.words if other.keys & word.keys]
        if places and not word.is_light and not (turned and word.is_name):
            yield word.text, places
    for other in claim.quantities:
        places = [each.place for each in part.quantities if is_same(each, other)]
        nearest = min(alike, key=lambda place: abs(place - other.place))
        if places and other.is_year and not quantity.is_year and nearest == quantity.place:
            yield other.text, places


def _leaves_out(claim: Reading, part: Reading, own: Sequence[int], rivals: Sequence[Quantity]) -> bool:
    """Whether the source says more right beside the number, which the claim does not."""
    cells = _cells(part, [*own, *(other.place for other in rivals)])
    return any(not word.is_light and not word.keys & claim.keys for place in own for word in cells[place])


def _pairs(part: Reading) -> list[tuple[Quantity, Quantity]]:
    """What belongs together in "22 %, 26 % and 27 % in 2022, 2021 and 2020": the first with the first, and so on."""
    runs: list[list[Quantity]] = []
    for quantity in part.quantities:
        if runs and quantity.place - runs[-1][-1].place <= _LIST_GAP and _is_listed(part, runs[-1][-1], quantity):
            runs[-1].append(quantity)
        else:
            runs.append([quantity])
    lists = [run for run in runs if len(run) > 1]
    return [pair for one, two in pairwise(lists) if len(one) == len(two) for pair in zip(one, two, strict=True)]


def _is_listed(part: Reading, one: Quantity, two: Quantity) -> bool:
    """Whether nothing but a unit, a comma or an "and" stands between."""
    joined = any(one.place <= place < two.place for place in (*part.joints, *part.links))
    between = sum(one.place < word.place < two.place for word in part.words)
    return joined and between <= 1


def _other_pair(claim: Reading, pairs: Sequence[tuple[Quantity, Quantity]]) -> Iterator[str]:
    stated = _pairs(claim) or [
        (one, min(seconds, key=lambda two: _distance(claim, two.place, one.place)))
        for one in claim.quantities
        if any(is_same(one, first) for first, _ in pairs)
        and (seconds := [two for two in claim.quantities if any(is_same(two, second) for _, second in pairs)])
    ]
    for one, two in stated:
        for value, name in (*pairs, *((second, first) for first, second in pairs)):
            if is_same(name, two) and not is_same(value, one):
                known = any(is_same(one, first) and not is_same(second, two) for first, second in pairs)
                if known:
                    yield f"says {value.text} for {name.text}"
                    return


def _other_name(claim: Reading, part: Reading) -> Iterator[str]:
    """A name with words that the source says of another one, whom the claim does not name: they stand on the other side
    of an "and" or in another clause."""
    names = [word for word in part.words if word.is_name]
    others = [word for word in names if not word.is_common and not word.keys & claim.keys]
    if not others:
        return
    for name in (word for word in claim.words if word.is_name):
        own = [word for word in names if word.stem == name.stem]
        if not own:
            continue
        good, bad = 0, list[tuple[Word, Word]]()
        for word in claim.words:
            if word.is_light or word.stem == name.stem or not 0 < abs(word.place - name.place) <= _NEAR:
                continue
            if _is_one_name(claim, word, name):
                continue
            for there in (other for other in part.words if other.keys & word.keys):
                if any(_side(part, there) == _side(part, each) for each in own):
                    good += 1
                elif rivals := [other for other in others if _side(part, other) == _side(part, there)]:
                    bad.append((there, min(rivals, key=lambda other: _distance(part, other.place, there.place))))
        if len(bad) > good:
            word, rival = bad[0]
            yield f"has “{_whole(part, word)}” with “{_whole(part, rival)}”, not with “{_whole(claim, name)}”"
            return


def _side(reading: Reading, word: Word) -> tuple[int, int]:
    return word.clause, sum(place < word.place for place in reading.links)


def _is_one_name(reading: Reading, one: Word, two: Word) -> bool:
    """Whether two words are of the same name: nothing but names stands between them."""
    low, high = sorted((one.place, two.place))
    return one.is_name and sum(word.is_name for word in reading.words if low <= word.place <= high) == high - low + 1


def _whole(reading: Reading, name: Word) -> str:
    return " ".join(word.text for word in reading.words if word is name or _is_one_name(reading, word, name))


def _swapped(claim: Reading, part: Reading) -> Iterator[str]:
    """Two names that have changed places: who did it and to whom it was done."""
    anchors = [
        (word.place, there[0].place)
        for word in claim.words
        if word.is_name and sum(other.stem == word.stem for other in claim.words) == 1
        if len(there := [other for other in part.words if other.is_name and other.stem == word.stem]) == 1
    ][:8]
    for n, (one, there) in enumerate(anchors):
        for two, other in anchors[n + 1 :]:
            if _changed_places(claim, part, (one, there), (two, other), anchors):
                yield "has the names in other places"
                return


def _changed_places(
    claim: Reading, part: Reading, one: tuple[int, int], two: tuple[int, int], anchors: Sequence[tuple[int, int]]
) -> bool:
    """Each of the two: its place in the claim, and in the source."""
    inverted = one[1] > two[1]
    low, high = sorted((one[1], two[1]))
    by = any(max(one[0], two[0] - _AGENT) < place < two[0] for place in claim.passives)
    by_there = any(max(low, high - _AGENT) < place < high for place in part.passives)
    if by != by_there:
        return not inverted  # "Bob was paid by Anna" is "Anna paid Bob"
    if not inverted or (_linked(claim, one[0], two[0]) and _linked(part, low, high)):
        return False
    here = _cells(claim, [place for place, _ in anchors], _NEAR)
    there = _cells(part, [place for _, place in anchors], _NEAR)
    same = _common(here[one[0]], there[one[1]]) + _common(here[two[0]], there[two[1]])
    crossed = _common(here[one[0]], there[two[1]]) + _common(here[two[0]], there[one[1]])
    return crossed > same


def _linked(reading: Reading, low: int, high: int) -> bool:
    """Whether nothing but "and", "or" or a comma stands between."""
    return high - low == 1 or (high - low == 2 and low + 1 in reading.links)


def _cells(reading: Reading, places: Sequence[int], reach: int = _NEAR) -> dict[int, list[Word]]:
    """The words that are nearest to each of the places."""
    cells: dict[int, list[Word]] = {place: [] for place in places}
    for word in reading.words if places else ():
        nearest = min(places, key=lambda place: (_distance(reading, place, word.place), place))
        if 0 < abs(nearest - word.place) <= reach:
            cells[nearest].append(word)
    return cells


def _distance(reading: Reading, one: int, two: int) -> int:
    """How far apart two places are; a comma or an "and" between them parts them more."""
    low, high = sorted((one, two))
    return high - low + _PARTS * sum(low <= joint < high for joint in reading.joints)


def _common(ones: list[Word], others: list[Word]) -> int:
    return sum(any(one.keys & other.keys for other in others) for one in ones)


def _other_column(claim: Reading, row: Row) -> Iterator[str]:
    """A number of the right row, under another heading than the claim names."""
    heads = [column.terms for column in row.columns]
    own = [head - frozenset().union(*(heads[:n] + heads[n + 1 :])) for n, head in enumerate(heads)]
    placed = sorted(
        [(word.place, frozenset({word.stem})) for word in claim.words]
        + [(quantity.place, quantity.terms) for quantity in claim.quantities]
    )
    named = list(dict.fromkeys(n for _, terms in placed for n, head in enumerate(own) if terms & head))
    stated = [
        fitting
        for quantity in claim.quantities
        if (fitting := [n for n, column in enumerate(row.columns) if fit(quantity, column.value, row.scales)])
        and not any(quantity.terms & head for head in heads)
    ]
    wrong = [
        n
        for n, fitting in zip(named, stated if len(stated) == len(named) else [sum(stated, [])] * len(named), strict=True)
        if n not in fitting
    ]
    if stated and wrong and (len(stated) == len(named) or len(wrong) == len(named)):
        column = row.columns[wrong[0]]
        yield f"says {column.text} for {column.name}"


def _other_row(claim: Reading, row: Row) -> Iterator[str]:
    """A number of a row, where another row has the label that the claim names."""
    stated = [q for q in claim.quantities if any(fit(q, column.value, row.scales) for column in row.columns)]
    if not stated or not row.label:
        return
    held = row.label & claim.stems
    for label, values in row.others:
        better = label <= claim.stems and (len(label) > len(held) or (row.label > held and len(label) >= len(held)))
        if better and not any(fit(q, values, row.scales) for q in claim.quantities if q in stated):
            yield f"says {stated[0].text} for “{row.name}”"
            return
