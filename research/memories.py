"""The records of memories and of sessions. Plain data.

A session belongs to a tenant; its name is unique there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

DEFAULT_TYPE = "memory"
TOP_K = 8
"""Memories that are recalled if nobody says how many."""

Outcome = Literal["stored", "joined", "known"]
"""What came of telling something: a memory of its own, one more id of a memory that says the same, or nothing new."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """Something to be remembered. Times are ISO 8601 or a datetime; without `created_at` it is told now.

    `key` makes telling it again harmless: what came first under a key stays. `id` is given by the index if it is empty.
    `replaces` is the id of a memory that this one says anew; that one is kept, marked as superseded.
    What sums up others names them by id in `metadata["sources"]`, and is forgotten with them.
    """

    text: str
    id: str = ""
    type: str = DEFAULT_TYPE
    category: str = ""
    importance: float = 0.5  # 0 to 1
    tags: tuple[str, ...] = ()
    namespace: str = ""
    session: str = ""
    persona: str = ""
    speaker: str = ""  # who says it, in a conversation
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: str | datetime = ""
    expires_at: str | datetime = ""
    key: str = ""
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it is stored. Times are ISO 8601 in UTC, empty where there is none."""

    id: str
    text: str
    tenant: str = ""
    type: str = DEFAULT_TYPE
    category: str = ""
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    namespace: str = ""
    session: str = ""
    persona: str = ""
    speaker: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: str = ""
    told_at: str = ""  # when it was told last: later than created_at if it was told again
    last_used_at: str = ""  # when it was last recalled
    expires_at: str = ""
    key: str = ""
    joined_to: str = ""  # the id of the memory that says the same, and as which this one is found
    also: tuple[str, ...] = ()  # ids that are joined to it
    superseded_by: str = ""  # the id of the memory that says it anew
    helped: int = 0  # feedback that it did, of the last that is kept
    not_helped: int = 0
    outcome: str = ""  # of telling it: an `Outcome`

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what `ctx recall --export` writes and `ctx remember --import` reads."""
        fields = asdict(self)
        fields.pop("outcome")
        return fields | {"tags": list(self.tags), "also": list(self.also), "metadata": dict(self.metadata)}


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that fits a question. `score` says how likely it is that it answers, 0 to 1; `parts` what that is made
    of; `salience` is the score with recency mixed in, where that was asked for; `newer` the id of one that seems to
    tell the same anew and stands before it."""

    memory: Memory
    score: float
    raw_score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    salience: float | None = None
    newer: str = ""

    @property
    def standing(self) -> str:
        """What there is to say of one that a newer one stands before: "older; told 2026-01-12"."""
        word = "superseded" if self.memory.superseded_by else "older" if self.newer else ""
        return f"{word}; told {self.memory.told_at[:10]}" if word else ""

    def candidate(self) -> dict[str, Any]:
        """As seed 000 has it. Of the metadata that came with it nothing stands for what the index knows itself."""
        memory = self.memory
        known: dict[str, Any] = {
            "timestamp": memory.told_at,
            "created_at": memory.created_at,
            "type": memory.type,
            "category": memory.category,
            "importance": memory.importance,
            "tags": list(memory.tags),
            "namespace": memory.namespace,
            "session_id": memory.session,
            "persona_id": memory.persona,
            "speaker": memory.speaker,
            "superseded_by": memory.superseded_by,
            "newer": self.newer,
        }
        told = {name: value for name, value in known.items() if value not in ("", [])}
        metadata = {"source": memory.type} | dict(memory.metadata) | told
        return {"id": memory.id, "score": self.score, "text": memory.text, "metadata": metadata}


@dataclass(frozen=True, slots=True)
class Recall:
    """What was recalled, best first, and what could not be seen."""

    query: str
    memories: list[Recalled]
    searched: int = 0  # memories of the tenant that the filters left
    without_vectors: int = 0  # of these, found by their words only, for now
    notes: tuple[str, ...] = ()  # what went another way than usual
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten: the ids asked for, and summaries that were made from them."""

    ids: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Within:
    """Which memories of a tenant are meant. None: any."""

    session: str | None = None
    persona: str | None = None  # those of this persona, and those of none
    namespace: str | None = None
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()  # all of them


@dataclass(frozen=True, slots=True)
class CitedPage:
    """A page that a turn cited. `filename` is today's; `quotes` are gone if the document has changed since."""

    citation: int  # its number in the answer, from 1
    doc_id: str
    page: int  # physical, 1-based
    relevance_score: float  # how likely it was that it answers, 0 to 1
    quotes: tuple[str, ...] = ()  # sentences of it that were quoted
    filename: str = ""

    @property
    def ref(self) -> str:
        return f"page:{self.doc_id}#{self.page}"


@dataclass(frozen=True, slots=True)
class AskedTurn:
    """A question of a session and its answer. Times are ISO 8601 in UTC."""

    question: str
    searched: str  # what was really searched: with words of the turns before, where it leans on them
    sources: tuple[CitedPage, ...] = ()
    answer: str = ""  # what a model wrote; empty without one
    model: str = ""
    asked_at: str = ""
    number: int = 0  # in its session, from 1

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        sources = [{**asdict(source), "quotes": list(source.quotes), "ref": source.ref} for source in self.sources]
        return {
            "turn": self.number,
            "asked_at": self.asked_at,
            "question": self.question,
            "searched": self.searched,
            "answer": self.answer,
            "model": self.model,
            "sources": sources,
        }


@dataclass(frozen=True, slots=True)
class Session:
    """What there is to say of a session in a list."""

    name: str
    turns: int
    began_at: str
    last_at: str
    question: str  # the first


@dataclass(frozen=True, slots=True)
class RemovedSession:
    """What went with a session: its turns, memories told in it, and summaries made from those."""

    name: str
    turns: int
    memories: Sequence[str] = ()
    summaries: Sequence[str] = ()
