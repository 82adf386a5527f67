"""The messages of a turn, in the seed's order, and what they cost beyond their words.

system        the system prompt
…             the history that fits
system        named `memory`: "Relevant memory:", then each memory under "[1] (label)"
user          what the user says now
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from research.context.escape import MEMORY_HEADING, label
from research.context.injection.detector import signals_of

_SEPARATOR = "\n\n"

TokenCount = Callable[[str], int]
MessageOverhead = int | Callable[[Mapping[str, Any]], int]


@dataclass(frozen=True, slots=True)
class Snippet:
    """A memory that may be shown: redacted and escaped."""

    id: str
    text: str
    label: str
    score: float
    base_score: float
    recency: float
    time: str = ""

    def entry(self, number: int) -> str:
        return f"[{number}] ({self.label})\n{self.text}"

    def to_dict(self) -> dict[str, Any]:
        """As seed 001 has it."""
        return {
            "id": self.id,
            "text": self.text,
            "score": self.score,
            "base_score": self.base_score,
            "recency": self.recency,
            "metadata": {"source": self.label, "timestamp": self.time},
        }


def memory_label(source: str, text: str) -> str:
    """What stands in the brackets behind a number: where a memory is from, and what is suspicious about it."""
    signals = signals_of(text, title=source)
    return f"{label(source)}; suspicious: {' '.join(signals)}" if signals else label(source)


class Overhead:
    """What a message costs beside its words.

    By default as OpenAI's chat models count: three tokens around each message, its role, one and the words for a name,
    and three that begin the reply. A number stands for the same cost of each message, and none for the reply.
    """

    def __init__(self, count: TokenCount, cost: MessageOverhead | None = None) -> None:
        self._count = count
        self._cost = cost
        self.reply = 3 if cost is None else 0

    def of(self, message: Mapping[str, Any]) -> int:
        if isinstance(self._cost, int):
            return self._cost
        if self._cost is not None:
            return self._cost(message)
        name = message.get("name")
        return 3 + self._count(str(message["role"])) + (1 + self._count(str(name)) if name else 0)


def system_message(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def memory_message(snippets: Sequence[Snippet]) -> dict[str, Any]:
    entries = _SEPARATOR.join(snippet.entry(number) for number, snippet in enumerate(snippets, start=1))
    return {"role": "system", "name": "memory", "content": f"{MEMORY_HEADING}\n{entries}"}


def assemble(
    system: str, history: Sequence[dict[str, Any]], snippets: Sequence[Snippet], user: str
) -> list[dict[str, Any]]:
    memory = [memory_message(snippets)] if snippets else []
    return [system_message(system), *history, *memory, user_message(user)]
