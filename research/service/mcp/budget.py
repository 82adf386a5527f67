"""The budget of a tool's result: it bounds what an agent reads.

What counts is the whole result as JSON, the way it goes over the wire: text, structured content, field names, escapes
and the server's stamp. An agent that asks for 800 tokens gets no more than 800, however its client shows them.

Where the text stands is the client's fault and ours to live with. A result may hold text for models and fields for
programs, and clients show a model one of the two: some the text (Claude Desktop), some nothing but the fields (Claude
Code, Codex, VS Code). To send the text of pages twice would halve what fits, so it stands once: in the place the client
is known to show, or that the agent asks for (`text_in`). The other place says how to get it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

from research import __version__
from research.context import TokenCounter
from research.errors import UsageError

T = TypeVar("T")
TextIn = Literal["content", "structured"]
TEXT_IN: tuple[TextIn, ...] = ("content", "structured")

LEAST_TOKENS = 300  # with less, the frame leaves no room for a passage
MOST_TOKENS = 100_000
SERVER_NAME = "ctx"
# What the SDK adds to every result since the protocol of 2026-07-28. Whoever speaks an older one reads less.
STAMP = {"io.modelcontextprotocol/serverInfo": {"name": SERVER_NAME, "version": __version__}}

IN_CONTENT = "The text is in this result's text content. If you see none, call again with text_in='structured'."
IN_STRUCTURED = "The text is in structuredContent.text. If you see none, call again with text_in='content'."

_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_PATIENCE = 8  # two guesses too high, and halving is quicker
_TRIES = 12
_SLACK = 24  # tokens that are not worth another try
_ERROR_TOKENS = 150  # so that with its frame an error is no longer than the least budget


@dataclass(frozen=True, slots=True)
class Picture:
    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool says: text for whoever reads it, and the facts in fields. Clients that show a model nothing but the
    fields would drop a picture beside them, so a reply with a picture has none."""

    text: str
    fields: Mapping[str, Any] | None = None
    picture: Picture | None = None

    @property
    def truncated(self) -> bool:
        return bool((self.fields or {}).get("truncated"))


@dataclass(frozen=True, slots=True)
class Shown:
    """A reply as a result of the protocol: its text content, and its structured content if it has any."""

    text: str
    structured: dict[str, Any] | None

    def to_json(self) -> str:
        """The longest form in which a client may hand it on: with what the SDK adds, and with fields that are empty."""
        content = [{"type": "text", "text": self.text, "annotations": None, "_meta": None}]
        result: dict[str, Any] = {"_meta": STAMP, "content": content}
        if self.structured is not None:
            result["structuredContent"] = self.structured
        result |= {"isError": False, "resultType": "complete"}
        return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def shown(reply: Reply, text_in: TextIn) -> Shown:
    """The text in the place where it is read, and in the other one where it is."""
    text = reply.text.rstrip("\n")
    if reply.fields is None:
        return Shown(text, None)
    if text_in == "structured":
        return Shown(IN_STRUCTURED, {"text": text, **reply.fields})
    return Shown(text, {"note": IN_CONTENT, **reply.fields})


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens a result may have, and where its text stands."""

    max_tokens: int
    text_in: TextIn = "content"

    def cost(self, reply: Reply) -> int:
        """The most it can come to: all of it as JSON, or as a client hands on its parts."""
        result = shown(reply, self.text_in)
        whole = counter().count(result.to_json())
        if result.structured is None:
            return whole
        spaced = json.dumps(result.structured, ensure_ascii=False)
        return max(whole, counter().count(result.text) + counter().count(spaced))

    def room(self, reply: Reply) -> int:
        """What is left beside a reply; less than nothing if it is too long itself."""
        return self.max_tokens - self.cost(reply)

    def fits(self, reply: Reply) -> bool:
        return self.room(reply) >= 0

    def too_small(self, reply: Reply) -> UsageError:
        """For a reply that is as short as it can be and does not fit."""
        return UsageError(
            f"max_tokens={self.max_tokens} is too small for this result",
            hint=f"call again with max_tokens={max(self.max_tokens, self.cost(reply)) + LEAST_TOKENS} or more",
        )


def longest(render: Callable[[int], Reply], most: int, budget: Budget) -> Reply:
    """The reply with as many entries as fit, of `most` at most. Counts grow with the entries, and what comes out was
    counted itself."""
    whole = render(most)
    if budget.fits(whole):
        return whole
    low, high, best = 0, most, render(0)
    if not budget.fits(best):
        raise budget.too_small(best)
    while high - low > 1:
        middle = (low + high) // 2
        tried = render(middle)
        if budget.fits(tried):
            low, best = middle, tried
        else:
            high = middle
    return best


def filled(within: Callable[[int], T], reply_of: Callable[[T], Reply], tokens: int, budget: Budget) -> T:
    """What was found within as many tokens as its reply has room for, beginning with a guess. `within` fits what was
    found into a number of tokens: that is tried often, and never searches."""
    best, low, high = None, 0, budget.max_tokens  # the most that fit, the least that did not
    step = 2  # what is cut falls on the next sentence, and a small step may change nothing
    for _ in range(_TRIES):
        fitted = within(tokens)
        reply = reply_of(fitted)
        room = budget.room(reply)
        if room >= 0:
            best, low = fitted, tokens
            if room <= _SLACK + budget.max_tokens // 25 or not reply.truncated:
                break
        else:
            high, step = tokens, 2 * step
        guess = tokens + room - step
        tokens = guess if low < guess < high and step <= _PATIENCE else (low + high) // 2
        if tokens <= low:
            break
    if best is None:
        best = within(0)  # nothing but what there is to say
        if not budget.fits(reply_of(best)):
            raise budget.too_small(reply_of(best))
    return best


class EscapedCounter(TokenCounter):
    """Counts a text about as it stands inside JSON: what is escaped there costs more. Piece by piece, so a little off
    where pieces meet; good enough to fill a budget, which is then counted as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self._extra: dict[str, int] = {}

    def count_pieces(self, pieces: Sequence[str]) -> int:
        return super().count_pieces(pieces) + sum(self._more(piece) for piece in pieces)

    def _more(self, piece: str) -> int:
        if not _ESCAPED.search(piece):
            return 0
        if piece not in self._extra:
            inside = json.dumps(piece, ensure_ascii=False)[1:-1]
            self._extra[piece] = max(0, counter().count(inside) - super().count_pieces([piece]))
        return self._extra[piece]


@cache
def counter() -> TokenCounter:
    """o200k, whatever encoding the settings name: the agent's own is not known."""
    return TokenCounter()


@cache
def escaped_counter() -> EscapedCounter:
    return EscapedCounter()


def cut_error(text: str) -> str:
    """An error's words, short enough for the least budget."""
    if counter().count(json.dumps(text, ensure_ascii=False)) <= _ERROR_TOKENS:
        return text
    low, high = 0, min(len(text), 8 * _ERROR_TOKENS)
    while high - low > 1:
        middle = (low + high) // 2
        fits = counter().count(json.dumps(f"{text[:middle]}…", ensure_ascii=False)) <= _ERROR_TOKENS
        low, high = (middle, high) if fits else (low, middle)
    return f"{text[:low]}…"
