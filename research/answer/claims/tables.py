"""Whether a claim has a value of a table from the row, the column and in the scale that it names."""

from __future__ import annotations

from collections.abc import Iterator

from research.answer.claims.evidence import Row
from research.answer.claims.quantities import Fit, fit
from research.answer.claims.reading import Reading
from research.answer.claims.thesaurus import opposites_of

_CURRENCIES = frozenset("$€£¥")


def row_conflicts(claim: Reading, row: Row) -> Iterator[str]:
    """What the row says otherwise, in a few words each."""
    yield from _other_column(claim, row)
    yield from _turned_round(claim, row)
    yield from _other_row(claim, row)


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
    named = list(dict.fromkeys(n for _, terms in placed for n, head in enumerate(own) if terms & head))
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
