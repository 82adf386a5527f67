"""The messages of a turn, and the redaction of memories and summaries: what could not be redacted is left out.

system        the system prompt
…             the history that fits
system        named `memory`: "Relevant memory:", then each memory under "[1] (label)"
user          what the user says now
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from research.context import MEMORY_HEADING, label, message, signals_of
from research.conversation.salience import Scored, time_shown
from research.parallel import Workers

if TYPE_CHECKING:
    from research.governance import RedactorProtocol, SafeRedactor

_QUICK = 20_000  # characters that our own rules are through with at once
_PLAIN_ID = re.compile(r"(?:mem(?:ory)?-[0-9a-f]{1,32})?")  # those of our own index, and none


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


def system_message(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def memory_message(snippets: Sequence[Snippet]) -> dict[str, Any]:
    entries = "\n\n".join(snippet.entry(number) for number, snippet in enumerate(snippets, start=1))
    return {"role": "system", "name": "memory", "content": f"{MEMORY_HEADING}\n{entries}"}


class Redaction:
    """One redactor, for the memories and summaries of many turns, beside the event loop and within its time."""

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
        safe, _ = await self._workers.run(self._redact, texts)
        return [safe[text] for text in texts if text in safe]

    async def warm_up(self) -> None:
        await self._workers.run(self._warm_up)

    def _snippets(self, scored: Sequence[Scored]) -> tuple[list[Snippet], Counter[str]]:
        safe, why = self._redact([text for each in scored for text in _texts(each)])
        shown, reasons = [], Counter[str]()
        for each in scored:
            lost = next((why[text] for text in _texts(each) if text in why), "")
            if lost:
                reasons[f"redaction_{lost}"] += 1
            else:
                shown.append(_snippet(each, safe))
        return shown, reasons

    def _redact(self, given: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        """What became of each text, or why it was dropped."""
        texts = list(dict.fromkeys(given))  # sources repeat
        done = self._opened().redact_all(texts)
        safe = {text: made for text, made in zip(texts, done.texts, strict=True) if made is not None}
        return safe, {texts[place]: reason for place, reason in done.dropped.items()}

    def _opened(self) -> SafeRedactor:
        if self._safe is None:
            from research.governance import BaseRedactor, SafeRedactor

            self._safe = SafeRedactor(self._redactor or BaseRedactor(), seconds=self._seconds)
        return self._safe

    def _warm_up(self) -> None:
        self._opened().warm_up()
        sample = "A memory of [1] a — warm summer."
        memory_label("memory", message(self._redact([sample])[0].get(sample, "")))


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
        time=time_shown(candidate.time),
    )
