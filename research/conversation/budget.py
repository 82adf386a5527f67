"""The token budget of a turn: what fits of memories and history beside the system prompt and the user's message.

System prompt and message are always there, whole. Memories come next, best first; where they do not all fit, by
`greedy` each that still does, by `knapsack` those that are worth most together. What is left belongs to the history:
its newest messages without a gap. Counts are those of the messages as they are sent.

What `debug` tells of one turn: how the memory service did, what was left out, and how long each phase took.

It is JSON-ready and holds no text of a memory or a message.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from research.conversation.health import SomabrainHealthState
from research.conversation.messages import Overhead, Snippet, TokenCount, memory_message, system_message, user_message
from research.conversation.turn import Entry, Turn, Window
from research.errors import TurnTooLongError

Strategy = Literal["greedy", "knapsack"]
Oversize = Literal["error", "cut"]

CUT_MARK = " […]"
_MOST_SUMS = 20_000  # of a knapsack; dozens of memories may have more, and the turn is waited for
_CHARACTERS = 16  # a token has fewer, so a beginning tells of a long text that it is too long
_WORD_END = re.compile(r"(?<=\S)(?=\s)")


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits. `before` is what everything that was considered would have cost, `memories` all memories alone."""

    system: str
    user: str
    snippets: list[Snippet]
    history: list[Entry]
    counts: dict[str, int]
    before: int
    memories: int
    cut: list[str] = field(default_factory=list)  # "system_prompt", "user_message": what was shortened

    @property
    def tokens(self) -> int:
        return sum(self.counts.values())


class Budget:
    """Fits one turn into `limit` tokens."""

    def __init__(
        self, limit: int, count: TokenCount, overhead: Overhead, strategy: Strategy, oversize: Oversize
    ) -> None:
        self._limit = limit
        self._counter = count
        self._overhead = overhead
        self._strategy = strategy
        self._oversize = oversize
        self._counts: dict[str, int] = {}

    def fit(self, system: str, user: str, snippets: Sequence[Snippet], window: Window) -> Fitted:
        fixed = self._overhead.of(system_message("")) + self._overhead.of(user_message("")) + self._overhead.reply
        system, user, cut = self._own_words(system, user, fixed)
        counts = {"system": self.count(system), "history": 0, "snippets": 0, "user": self.count(user)}
        overhead = fixed
        room = self._limit - fixed - counts["system"] - counts["user"]
        memories = self._memory_cost(snippets, room)
        before = self._limit - room + memories
        kept = self._choose(snippets, room)
        if kept:
            memory = memory_message(kept)
            counts["snippets"] = self.count(memory["content"])
            overhead += self._overhead.of(memory)
            room -= self._memory_cost(kept, room)
        history, dropped = self._trim_history(window, room)
        counts["history"] = sum(self.count(entry.text) for entry in history)
        overhead += sum(self._overhead.of(entry.message) for entry in history)
        before += counts["history"] + sum(self._overhead.of(entry.message) for entry in history) + dropped
        return Fitted(system, user, kept, history, {**counts, "overhead": overhead}, before, memories, cut)

    def count(self, text: str) -> int:
        if text not in self._counts:
            self._counts[text] = self._counter(text)
        return self._counts[text]

    def _own_words(self, system: str, user: str, fixed: int) -> tuple[str, str, list[str]]:
        """System prompt and message: as they are, or cut where that is wanted."""
        room = self._limit - fixed
        needed = self._at_least(system, room) + self._at_least(user, room)
        if needed <= room:
            return system, user, []
        if self._oversize == "error" or room < 2:
            raise self._too_long(fixed + needed)
        kept_user = self._cut(user, max(room - self._at_least(system, room), room // 2))
        kept_system = self._cut(system, room - self.count(kept_user))
        if bool(kept_user) < bool(user) or bool(kept_system) < bool(system):  # nothing but a mark would be left
            raise self._too_long(fixed + needed)
        changed = (("system_prompt", kept_system != system), ("user_message", kept_user != user))
        return kept_system, kept_user, [name for name, was_cut in changed if was_cut]

    def _too_long(self, needed: int) -> TurnTooLongError:
        return TurnTooLongError(
            f"system prompt and message take {needed:,} tokens or more, and the budget is {self._limit:,}",
            needed=needed,
            limit=self._limit,
            hint='raise max_prompt_tokens, or let the message be cut with oversize="cut"',
        )

    def _at_least(self, text: str, room: int) -> int:
        """The tokens of a text; of one that is far too long only those of its beginning, which is more than fits."""
        most = (max(room, 0) + 256) * _CHARACTERS
        if len(text) > 2 * most:
            begun = self.count(text[:most])
            if begun > room:
                return begun
        return self.count(text)

    def _cut(self, text: str, room: int) -> str:
        """The beginning of a text that has so many tokens at most, with a mark; nothing if not even that fits."""
        if room <= 0:
            return ""
        if self._at_least(text, room) <= room:
            return text
        text = text[: (room + 256) * _CHARACTERS]
        words = [match.start() for match in _WORD_END.finditer(text)]
        return self._longest(text, words, room) or self._longest(text, range(1, len(text) + 1), room)

    def _longest(self, text: str, stops: Sequence[int], room: int) -> str:
        low, high = 0, len(stops)
        while low < high:
            middle = (low + high) // 2
            if self._counter(text[: stops[middle]] + CUT_MARK) <= room:
                low = middle + 1
            else:
                high = middle
        # Counts need not grow with the text everywhere, so the answer is proved, not assumed.
        while low > 0 and self._counter(text[: stops[low - 1]] + CUT_MARK) > room:
            low -= 1
        return text[: stops[low - 1]] + CUT_MARK if low else ""

    def _memory_cost(self, snippets: Sequence[Snippet], room: int) -> int:
        if not snippets:
            return 0
        message = memory_message(snippets)
        return self._at_least(message["content"], room) + self._overhead.of(message)

    def _choose(self, snippets: Sequence[Snippet], room: int) -> list[Snippet]:
        """Those that fit, in their order."""
        whole = self._memory_cost(snippets, room)
        if whole <= room:
            return list(snippets)
        alone = [self._at_least(f"{each.entry(number)}\n\n", room) for number, each in enumerate(snippets, start=1)]
        around = max(0, whole - sum(alone))  # heading and role
        choose = _knapsack if self._strategy == "knapsack" else _greedy
        kept = [snippets[at] for at in choose([each.score for each in snippets], alone, room - around)]
        while kept and self._memory_cost(kept, room) > room:  # counted as it is sent, which alone decides
            kept.remove(min(kept, key=lambda each: each.score))
        return kept

    def _trim_history(self, window: Window, room: int) -> tuple[list[Entry], int]:
        """The newest messages that fit without a gap, and what the others would have cost."""
        kept: list[Entry] = []
        dropped, full = 0, False
        for group in reversed(window.groups):
            cost = sum(self._at_least(entry.text, room) + self._overhead.of(entry.message) for entry in group)
            full = full or cost > room
            if full:
                dropped += cost
            else:
                kept[:0] = group
                room -= cost
        return kept, dropped


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
        best = _undominated(sorted([*best, *more], key=lambda each: (each[0], -each[1])))
        if len(best) > _MOST_SUMS:
            return _greedy(values, weights, room)
    return list(best[-1][2])


def _undominated(sums: Sequence[tuple[int, float, tuple[int, ...]]]) -> list[tuple[int, float, tuple[int, ...]]]:
    kept: list[tuple[int, float, tuple[int, ...]]] = []
    for each in sums:
        if not kept or each[1] > kept[-1][1]:
            kept.append(each)
    return kept


@dataclass(slots=True)
class TurnReport:
    """Filled while a turn is built."""

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
            "cut": fitted.cut,
            "notes": self.notes,
            "seconds": {name: round(passed, 6) for name, passed in seconds.items()},
        }
