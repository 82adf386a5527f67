"""Questions with known answers against an index: how often, how high and how quickly the right page or memory comes.

Every question is asked once, and what the fusion and each leg ranked is kept. Figures are hit@k, MRR@10 and nDCG@5,
their means, and how far they can be trusted. Each conversation of a set of memories is remembered as a tenant's of its
own, in an index that is made for it and thrown away: what the user remembers is neither looked at nor changed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from research.evaluation.questions import (
    NO_PAGE,
    Gold,
    MemorySet,
    PageKey,
    Question,
    conversation_of,
    document_key,
    field_values,
)
from research.models import Coverage

if TYPE_CHECKING:
    from research.index import Index
    from research.search import Found

# Deep enough to see how far down a lost page is, and for others to compute their own figures from a run file.
DEPTH = 100

METRICS = ("hit@1", "hit@5", "hit@10", "MRR@10", "nDCG@5")

_SAMPLES = 1000
_TAIL = 0.025  # on either side, for an interval of 95 %

ABSENT = "–"
"""The slice of questions that lack the field."""


@dataclass(frozen=True, slots=True)
class RankedPage:
    doc: str  # the file's name
    page: int
    score: float

    @property
    def key(self) -> PageKey:
        return document_key(self.doc), self.page


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and its answers: `ranked` for the mode asked for, `legs` for each of its legs alone."""

    gold: Gold
    ranked: list[RankedPage]
    legs: dict[str, list[RankedPage]]
    seconds: float
    coverage: Coverage

    def keys(self, leg: str | None = None) -> list[PageKey]:
        """The pages in order, each once; two files of one name are one document here, as in a run file."""
        return list(dict.fromkeys(page.key for page in (self.ranked if leg is None else self.legs[leg])))


def ask_all(index: Index, golds: Iterable[Gold], mode: str, *, per_doc: bool = False) -> Iterator[Asked]:
    """Each question in turn. `per_doc` searches only the documents of its gold pages.

    The first is asked twice, because it loads the encoder: seconds are those of an index that is warm.
    """
    for n, gold in enumerate(golds):
        documents = gold.doc_ids if per_doc else None
        if n == 0:
            index.rank(gold.question.query, mode=mode, doc_ids=documents)
        started = time.perf_counter()
        # As many results as a user gets by default, so that the time is what a user waits; the rest as candidates.
        outcome = index.rank(gold.question.query, mode=mode, doc_ids=documents, everything=True)
        seconds = time.perf_counter() - started
        names = [leg.name for leg in outcome.coverage.legs if leg.status == "ok"]
        legs = {name: _alone(outcome.candidates, name) for name in names}
        ranked = [RankedPage(f.page.filename, f.page.page, f.score) for f in outcome.candidates[:DEPTH]]
        yield Asked(gold, ranked, legs, seconds, outcome.coverage)


def write_run(path: Path, asked: Iterable[Asked]) -> None:
    """Write the run file: a line a question, its pages or the ids of its memories in rank order."""
    with path.open("w", encoding="utf-8") as stream:
        for one in asked:
            results = [
                page.doc if isinstance(page, RankedMemory) else {"doc": page.doc, "page": page.page}
                for page in one.ranked
            ]
            stream.write(json.dumps({"qid": one.gold.question.qid, "results": results}) + "\n")


def _alone(candidates: list[Found], leg: str) -> list[RankedPage]:
    """What the leg found by itself, in the order that the mode of its name gives."""
    own = [found for found in candidates if leg in found.legs and found.legs[leg].rank is not None]
    own.sort(key=lambda f: (-round(f.legs[leg].score, 6), f.page.filename, f.page.page, f.page.doc_id))
    return [RankedPage(f.page.filename, f.page.page, f.legs[leg].score) for f in own[:DEPTH]]


@dataclass(frozen=True, slots=True)
class RankedMemory(RankedPage):
    """A memory in the place of a page; `doc` is its id."""

    @property
    def key(self) -> PageKey:
        return self.doc, self.page


def fill(index: Index, read: MemorySet) -> None:
    """Remember every conversation, vectors and all."""
    for name, memories in read.memories.items():
        index.memories.remember_batch(memories, tenant=name)
        while index.memories.maintain(tenant=name):
            pass


def ask_memories(index: Index, read: MemorySet) -> Iterator[Asked]:
    """Each question in turn, inside its conversation."""
    for question in read.questions:
        started = time.perf_counter()
        found = index.memories.recall(question.query, tenant=conversation_of(question), top_k=DEPTH)
        seconds = time.perf_counter() - started
        gold = frozenset(question.gold)
        wanted = {name for name, _ in gold}
        ranked: list[RankedPage] = []
        for each in found.memories:
            own = {each.memory.id, *each.memory.also}  # what says the same is found as this one
            ranked.append(RankedMemory(min(own & wanted, default=each.memory.id), NO_PAGE, each.raw_score))
        yield Asked(Gold(question, gold, ()), ranked, {}, seconds, Coverage(notes=list(found.notes)))


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions and its bootstrap interval of 95 %."""

    mean: float
    low: float
    high: float


def score(ranked: Sequence[PageKey], gold: Collection[PageKey]) -> dict[str, float]:
    """One question's figures, by the names in `METRICS`. `ranked` holds no page twice."""
    right = [page in gold for page in ranked[:10]]
    rank = first_rank(ranked[:10], gold)
    gain = sum(_discount(n) for n, found in enumerate(right[:5]) if found)
    most = sum(_discount(n) for n in range(min(5, len(gold))))
    return {
        "hit@1": float(any(right[:1])),
        "hit@5": float(any(right[:5])),
        "hit@10": float(any(right)),
        "MRR@10": 0.0 if rank is None else 1 / rank,
        "nDCG@5": gain / most,
    }


def first_rank(ranked: Sequence[PageKey], gold: Collection[PageKey]) -> int | None:
    """Rank, from 1, of the first page that is gold."""
    return next((n for n, page in enumerate(ranked, start=1) if page in gold), None)


def figures(scores: Sequence[dict[str, float]]) -> dict[str, Figure]:
    """Every metric's mean over the questions; all of them see the same resamples, so they can be compared."""
    import numpy as np

    if not scores:
        return {}
    values = np.array([[one[name] for name in METRICS] for one in scores])
    chosen = np.random.default_rng(0).integers(0, len(scores), (_SAMPLES, len(scores)))
    means = np.stack([values[rows].mean(axis=0) for rows in chosen])
    low, high = np.quantile(means, [_TAIL, 1 - _TAIL], axis=0)
    columns = zip(METRICS, values.mean(axis=0), low, high, strict=True)
    return {name: Figure(float(mean), float(least), float(most)) for name, mean, least, most in columns}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def _discount(n: int) -> float:
    return 1 / math.log2(n + 2)


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
