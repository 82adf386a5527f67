"""The records of sessions: what was asked in a conversation with the documents, and what answered. Plain data.

A session belongs to a tenant; its name is unique there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


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
