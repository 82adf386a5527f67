"""The messages of a turn, and the redaction of memories and summaries: what could not be redacted is left out.

system        the system prompt
…             the history that fits
system        named `memory`: "Relevant memory:", then each memory under "[1] (label)"
user          what the user says now

The token budget of a turn: what fits of memories and history beside the system prompt and the user's message.

System prompt and message are always there, whole. Memories come next, best first; where they do not all fit, by
`greedy` each that still does, by `knapsack` those that are worth most together. What is left belongs to the history:
its newest messages without a gap. Counts are those of the messages as they are sent.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from research.context import MEMORY_HEADING, label, message, signals_of
from research.conversation.health import SomabrainHealthState
from research.conversation.salience import Scored, time_shown
from research.conversation.turn import Entry, Turn, Window
from research.errors import TurnTooLongError
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
        done = self.safe().redact_all(texts)
        safe = {text: made for text, made in zip(texts, done.texts, strict=True) if made is not None}
        return safe, {texts[place]: reason for place, reason in done.dropped.items()}

    def safe(self) -> SafeRedactor:
        """Return the redactor, opened with the first text."""
        if self._safe is None:
            from research.governance import BaseRedactor, SafeRedactor

            self._safe = SafeRedactor(self._redactor or BaseRedactor(), seconds=self._seconds)
        return self._safe

    def _warm_up(self) -> None:
        self.safe().warm_up()
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


Strategy = Literal["greedy", "knapsack"]
TokenCount = Callable[[str], int]
MessageOverhead = int | Callable[[Mapping[str, Any]], int]

_MOST_SUMS = 20_000  # of a knapsack; dozens of memories may have more, and the turn is waited for
_CHARACTERS = 16  # a token has fewer, so a beginning tells of a long text that it is too long


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits. `before` is what everything that was considered would have cost, `memories` all memories alone."""

    messages: list[dict[str, Any]]
    snippets: list[Snippet]
    history: list[Entry]
    counts: dict[str, int]
    before: int
    memories: int

    @property
    def tokens(self) -> int:
        return sum(self.counts.values())


class Budget:
    """Fits turns, counting with `count`.

    A message costs beside its words what OpenAI's chat models take: three tokens around it, its role, one and the words
    for a name, and three that begin the reply. `overhead` stands for another cost of each, and none for the reply.
    """

    def __init__(
        self, count: TokenCount, overhead: MessageOverhead | None = None, strategy: Strategy = "greedy"
    ) -> None:
        self._count = count
        self._overhead = overhead
        self._choose = _knapsack if strategy == "knapsack" else _greedy

    def fit(self, turn: Turn, snippets: Sequence[Snippet], window: Window, limit: int) -> Fitted:
        """Raises TurnTooLongError where the turn's own words are more than the limit."""
        count = cache(self._count)
        system, user = system_message(turn.system_prompt), user_message(turn.user_message)
        overhead = (3 if self._overhead is None else 0) + self.overhead(system) + self.overhead(user)
        needed = overhead + sum(_at_least(each["content"], limit - overhead, count) for each in (system, user))
        if needed > limit:
            raise TurnTooLongError(
                f"system prompt and message take {needed:,} tokens or more, and the budget is {limit:,}",
                needed=needed,
                limit=limit,
                hint="raise max_prompt_tokens, or say it in fewer words",
            )
        counts = {"system": count(system["content"]), "history": 0, "snippets": 0, "user": count(user["content"])}
        room = limit - overhead - counts["system"] - counts["user"]
        memories = self._cost(memory_message(snippets), room, count) if snippets else 0
        before = limit - room + memories
        kept = self._chosen(snippets, memories, room, count)
        messages = [system]
        if kept:
            memory = memory_message(kept)
            counts["snippets"] = count(memory["content"])
            overhead += self.overhead(memory)
            room -= counts["snippets"] + self.overhead(memory)
            messages.append(memory)
        history: list[Entry] = []
        full = False
        for group in reversed(window.groups):
            cost = sum(self._cost(entry.message, room, count, entry.text) for entry in group)
            full = full or cost > room
            before += cost
            if not full:
                history[:0] = group
                room -= cost
        counts["history"] = sum(count(entry.text) for entry in history)
        overhead += sum(self.overhead(entry.message) for entry in history)
        messages[1:1] = [entry.message for entry in history]
        return Fitted([*messages, user], kept, history, {**counts, "overhead": overhead}, before, memories)

    def overhead(self, message: Mapping[str, Any]) -> int:
        """What a message costs beside its words."""
        if isinstance(self._overhead, int):
            return self._overhead
        if self._overhead is not None:
            return self._overhead(message)
        name = message.get("name")
        return 3 + self._count(str(message["role"])) + (1 + self._count(str(name)) if name else 0)

    def _cost(self, message: Mapping[str, Any], room: int, count: TokenCount, text: str | None = None) -> int:
        return _at_least(message["content"] if text is None else text, room, count) + self.overhead(message)

    def _chosen(self, snippets: Sequence[Snippet], whole: int, room: int, count: TokenCount) -> list[Snippet]:
        """Those that fit, in their order; `whole` is what all of them cost."""
        if whole <= room:
            return list(snippets)
        alone = [_at_least(f"{each.entry(number)}\n\n", room, count) for number, each in enumerate(snippets, start=1)]
        around = max(0, whole - sum(alone))  # heading and role
        kept = [snippets[at] for at in self._choose([each.score for each in snippets], alone, room - around)]
        while kept and self._cost(memory_message(kept), room, count) > room:  # counted as it is sent, which decides
            kept.remove(min(kept, key=lambda each: each.score))
        return kept


def _at_least(text: str, room: int, count: TokenCount) -> int:
    """The tokens of a text; of one that is far too long only those of its beginning, which is more than fits."""
    most = (max(room, 0) + 256) * _CHARACTERS
    if len(text) > 2 * most and (begun := count(text[:most])) > room:
        return begun
    return count(text)


def _greedy(values: Sequence[float], weights: Sequence[int], room: int) -> list[int]:
    """Best first, each that still fits. The places chosen, in order."""
    chosen = []
    for at in sorted(range(len(values)), key=lambda at: -values[at]):
        if weights[at] <= room:
            chosen.append(at)
            room -= weights[at]
    return sorted(chosen)


def _knapsack(values: Sequence[float], weights: Sequence[int], room: int) -> list[int]:
    """Those that are worth most together, exactly. Of all sums only those are kept that no lighter one reaches."""
    best: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]  # by weight, and so by value
    for at, (value, weight) in enumerate(zip(values, weights, strict=True)):
        more = [(w + weight, v + value, (*chosen, at)) for w, v, chosen in best if w + weight <= room]
        every, best = sorted([*best, *more], key=lambda each: (each[0], -each[1])), []
        for each in every:
            if not best or each[1] > best[-1][1]:
                best.append(each)
        if len(best) > _MOST_SUMS:
            return _greedy(values, weights, room)
    return list(best[-1][2])


@dataclass(slots=True)
class TurnReport:
    """What `debug` tells of one turn, filled while it is built: JSON-ready, and no text of a memory or a message."""

    turn: Turn
    state: SomabrainHealthState  # of the memory service, when the turn began
    limit: int  # tokens
    retrieval: str = "off"  # "ok", "failed", "skipped" (it was not asked) or "off" (there is none)
    reason: str = ""
    candidates: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  # memories that were found and not used
    summary: str = "none"  # "stored", "failed", "known" (nothing new, or not enough yet), "not yet" or "none"
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    @contextmanager
    def phase(self, name: str, timer: AbstractContextManager[None]) -> Iterator[None]:
        begun = time.perf_counter()
        with timer:
            try:
                yield
            finally:
                self.seconds[name] = time.perf_counter() - begun

    def to_debug(self, fitted: Fitted, window: Window) -> dict[str, Any]:
        seconds = {**self.seconds, "total": time.perf_counter() - self.begun}
        return {
            "somabrain_state": self.state.value,
            "snippet_ids": [snippet.id for snippet in fitted.snippets],
            "session_id": self.turn.session_id,
            "tenant_id": self.turn.tenant_id,
            "persona_id": self.turn.persona_id,
            "snippet_count": len(fitted.snippets),
            "snippet_tokens": fitted.counts["snippets"],
            "history_count": len(fitted.history),
            "total_tokens": fitted.counts["snippets"] + fitted.counts["history"],
            "context_prompt_tokens": fitted.tokens,
            "max_prompt_tokens": self.limit,
            "retrieval": {"status": self.retrieval, "reason": self.reason, "candidates": self.candidates},
            "dropped": dict(+self.dropped),
            "history": {"given": window.length, "considered": len(window.entries), "odd": dict(+window.skipped)},
            "summary": self.summary,
            "notes": self.notes,
            "seconds": {name: round(passed, 6) for name, passed in seconds.items()},
        }
