"""Whether what a claim puts together stands together in the text that it cites: numbers beside their words, names in
their roles, values in their row, under their column and in the scale of their table. What does not is told in words
that follow the source's number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from research.answer.claims.evidence import Row, Window
from research.answer.claims.statement import Fit, Quantity, Reading, Word, fit, is_same, side_of
from research.answer.claims.vocabulary import opposites_of

_CURRENCIES = frozenset("$€£¥")

_NEAR = 4  # places beside a name or number, for what it is said of
_BESIDE = 2  # places on both sides of a number, whatever else stands near
_FAR = 1000
_Side = tuple[int, int, int]  # sentence, clause, and side of its "and"s
_ORDER = frozenset({"first", "last"})  # of what is done, and of no number
_REACH = 6  # places after a verb in which it is said to whom it is done
_MOST_WORDS = 80  # of a sentence that is followed word by word
_PARTS = 3  # places that a comma or an "and" counts for
_LIST_GAP = 3  # places between the entries of a list: its unit, a comma, an "and"


def _other_column(claim: Reading, row: Row) -> Iterator[str]:
    """A number of the right row, under another heading than the claim names; or a value as if it were a change."""
    money = {word.place + 1 for word in claim.words if word.text in _CURRENCIES}
    for quantity in claim.quantities:
        for column in row.columns:
            is_bare = (
                quantity.place in money and not quantity.number.scaled and max(quantity.number.values, default=0) >= 100
            )
            if is_bare and row.scale and fit(quantity, column.value, frozenset()) == Fit.SAME:
                yield f"says {column.text} in {row.scale.rstrip('s')}s"
            if quantity.way == "by" and fit(quantity, column.value, row.scales) and column.terms & claim.years:
                yield f"says {column.text} for {column.name}"
    heads = [column.terms for column in row.columns]
    own = [head - frozenset().union(*(heads[:n] + heads[n + 1 :])) for n, head in enumerate(heads)]
    placed = sorted(
        [(word.place, frozenset({word.stem})) for word in claim.words]
        + [(quantity.place, quantity.terms) for quantity in claim.quantities]
    )
    named = list(
        dict.fromkeys(
            n for _, terms in placed for n, head in enumerate(own) if terms & head and row.columns[n].value.quantities
        )
    )
    stated = [
        fitting
        for quantity in claim.quantities
        if (fitting := [n for n, column in enumerate(row.columns) if fit(quantity, column.value, row.scales)])
        and not any(quantity.terms & head for head in heads)
    ]
    wrong = [
        n
        for n, fitting in zip(
            named,
            stated if len(stated) == len(named) else [[n for fitting in stated for n in fitting]] * len(named),
            strict=True,
        )
        if n not in fitting
    ]
    if stated and wrong and (len(stated) == len(named) or len(wrong) == len(named)):
        column = row.columns[wrong[0]]
        yield f"says {column.text} for {column.name}"


def _turned_round(claim: Reading, row: Row) -> Iterator[str]:
    """ "From 8 to 9", where 9 came first; or a rise to what is less."""
    start = next((quantity for quantity in claim.quantities if quantity.way == "from" and not quantity.is_year), None)
    end = next((q for q in claim.quantities if q.way != "from" and not q.is_year), None)
    if start is None or end is None:
        return
    places = [next((c for c in row.columns if fit(q, c.value, row.scales)), None) for q in (start, end)]
    first, last = (
        min((term for term in column.terms if term.isdigit()), default="") if column else "" for column in places
    )
    falls = max(start.number.values, default=0) > max(end.number.values, default=0)
    said = opposites_of("increas") if falls else opposites_of("decreas")
    if (first and last and first > last) or (all(places) and not said & claim.stems):
        yield "has it the other way round"


def _other_row(claim: Reading, row: Row) -> Iterator[str]:
    """A number of a row, where another row has the label that the claim names."""
    stated = [q for q in claim.quantities if any(fit(q, column.value, row.scales) for column in row.columns)]
    if not stated or not row.label:
        return
    for label, values in row.others:
        own = [word.place for word in claim.words if word.stem in row.label - label]
        theirs = [word.place for word in claim.words if word.stem in label - row.label]
        for q in stated if own and label <= claim.stems else ():
            nearer = theirs and min(abs(at - q.place) for at in theirs) < min(abs(at - q.place) for at in own)
            if nearer and not fit(q, values, row.scales):
                yield f"says {q.text} for “{row.name}”"
                return
    held = row.label & claim.stems
    for label, values in row.others:
        better = label <= claim.stems and (len(label) > len(held) or (row.label > held and len(label) >= len(held)))
        if better and not any(fit(q, values, row.scales) for q in claim.quantities if q in stated):
            yield f"says {stated[0].text} for “{row.name}”"
            return


def bindings_of(claim: Reading, windows: Sequence[Window]) -> Iterator[str]:
    """What does not stand together there, in a few words each."""
    parts = [part for window in windows if not (window.row and window.row.columns) for part in window.parts]
    yield from _exchanged(claim, parts)
    for part in parts:
        if not (listed := _pairs(part)):
            yield from _other_number(claim, part, parts)
        else:
            yield from _other_pair(claim, listed)
        yield from _other_name(claim, part)
        yield from _other_way(claim, part)
        yield from _leapt(claim, part)
        yield from _acted_on(claim, part)
    for window in windows:
        if window.row:
            for conflicts in (_other_column, _turned_round, _other_row):
                yield from conflicts(claim, window.row)


def _other_number(claim: Reading, part: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """A number with words that the source says of another one: "60 months from purchase", of "36 months from purchase,
    and 60 months if you register". Years compete with years, amounts with amounts."""
    swapped: list[str] = []
    for quantity in claim.quantities:
        own = [other.place for other in part.quantities if is_same(quantity, other)]
        rivals = [other for other in part.quantities if other.place not in own and other.is_year == quantity.is_year]
        if not own or not rivals or any(other is not part and fit(quantity, other, frozenset()) for other in parts):
            continue
        good, counted, lent = 0, 0, list[tuple[str, Quantity]]()
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
                counted += any(place - at == 1 for place in places for at in own)  # "65 degrees" has them anywhere
            else:
                lent.append((text, rival))
        foreign = [entry for entry in lent if not any(is_same(entry[1], other) for other in claim.quantities)]
        for word, rival in (foreign or lent)[:1]:
            reason = f"says “{word}” of {rival.text}, not of {quantity.text}"
            is_swap = any(text in _ORDER for text, _ in lent) or (
                len(lent) > 1 and good == counted and not quantity.way and not any(q.way for q in part.quantities)
            )
            if is_swap or (foreign and (not good or _leaves_out(claim, part, own, rivals))):
                yield reason
            elif len(lent) > 2 * (good - counted):
                swapped.append(reason)
    if len(swapped) > 1:
        yield swapped[0]


def _beside(claim: Reading, quantity: Quantity, part: Reading) -> Iterator[tuple[str, list[int]]]:
    """What a claim says nearest to a number, years among it, with its places in the source."""
    alike = [other.place for other in claim.quantities if other.is_year == quantity.is_year]
    turned = bool(claim.passives) != bool(part.passives)  # "Anna paid", "was paid by Anna"
    for sign, place in claim.bounds:
        nearest = min(alike, key=lambda at: _distance(claim, at, place))
        if nearest == quantity.place and (places := [at for other, at in part.bounds if other == sign]):
            yield sign, places
    for word in _cells(claim, alike, _FAR)[quantity.place]:
        places = [other.place for other in part.words if other.keys & word.keys]
        apart = side_of(claim, word) != side_of(claim, quantity) and not word.is_verb
        if places and not (word.is_light or word.is_unit or apart or (turned and (word.is_name or word.is_verb))):
            yield word.text, places
    for other in claim.quantities:
        places = [each.place for each in part.quantities if is_same(each, other)]
        nearest = min(alike, key=lambda place: abs(place - other.place))
        if places and other.is_year and not quantity.is_year and nearest == quantity.place:
            yield other.text, places


def _exchanged(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """Two words that have changed sides: "soap for goggles, alcohol for floors"."""
    sides: dict[tuple[int, int], list[tuple[Word, _Side]]] = {}
    for word in claim.words:
        places = {
            (n, *side_of(part, other)) for n, part in enumerate(parts) for other in part.words if other.keys & word.keys
        }
        if len(places) == 1 and not word.is_light:
            sides.setdefault(side_of(claim, word), []).append((word, places.pop()))
    here, there = _couples([claim]), _couples(parts)
    for one, noun in here.items():
        # "oak beams, a larch deck" of "larch beams, an oak deck"
        swapped = next((word for word, second in there.items() if second == noun and word != one), "")
        if one in there and swapped in here and there[one] == here[swapped] != noun:
            yield f"says it of “{noun}”, not of “{there[one]}”"
            return
    moved: list[tuple[Word, _Side, _Side]] = []
    taken: set[_Side] = set()
    for words in sides.values():
        counts = Counter(side for _, side in words)
        main = max(counts, key=lambda side: (counts[side], side not in taken))
        taken.add(main)
        if counts[main] * 2 >= len(words):
            moved += [(word, main, side) for word, side in words if side != main]
    for word, main, side in moved:
        other = next((other for other, *sides in moved if sides == [side, main]), None)
        if other is not None:
            yield f"says it of “{other.text}”, not of “{word.text}”"
            return


def _acted_on(claim: Reading, part: Reading) -> Iterator[str]:
    """Who does it in the claim has it done to them there: "the council reports to her", of "she reports to them"."""
    for before, verb in pairwise(claim.words):
        there = [word for word in part.words if word.stem == verb.stem]
        if not verb.is_verb or len(there) != 1 or side_of(claim, before) != side_of(claim, verb):
            continue
        by = next((place for place in claim.passives if place > verb.place), _FAR)
        if by == _FAR and verb.text.endswith("ed") and (part.is_passive or there[0].text != verb.text):
            continue  # "respirators fitted yearly" had it done to them
        agent = next((word for word in claim.words if word.place > by), before)
        if (agent is before and verb.place - before.place > 2) or agent.is_light or agent.is_verb or agent.is_unit:
            continue
        turned = -1 if any(place > there[0].place for place in part.passives) else 1
        steps = [turned * (word.place - there[0].place) for word in part.words if word.stem == agent.stem]
        if steps and 0 < min(steps) <= _REACH:
            yield "has it the other way round"
            return


def _leapt(claim: Reading, part: Reading) -> Iterator[str]:
    """Two neighbours of the claim from two parts of a sentence, each of which goes on otherwise: "meters belong to the
    customer", of "meters belong to the operator, cables behind them to the customer"."""
    ours, theirs = claim.items, part.items
    if len(ours) > _MOST_WORDS:
        return
    held = [any(_is_same_item(item, other) for item in ours) for other in theirs]
    placed = []
    for item in ours:
        places = [n for n, other in enumerate(theirs) if held[n] and _is_same_item(item, other)]
        if len(places) == 1 and not (isinstance(item, Word) and item.is_light):
            placed.append((item, places[0]))
    for (one, here), (two, there) in pairwise(placed):
        if any(one.place <= joint < two.place for joint in claim.joints):
            continue
        low, high = sorted((here, there))
        breaks = [joint for joint in part.joints if theirs[low].place <= joint < theirs[high].place]
        if not breaks or max(breaks) - min(breaks) > 1:
            continue  # an insertion
        cut = next(n for n in range(low, high) if theirs[n + 1].place > breaks[-1])
        if low < cut < high - 1 and not (held[cut] or held[cut + 1]):
            yield f"says it of “{theirs[cut].text}” and “{theirs[cut + 1].text}”"
            return


def _is_same_item(one: Word | Quantity, two: Word | Quantity) -> bool:
    if isinstance(one, Word):
        return isinstance(two, Word) and bool(one.keys & two.keys)
    return isinstance(two, Quantity) and is_same(one, two)


def _couples(readings: Sequence[Reading]) -> dict[str, str]:
    """The stem of each word and of the one right after it."""
    pairs = [pair for reading in readings for pair in pairwise(reading.words)]
    return {one.stem: two.stem for one, two in pairs if two.place - one.place == 1 and one.clause == two.clause}


def _other_way(claim: Reading, part: Reading) -> Iterator[str]:
    """ "By 5" is not "to 5"."""
    for quantity in claim.quantities:
        ways = {other.way for other in part.quantities if is_same(quantity, other)}
        if quantity.way and "" not in ways and ways and quantity.way not in ways:
            yield f"says “{min(ways)} {quantity.text}”, not “{quantity.way} {quantity.text}”"


def _leaves_out(claim: Reading, part: Reading, own: Sequence[int], rivals: Sequence[Quantity]) -> bool:
    """Whether the source says more right beside the number, which the claim does not."""
    cells = _cells(part, [*own, *(other.place for other in rivals)], _NEAR + 2)
    return any(not word.is_light and not word.keys & claim.keys for place in own for word in cells[place])


def _pairs(part: Reading) -> list[tuple[Quantity, Quantity]]:
    """What belongs together in "22 %, 26 % and 27 % in 2022, 2021 and 2020": the first with the first, and so on."""
    runs: list[list[Quantity]] = []
    for quantity in part.quantities:
        if (
            runs
            and runs[-1][-1].is_year == quantity.is_year
            and quantity.place - runs[-1][-1].place <= _LIST_GAP
            and _is_listed(part, runs[-1][-1], quantity)
        ):
            runs[-1].append(quantity)
        else:
            runs.append([quantity])
    lists = [run for run in runs if len(run) > 1]
    return [
        pair
        for one, two in pairwise(lists)
        if len(one) == len(two) and one[0].is_year != two[0].is_year
        for pair in zip(one, two, strict=True)
    ]


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
        good, bad = 0, list[tuple[str, Word]]()
        for item, places in _said_with(claim, name, part):
            is_verb = isinstance(item, Word) and item.is_verb
            if {side_of(part, there) for there in places} & {side_of(part, each) for each in own}:
                good += not is_verb
                continue
            for there in places:
                rivals = [other for other in others if side_of(part, other) == side_of(part, there)]
                # "We work from Hexley and Lyon": what comes before the first is said of both.
                if rivals and not (is_verb and there.place < min(other.place for other in rivals)):
                    bad.append((there.text, min(rivals, key=lambda other: _distance(part, other.place, there.place))))
        if len(bad) > good:
            text, rival = bad[0]
            yield f"says “{text}” of “{_whole(part, rival)}”, not of “{_whole(claim, name)}”"
            return


def _said_with(
    claim: Reading, name: Word, part: Reading
) -> Iterator[tuple[Word | Quantity, Sequence[Word | Quantity]]]:
    """What a claim says beside a name, on its side of an "and", with all that is the same in the source."""
    for word in claim.words:
        near = 0 < abs(word.place - name.place) <= _NEAR and side_of(claim, word) == side_of(claim, name)
        if near and not word.is_light and word.stem != name.stem and not _is_one_name(claim, word, name):
            yield word, [other for other in part.words if other.keys & word.keys]
    for quantity in claim.quantities:
        if abs(quantity.place - name.place) <= _NEAR and side_of(claim, quantity) == side_of(claim, name):
            yield quantity, [other for other in part.quantities if is_same(quantity, other)]


def _is_one_name(reading: Reading, one: Word, two: Word) -> bool:
    """Whether two words are of the same name: nothing but names stands between them."""
    low, high = sorted((one.place, two.place))
    return one.is_name and sum(word.is_name for word in reading.words if low <= word.place <= high) == high - low + 1


def _whole(reading: Reading, name: Word) -> str:
    return " ".join(word.text for word in reading.words if word is name or _is_one_name(reading, word, name))


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
