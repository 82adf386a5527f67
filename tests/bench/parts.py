"""Parts of documents: how often the right page comes first, with the boosters on and off, in one index of data/."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ingest import Observer, ingest
from research.index import Index
from research.settings import Settings
from research.store import IndexPaths
from tests.bench.table import line, title

DATA = Path(__file__).parents[2] / "data"
FOLDERS = ("samples", "no-harm/pdfs", "parts/pdfs")
GOAL = 0.80
NOWHERE = 10_000


def run() -> None:
    questions = _rows("questions.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "index"
        pdfs = [DATA / each for each in FOLDERS]
        ingest(IndexPaths(root), pdfs, settings=Settings(images=False), observer=Observer())
        with Index(root) as on, Index(root, Settings(boosters=())) as off:
            boosted = {row["qid"]: _rank(on, row) for row in questions}
            plain = {row["qid"]: _rank(off, row) for row in questions}
            right = [_answered(on, row) for row in _rows("collection.jsonl")]
    title(f"parts of documents: {len(questions)} questions")
    for most, goal in ((1, f"goal {GOAL:.2f}"), (3, "")):
        line(f"among the first {most}, boosters on", f"{_share(boosted.values(), most):.2f}", goal)
        line(f"among the first {most}, boosters off", f"{_share(plain.values(), most):.2f}")
    line("lower with the boosters on", str(sum(boosted[qid] > plain[qid] for qid in plain)), "goal 0")
    for field in ("part", "language"):
        for name, ranks in _by(questions, field, boosted).items():
            line(f"first, {field} {name}", f"{_share(ranks, 1):.2f}", f"{len(ranks)} questions")
    title(f"questions for documents: {len(right)}")
    line("answered by the right documents, before all others", f"{sum(right) / len(right):.2f}")


def _rows(name: str) -> list[dict[str, Any]]:
    lines = (DATA / "parts" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(each) for each in lines]


def _rank(index: Index, row: Mapping[str, Any]) -> int:
    """Of the best right page, from 1."""
    found = [[each.page.filename, each.page.page] for each in index.rank(row["query"]).found]
    return min((found.index(page) + 1 for page in row["gold"] if page in found), default=NOWHERE)


def _answered(index: Index, row: Mapping[str, Any]) -> bool:
    outcome = index.rank(row["query"])
    first = {each.page.filename for each in outcome.found[: len(row["documents"])]}
    return outcome.answered_by == "documents" and first == set(row["documents"])


def _share(ranks: Iterable[int], most: int) -> float:
    values = list(ranks)
    return sum(rank <= most for rank in values) / len(values)


def _by(rows: Sequence[Mapping[str, Any]], field: str, ranks: Mapping[str, int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row[field]].append(ranks[row["qid"]])
    return dict(sorted(found.items()))
