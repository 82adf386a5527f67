"""Experiences: how often questions in other words find them on each axis, what the scores mean, and what ten thousand
of them cost to search and to cluster."""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from research.experiences.records import AXES
from research.index import Index
from tests.bench.table import line, median, title

DATA = Path(__file__).parents[2] / "data"
MANY = 10_000
_FIELDS = (
    "goal", "hypothesis", "action", "prediction", "outcome_result", "surprise", "root_cause", "lesson",
)  # fmt: skip


def run() -> None:
    title("Experiences (data/experiences.jsonl, its questions, and as many foreign ones)")
    records = _lines("experiences.jsonl")
    with tempfile.TemporaryDirectory() as folder, Index(Path(folder) / "own") as index:
        index.experiences.put(records)
        while index.experiences.embed():
            pass
        _quality(index)
    with tempfile.TemporaryDirectory() as folder, Index(Path(folder) / "many") as index:
        _cost(index, records)


def _quality(index: Index) -> None:
    asked = _lines("experience_questions.jsonl")
    for axis in AXES:
        own = [each for each in asked if each["axis"] == axis]
        ranks = [_rank(index, each) for each in own]
        hits = " ".join(f"{sum(rank <= most for rank in ranks) / len(own):.3f}" for most in (1, 5, 10))
        line(f"{axis}: {len(own)} questions, hit@1/5/10", hits)
    right = [_best(index, each["query"], each["axis"]) for each in asked]
    wrong = [_best(index, each["query"], "full") for each in _lines("questions.jsonl")]
    line("score of the first, asked about them", f"{np.mean(right):.2f}", "hit@1 is what it should be")
    line("score of the first, asked about something else", f"{np.mean(wrong):.2f}", "0")


def _cost(index: Index, records: list[dict[str, Any]]) -> None:
    """Texts are mixed of our own; vectors are made up, for to embed forty thousand items takes ten minutes."""
    draw = random.Random(1)
    begun = time.process_time()
    index.experiences.put(_mixed(draw, records, number) for number in range(MANY))
    line(f"{MANY:,} experiences told", f"{time.process_time() - begun:.1f} s")
    with index.catalog.snapshot() as reader:
        encoder = index.rooms.own_encoder(reader)
        numbers = reader.items.without_vectors("experience", encoder.name)
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(80, encoder.dim))
    for start in range(0, len(numbers), 2000):
        part = numbers[start : start + 2000]
        made = centres[rng.integers(0, len(centres), len(part))] + rng.normal(size=(len(part), encoder.dim)) * 0.7
        unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
        index.catalog.items.write_vectors(encoder.name, part, unit, short=True)
    seconds: list[float] = []
    for axis in ("full", *AXES, *AXES):  # the first loads
        begun = time.process_time()
        index.experiences.search("unexpected outcomes in debugging", axis=axis, domain="debugging")
        seconds.append(time.process_time() - begun)
    line(f"one axis of {len(numbers):,} items, searched", f"{median(seconds[1:]) * 1000:.0f} ms", "the first 1 s")
    begun = time.process_time()
    rebuilt = index.experiences.rebuild_values()
    found = sum(each.values for each in rebuilt.axes)
    line(f"{found} values of four axes found", f"{time.process_time() - begun:.1f} s", "80 made-up groups an axis")


def _mixed(draw: random.Random, records: list[dict[str, Any]], number: int) -> dict[str, Any]:
    parts = {name: f"{draw.choice(records).get(name) or 'Nothing of the kind'} {number}" for name in _FIELDS}
    kind = draw.choice(records)
    return {**parts, "id": f"x{number}", **{name: kind[name] for name in ("outcome", "domain", "strategy")}}


def _rank(index: Index, asked: dict[str, Any]) -> int:
    found = index.experiences.search(asked["query"], axis=asked["axis"], limit=10).results
    ids = [each.experience.id for each in found]
    return ids.index(asked["experience"]) + 1 if asked["experience"] in ids else 99


def _best(index: Index, query: str, axis: str) -> float:
    found = index.experiences.search(query, axis=axis, limit=1).results
    return found[0].score if found else 0.0


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in (DATA / name).read_text().splitlines()]
