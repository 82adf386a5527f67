"""Follow-ups: is the right page among the first five for the second question of a conversation, with its session and
without; and does a session bend a question that changes the subject?

data/followups.jsonl is our own set; any other of the same form is read from FOLDER/followups.jsonl beside FOLDER/pdfs:

    {"turns": ["What did it cost in 2024?"], "query": "and in 2025?", "gold": [["report.pdf", 7]], "kind": "ellipsis"}

`kind` "change" is a change of the subject; whatever else it says is a kind of follow-up.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest import Observer, ingest
from research.conversation.sessions import Earlier, FollowUp, follow_up
from research.index import Index
from research.models import Item, Question
from research.settings import Settings
from research.store import IndexPaths
from tests.bench.table import line, title

DATA = Path(__file__).parents[2] / "data"
FOLDERS = ("samples", "no-harm/pdfs", "parts/pdfs")
GOAL = 0.80
NOWHERE = 10_000
_AMONG = 5


@dataclass(frozen=True)
class Pair:
    """A question that comes after others, and the pages that answer it."""

    qid: str
    turns: tuple[str, ...]
    query: str
    gold: tuple[tuple[str, int], ...]
    kind: str
    language: str

    @property
    def is_change(self) -> bool:
        return self.kind == "change"


@dataclass(frozen=True)
class Measured:
    pair: Pair
    alone: int  # rank of the best right page without the session, from 1
    within: int  # with it


def read_pairs(file: Path) -> list[Pair]:
    rows: list[Mapping[str, Any]] = [json.loads(each) for each in file.read_text(encoding="utf-8").splitlines() if each]
    return [
        Pair(
            str(row.get("qid", number)),
            tuple(row["turns"]),
            row["query"],
            tuple((str(name), int(page)) for name, page in row["gold"]),
            str(row.get("kind", "")),
            str(row.get("language", "en")),
        )
        for number, row in enumerate(rows, start=1)
    ]


def measure(index: Index, pairs: Iterable[Pair]) -> Iterator[Measured]:
    for pair in pairs:
        turns: list[Earlier] = []
        for text in pair.turns:
            asked, found = ask(index, text, turns)
            turns.append(Earlier(text, asked.searched, documents_of(found)))
        yield Measured(pair, _rank(pair, ask(index, pair.query, [])[1]), _rank(pair, ask(index, pair.query, turns)[1]))


def ask(index: Index, text: str, turns: Sequence[Earlier]) -> tuple[FollowUp, Sequence[Item]]:
    """As `Index.ask` does with a session, and nothing is kept."""
    with index.catalog.snapshot() as reader:
        asked = follow_up(text, turns, reader)
        question = Question(text, searched=asked.searched, about=asked.about)
        return asked, index.source.retrieve(reader, question, 10).items


def documents_of(found: Sequence[Item]) -> tuple[tuple[str, float], ...]:
    best: dict[str, float] = {}
    for each in found[:5]:
        best.setdefault(each.ref.key, each.score)
    return tuple(best.items())


def share(ranks: Iterable[int], most: int = _AMONG) -> float:
    values = list(ranks)
    return sum(rank <= most for rank in values) / len(values) if values else 0.0


def run(eval_folder: Path, keep: Path | None = None) -> None:
    sets = [("data", [DATA / each for each in FOLDERS], DATA / "followups.jsonl")]
    sets += [(file.parent.name, [file.parent / "pdfs"], file) for file in sorted(eval_folder.glob("*/followups.jsonl"))]
    for name, documents, file in sets:
        with tempfile.TemporaryDirectory() as folder:
            root = (keep or Path(folder)) / f"followups-{name}"
            ingest(IndexPaths(root), documents, settings=Settings(images=False), observer=Observer())
            with Index(root) as index:
                _report(name, list(measure(index, read_pairs(file))))


def _report(name: str, measured: Sequence[Measured]) -> None:
    follow = [each for each in measured if not each.pair.is_change]
    change = [each for each in measured if each.pair.is_change]
    title(f"Follow-ups, {name}: {len(follow)} pairs, {len(change)} changes of subject")
    for most, goal in ((_AMONG, f"goal {GOAL:.2f}"), (1, "")):
        line(f"follow-up, right page among {most}, with the session", f"{_within(follow, most):.3f}", goal)
        line("  without it", f"{share((each.alone for each in follow), most):.3f}")
    for field in ("kind", "language"):
        for value in sorted({getattr(each.pair, field) for each in follow}):
            own = [each for each in follow if getattr(each.pair, field) == value]
            alone = share(each.alone for each in own)
            line(f"  {field} {value}", f"{_within(own):.3f}", f"without {alone:.3f}, {len(own)} pairs")
    line("change of subject, with the session", f"{_within(change):.3f}")
    line("  without it", f"{share(each.alone for each in change):.3f}")
    line("  lost by the session", str(sum(each.alone <= _AMONG < each.within for each in change)), "goal 0")


def _within(measured: Iterable[Measured], most: int = _AMONG) -> float:
    return share((each.within for each in measured), most)


def _rank(pair: Pair, found: Sequence[Item]) -> int:
    """Of the best right page, from 1. A set may name files without their ending."""
    places = [(str(each.metadata["filename"]), int(each.ref.part)) for each in found]
    places_too = [(Path(name).stem, page) for name, page in places]
    ranks = [rank for rank, at in enumerate(zip(places, places_too, strict=True), 1) if set(at) & set(pair.gold)]
    return min(ranks, default=NOWHERE)
