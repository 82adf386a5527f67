"""Questions to memories, with the memories that answer them: which turn of a long conversation does.

    qrels.jsonl          {"qid": "26_0", "conversation": "26", "query": "…", "gold": ["D1:3"], "category": 2}
    26.memories.jsonl    {"id": "D1:3", "speaker": "Anna", "text": "…", "timestamp": "…", "session": "session_1"}

Each conversation is remembered as a tenant's of its own, in an index that is made for it and thrown away: what the user
remembers is neither looked at nor changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.errors import UsageError
from research.evaluation.gold import Gold
from research.evaluation.questions import PageKey, Question, read_lines
from research.evaluation.run import DEPTH, Asked, RankedPage
from research.index import Index
from research.models import Coverage

FORMAT = 'a line is: {"query": "…", "gold": ["id of a memory"], "conversation": "NAME"}, beside NAME.memories.jsonl'

NO_PAGE = 0
"""What stands for the page of a memory."""


@dataclass(frozen=True, slots=True)
class RankedMemory(RankedPage):
    """A memory in the place of a page; `doc` is its id."""

    @property
    def key(self) -> PageKey:
        return self.doc, self.page


@dataclass(frozen=True, slots=True)
class MemorySet:
    questions: list[Question]  # gold are ids; the field `conversation` says where
    memories: dict[str, list[dict[str, Any]]]  # of each conversation, in order


def asks_memories(path: Path) -> bool:
    """Whether a file of questions names memories, and not pages: told by its first line."""
    gold = next((entry.get("gold") for _, entry in read_lines(path)), None)
    return isinstance(gold, list) and bool(gold) and isinstance(gold[0], str)


def read_set(path: Path) -> MemorySet:
    """The questions, and the memories of the conversations they name. Raises UsageError for what is wrong."""
    questions = [_question(path, number, entry) for number, entry in read_lines(path)]
    if not questions:
        raise UsageError(f"{path} holds no questions", hint=FORMAT)
    names = dict.fromkeys(conversation_of(question) for question in questions)
    return MemorySet(questions, {name: _memories(path.parent, name) for name in names})


def conversation_of(question: Question) -> str:
    return str(question.fields["conversation"])


def fill(index: Index, read: MemorySet) -> None:
    """Remember every conversation, vectors and all."""
    for name, memories in read.memories.items():
        index.remember_batch(memories, tenant=name)
        while index.maintain_memories(tenant=name):
            pass


def ask_memories(index: Index, read: MemorySet) -> Iterator[Asked]:
    """Each question in turn, inside its conversation."""
    for question in read.questions:
        started = time.perf_counter()
        found = index.recall(question.query, tenant=conversation_of(question), top_k=DEPTH)
        seconds = time.perf_counter() - started
        gold = frozenset(question.gold)
        wanted = {name for name, _ in gold}
        ranked: list[RankedPage] = []
        for each in found.memories:
            own = {each.memory.id, *each.memory.also}  # what says the same is found as this one
            ranked.append(RankedMemory(min(own & wanted, default=each.memory.id), NO_PAGE, each.raw_score))
        yield Asked(Gold(question, gold, ()), ranked, {}, seconds, Coverage(notes=list(found.notes)))


def write_memory_run(path: Path, asked: Iterable[Asked]) -> None:
    """The run file: a line a question, the ids in rank order."""
    with path.open("w", encoding="utf-8") as stream:
        for one in asked:
            results = [memory.doc for memory in one.ranked]
            stream.write(json.dumps({"qid": one.gold.question.qid, "results": results}) + "\n")


def _question(path: Path, number: int, entry: dict[str, Any]) -> Question:
    query, gold, place = (entry.get(name) for name in ("query", "gold", "conversation"))
    sound = isinstance(query, str) and bool(query.strip()) and isinstance(gold, list) and bool(gold)
    if (
        not sound
        or not all(isinstance(name, str) for name in gold or ())
        or not isinstance(place, str)
        or not place
        or set("/\\\0") & set(place)
    ):
        raise UsageError(f"{path}:{number}: this is no question to memories", hint=FORMAT)
    others = {name: value for name, value in entry.items() if name not in {"query", "gold", "qid"}}
    ids = tuple((str(name), NO_PAGE) for name in gold or ())
    return Question(str(entry.get("qid", number)), str(query).strip(), ids, others, number)


def _memories(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / f"{name}.memories.jsonl"
    if not path.is_file():
        raise UsageError(f"the memories of the conversation {name!r} are not there: {path}", hint=FORMAT)
    return [entry for _, entry in read_lines(path)]
