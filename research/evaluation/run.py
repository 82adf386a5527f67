"""Asking every question of a file once, and keeping how the fusion and each leg ranked the pages."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from research.evaluation.gold import Gold
from research.evaluation.questions import PageKey, document_key
from research.index import Index
from research.models import Coverage
from research.search.legs import Found

# Deep enough to see how far down a lost page is, and for others to compute their own figures from a run file.
DEPTH = 100


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
    """The run file: a line a question, its pages in rank order."""
    with path.open("w", encoding="utf-8") as stream:
        for one in asked:
            results = [{"doc": page.doc, "page": page.page} for page in one.ranked]
            stream.write(json.dumps({"qid": one.gold.question.qid, "results": results}) + "\n")


def _alone(candidates: list[Found], leg: str) -> list[RankedPage]:
    """What the leg found by itself, in the order that the mode of its name gives."""
    own = [found for found in candidates if leg in found.legs and found.legs[leg].rank is not None]
    own.sort(key=lambda f: (-round(f.legs[leg].score, 6), f.page.filename, f.page.page, f.page.doc_id))
    return [RankedPage(f.page.filename, f.page.page, f.legs[leg].score) for f in own[:DEPTH]]
