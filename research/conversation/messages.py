"""The messages of a turn, in the seed's order, and what they cost beyond their words.

system        the system prompt
…             the history that fits
system        named `memory`: "Relevant memory:", then each memory under "[1] (label)"
user          what the user says now

Redaction of memories and summaries, by `research.governance.redaction`: what could not be redacted is left out.

It happens beside the event loop, and within its time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from research.context import MEMORY_HEADING, label, message, signals_of
from research.conversation.salience import Scored, time_shown
from research.parallel import Workers

if TYPE_CHECKING:
    from research.governance import RedactorProtocol, SafeRedactor

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


_QUICK = 20_000  # characters that our own rules are through with at once
_PLAIN_ID = re.compile(r"(?:mem(?:ory)?-[0-9a-f]{1,32})?")  # those of our own index, and none


class Redaction:
    """One redactor, for the memories and summaries of many turns."""

    def __init__(self, redactor: RedactorProtocol | None, seconds: float) -> None:
        """Without a redactor it is the base one, which knows keys and tokens."""
        self._redactor = redactor
        self._seconds = seconds
        self._safe: SafeRedactor | None = None
        self._workers = Workers("ctx-governance")

    async def snippets(self, scored: Sequence[Scored]) -> tuple[list[Snippet], Counter[str]]:
        """Those that may be shown, in their order, and how many were left out for which reason: `redaction_error`,
        `redaction_timeout` or `redaction_unavailable`."""
        if not scored:
            return [], Counter()
        if self._redactor is None and sum(len(each.candidate.text) for each in scored) <= _QUICK:
            return self._snippets(scored)  # a millisecond, where to wait for a thread may take ten
        return await self._workers.run(self._snippets, scored)

    async def texts(self, texts: Sequence[str]) -> list[str]:
        """Those that could be redacted."""
        redacted = await self._workers.run(self._redact, texts)
        return [text for text in redacted[0] if text is not None]

    async def warm_up(self) -> None:
        await self._workers.run(self._warm_up)

    def _snippets(self, scored: Sequence[Scored]) -> tuple[list[Snippet], Counter[str]]:
        texts = list(dict.fromkeys(text for each in scored for text in _texts(each)))  # sources repeat
        redacted, dropped = self._redact(texts)
        safe = {text: made for text, made in zip(texts, redacted, strict=True) if made is not None}
        why = {texts[place]: reason for place, reason in dropped.items()}
        shown, reasons = [], Counter[str]()
        for each in scored:
            lost = next((why[text] for text in _texts(each) if text in why), "")
            if lost:
                reasons[f"redaction_{lost}"] += 1
            else:
                shown.append(_snippet(each, safe))
        return shown, reasons

    def _redact(self, texts: Sequence[str]) -> tuple[Sequence[str | None], dict[int, str]]:
        """In their order, None for each that was dropped; and why, by place."""
        done = self._opened().redact_all(texts)
        return done.texts, dict(done.dropped)

    def _opened(self) -> SafeRedactor:
        if self._safe is None:
            from research.governance import BaseRedactor, SafeRedactor

            self._safe = SafeRedactor(self._redactor or BaseRedactor(), seconds=self._seconds)
        return self._safe

    def _warm_up(self) -> None:
        self._opened().warm_up()
        [text] = self._redact(["A memory of [1] a — warm summer."])[0]
        memory_label("memory", message(text or ""))


def _texts(scored: Scored) -> list[str]:
    """All of a memory that is ever shown, but for an id that says nothing."""
    candidate = scored.candidate
    return [candidate.text, candidate.source, *([] if _PLAIN_ID.fullmatch(candidate.id) else [candidate.id])]


def _snippet(scored: Scored, safe: Mapping[str, str]) -> Snippet:
    candidate = scored.candidate
    text = safe[candidate.text]
    return Snippet(
        id=candidate.id if _PLAIN_ID.fullmatch(candidate.id) else safe[candidate.id],
        text=message(text),
        label=memory_label(safe[candidate.source], text),
        score=scored.score,
        base_score=candidate.score,
        recency=scored.recency,
        time=time_shown(candidate.metadata),
    )
