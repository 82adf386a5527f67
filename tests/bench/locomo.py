"""Memories of long conversations (LoCoMo's development half): how often the turn that answers is recalled.

Each conversation is one tenant's memories, a turn a memory. Weights were chosen on these same conversations; so each is
also left out in turn, chosen for the other three and measured on it.
"""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.evaluation import Question, fill, read_set
from research.evaluation.questions import MemorySet, conversation_of
from research.index import Index
from research.memories import Recalled
from research.search import read_question
from research.search.memories import parts_of
from research.settings import FLOOR
from tests.bench.calibration import FIFTHS
from tests.bench.table import line, title

DATA = Path(__file__).parents[2] / "data"
TOP = 10
_SHARES = (0.5, 1.0, 1.5)  # of a weight, tried for each

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what came: whether each of the first is right."""

    conversation: str
    category: str
    right: list[bool]

    def hit(self, k: int) -> bool:
        return any(self.right[:k])


def run(eval_folder: Path) -> None:
    folder = eval_folder / "locomo-dev"
    if folder.is_dir():
        _conversations(folder)
    updates()


def _conversations(folder: Path) -> None:
    read = read_set(folder / "qrels.jsonl")
    title("LoCoMo's development half (hit@1 / hit@5 / hit@10; aim: .70 and .78)")
    with tempfile.TemporaryDirectory() as root, Index(Path(root) / "index") as index:
        fill(index, read)
        asked = _ask(index, read)
        _report("all questions", asked)
        for name in sorted({one.category for one in asked}):
            _report(f"  category {name}", [one for one in asked if one.category == name])
        for name in read.memories:
            _report(f"  conversation {name}", [one for one in asked if one.conversation == name])
        _report("with salience, the clock at each conversation's end", _ask(index, read, salience=True))
        _left_out_weights(index, read)
        _calibration(index, read, folder / "unanswerable.jsonl")


def _report(what: str, asked: list[Asked]) -> None:
    hits = " ".join(f"{np.mean([one.hit(k) for one in asked]):.3f}" for k in (1, 5, 10))
    line(what, hits, f"{len(asked)} questions")


def _ask(index: Index, read: MemorySet, *, salience: bool = False) -> list[Asked]:
    ends = {name: _end(memories) for name, memories in read.memories.items()}
    found = []
    for question in read.questions:
        place, category = conversation_of(question), str(question.fields["category"])
        recalled = index.memories.recall(question.query, tenant=place, top_k=TOP, salience=salience, now=ends[place])
        found.append(_asked(place, category, _gold(question), recalled.memories))
    return found


def _gold(question: Question) -> set[str]:
    return {name for name, _ in question.gold}


def _asked(conversation: str, category: str, wanted: set[str], recalled: list[Recalled]) -> Asked:
    right = [bool(wanted & {each.memory.id, *each.memory.also}) for each in recalled]
    return Asked(conversation, category, right)


def _end(memories: list[dict[str, Any]]) -> datetime:
    return max(datetime.fromisoformat(memory["timestamp"]) for memory in memories).astimezone(UTC)


def _left_out_weights(index: Index, read: MemorySet) -> None:
    """Other weights than ours, chosen on three conversations and measured on the fourth."""
    names = ("vectors", "speaker", "time", "asking")
    hits: dict[tuple[float, ...], dict[str, list[tuple[bool, bool]]]] = {}
    for question in read.questions:
        place = conversation_of(question)
        parts, ids = _parts(index, place, question.query)
        for shares in product(_SHARES, repeat=len(names)):
            weighed = dict(zip(names, shares, strict=True))
            total = sum(weighed.get(name, 1.0) * values for name, values in parts.items())
            best = [ids[row] for row in np.argsort(-total, kind="stable")[:TOP]]
            five, ten = (bool(_gold(question) & set(best[:k])) for k in (5, 10))
            hits.setdefault(shares, {}).setdefault(place, []).append((five, ten))
    together: list[tuple[bool, bool]] = []
    for left_out in read.memories:
        others = {s: [h for name, found in each.items() if name != left_out for h in found] for s, each in hits.items()}
        chosen = max(others, key=lambda shares: float(np.mean(others[shares])))
        measured = hits[chosen][left_out]
        together += measured
        told = ", ".join(f"{name} × {share:g}" for name, share in zip(names, chosen, strict=True))
        line(f"weights chosen without {left_out}, hit@5 / hit@10 on it", _means(measured), told)
    line("weights left out, all together", _means(together))
    ours = [hit for found in hits[1.0, 1.0, 1.0, 1.0].values() for hit in found]
    spread = [float(np.mean([h[0] for found in each.values() for h in found])) for each in hits.values()]
    line("ours", _means(ours), f"hit@5 of all {len(hits)} tried: {min(spread):.3f} to {max(spread):.3f}")


def _means(hits: list[tuple[bool, bool]]) -> str:
    return " ".join(f"{np.mean([hit[place] for hit in hits]):.3f}" for place in (0, 1))


def _parts(index: Index, tenant: str, query: str) -> tuple[dict[str, Floats], list[str]]:
    """Every memory's sum in its parts, and the ids."""
    memories = index.memory_store()
    source = memories._source()
    with index.catalog.snapshot() as reader:
        encoder = index.rooms.own_encoder(reader)
        view = source.views.get(reader, tenant, encoder.name)
        assert view is not None
        asking = read_question(view, query)
        parts = parts_of(view, asking, encoder.embed_query(asking.embedded), query, datetime.now(UTC))
        found = reader.memories.get(tenant, view.columns.numbers.tolist())
    return parts, [found[int(number)].id for number in view.columns.numbers]


def _calibration(index: Index, read: MemorySet, unanswerable: Path) -> None:
    """What scores are worth in conversations they were not fitted on: own questions, those without an answer, and as
    many foreign ones."""
    title("Scores of memories (LoCoMo, for control; half of the questions have no answer there)")
    pick, names = random.Random(0), list(read.memories)
    told: list[tuple[float, float]] = []

    def ask(query: str, tenant: str, gold: set[str]) -> None:
        found = index.memories.recall(query, tenant=tenant, top_k=TOP).memories
        told.extend((each.score, float(bool(gold & {each.memory.id, *each.memory.also}))) for each in found)

    for question in read.questions:
        ask(question.query, conversation_of(question), _gold(question))
        ask(question.query, pick.choice([name for name in names if name != conversation_of(question)]), set())
    for entry in map(json.loads, unanswerable.read_text("utf-8").splitlines()):
        ask(entry["query"], entry["conversation"], set())
    scores, good = np.array([score for score, _ in told]), np.array([right for _, right in told])
    for low, high in pairwise(FIFTHS):
        inside = (scores >= low) & (scores < high)
        if inside.any():
            where = f"scores of {low:.1f} to {min(high, 1.0):.1f}"
            line(where, f"{good[inside].mean():.2f} / {scores[inside].mean():.2f}", f"{int(inside.sum())} memories")
    line("of what answers, below the floor", f"{(scores[good > 0] < FLOOR).mean():.2f}")


def updates() -> None:
    """Pairs of ours in which the second memory takes the first one back."""
    title("Newest facts first (data/memory_updates.jsonl)")
    pairs = [json.loads(text) for text in (DATA / "memory_updates.jsonl").read_text("utf-8").splitlines()]
    now = datetime(2026, 11, 1, tzinfo=UTC)
    with tempfile.TemporaryDirectory() as root, Index(Path(root) / "index") as index:
        for kind, days in (("old", 60), ("new", 3)):
            told = now - timedelta(days=days)
            index.memories.remember_batch(
                {"text": p[kind], "id": f"{p['qid']}/{kind}", "created_at": told} for p in pairs
            )
        for salience in (False, True):
            first = sum(_newer_first(index, pair, now, salience=salience) for pair in pairs)
            line(f"the newer one comes first, salience {'on' if salience else 'off'}", f"{first} of {len(pairs)}")


def _newer_first(index: Index, pair: dict[str, str], now: datetime, *, salience: bool) -> bool:
    found = index.memories.recall(pair["query"], top_k=TOP, salience=salience, now=now).memories
    ids = [each.memory.id for each in found]
    newer, older = f"{pair['qid']}/new", f"{pair['qid']}/old"
    return newer in ids and (older not in ids or ids.index(newer) < ids.index(older))
