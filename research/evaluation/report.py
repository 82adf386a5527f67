"""What a finished run amounts to: figures of the fusion and its legs, by slice, the time taken, the failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from research.evaluation.metrics import Figure, figures, first_rank, percentile, score
from research.evaluation.questions import Question, field_values
from research.evaluation.run import Asked, RankedPage

ABSENT = "–"
"""The slice of questions that lack the field."""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one way of ranking, or of one slice of the questions."""

    name: str
    questions: int
    figures: dict[str, Figure]


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds a question takes in an engine that is warm."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Failure:
    """A question without a gold page among the first, and what came instead."""

    question: Question
    rank: int | None  # of the first gold page, where it came at all
    leg_ranks: dict[str, int | None]
    right_document: bool  # a page of a gold document came among the first
    returned: list[RankedPage]


@dataclass(frozen=True, slots=True)
class Report:
    rankings: list[Row]  # the mode asked for, then its legs
    field: str | None
    slices: list[Row]  # one a value of `field`
    latency: Latency
    among: int
    failures: list[Failure]  # no gold page among the first `among`


def summarise(asked: Sequence[Asked], mode: str, *, field: str | None = None, among: int = 10) -> Report:
    sliced = [] if field is None else slices(asked, field)
    return Report(rankings(asked, mode), field, sliced, latency(asked), among, failures(asked, among))


def rankings(asked: Sequence[Asked], mode: str) -> list[Row]:
    """The mode first, then each of its legs alone where there are several. A leg that found nothing is not there."""
    found = [Row(mode, len(asked), figures([score(one.keys(), one.gold.pages) for one in asked]))]
    names = dict.fromkeys(name for one in asked for name, pages in one.legs.items() if pages)
    for name in names if len(names) > 1 else ():
        scores = [score(one.keys(name) if name in one.legs else [], one.gold.pages) for one in asked]
        found.append(Row(name, len(asked), figures(scores)))
    return found


def slices(asked: Sequence[Asked], field: str) -> list[Row]:
    """The mode's figures for each value of a field, the most frequent first."""
    groups: dict[str, list[dict[str, float]]] = {}
    for one in asked:
        for value in dict.fromkeys(field_values(one.gold.question, field)) or [ABSENT]:
            groups.setdefault(value, []).append(score(one.keys(), one.gold.pages))
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [Row(value, len(scores), figures(scores)) for value, scores in ordered]


def latency(asked: Sequence[Asked]) -> Latency:
    seconds = [one.seconds for one in asked]
    return Latency(percentile(seconds, 0.5), percentile(seconds, 0.95))


def failures(asked: Sequence[Asked], among: int) -> list[Failure]:
    """Questions none of whose gold pages came among the first `among`."""
    found = []
    for one in asked:
        keys = one.keys()
        rank = first_rank(keys, one.gold.pages)
        if rank is not None and rank <= among:
            continue
        documents = {name for name, _ in one.gold.pages}
        right = any(name in documents for name, _ in keys[:among])
        leg_ranks = {name: first_rank(one.keys(name), one.gold.pages) for name in one.legs}
        found.append(Failure(one.gold.question, rank, leg_ranks, right, one.ranked[:among]))
    return found
