"""Fitting items into a token budget that holds exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from research.context.tokens import RunningCount, TokenCounter
from research.models import Item
from research.text import SENTENCE_BREAK

CUT_MARK = "[…]"

# A cut source must still say something: fewer tokens than this and it is dropped instead.
_LEAST_BODY_TOKENS = 16

_PARAGRAPH_END = re.compile(r"\n{2,}|\n(?=[-|#>*]|\d+\.)")
_SENTENCE_END = re.compile(rf"{SENTENCE_BREAK.pattern}|\n")  # lines of a list or table count as sentences
_WORD_END = re.compile(r"(?<=\S)(?=\s)")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a context may hold."""

    max_tokens: int
    max_items: int


class Renderer(Protocol):
    """How an item stands in the text: a header line with its number, and its text below."""

    @property
    def separator(self) -> str: ...

    def header(self, item: Item, number: int) -> str: ...

    def body(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits: the text, its items in order, its exact tokens, and the items that were left out."""

    text: str
    items: list[Item]
    tokens: int
    dropped: list[Item]

    @property
    def truncated(self) -> bool:
        return bool(self.dropped) or any(item.cut for item in self.items)


def fit(items: Sequence[Item], max_tokens: int, renderer: Renderer, counter: TokenCounter) -> Fitted:
    """Take items in order while they fit. The one that crosses the budget is cut, the rest are dropped."""
    text, count = "", RunningCount(counter)
    kept: list[Item] = []
    for number, item in enumerate(items, start=1):
        head = f"{renderer.separator if text else ''}{renderer.header(item, number)}\n"
        added = head + renderer.body(item.text)
        longer = count.plus(added)
        if longer.tokens <= max_tokens:
            text, count = text + added, longer
            kept.append(item)
            continue
        cut = _cut(count.plus(head), item, max_tokens, renderer, counter)
        if cut is not None:
            last = head + renderer.body(cut.text)
            longer = count.plus(last)
            # Without its last heading a text is shorter, though not always in tokens.
            if longer.tokens <= max_tokens:
                text, count = text + last, longer
                kept.append(cut)
        break
    return Fitted(text, kept, count.tokens, list(items[len(kept) :]))


def _cut(head: RunningCount, item: Item, max_tokens: int, renderer: Renderer, counter: TokenCounter) -> Item | None:
    """The item shortened to what is left of the budget after its header; None if nothing useful fits."""
    whole = item.text.strip()  # as it is, so that the item keeps its page's own text
    room = max_tokens - head.tokens
    if room < _LEAST_BODY_TOKENS:
        return None
    for ends in (_PARAGRAPH_END, _SENTENCE_END, _WORD_END):
        stops = [match.start() for match in ends.finditer(whole) if match.start() > 0]
        length = _longest(head, whole, stops, max_tokens, renderer)
        kept = _without_last_heading(whole[:length])
        # A paragraph break is the best place, unless it would waste most of the room.
        if kept and (counter.count(kept) >= room // 2 or (ends is _WORD_END)):
            return replace(item, text=f"{kept}\n{CUT_MARK}", cut=True)
    return None


def _without_last_heading(text: str) -> str:
    """A heading whose text was cut away promises what does not follow."""
    lines = text.rstrip().split("\n")
    while lines and (not lines[-1].strip() or lines[-1].startswith("#")):
        lines.pop()
    return "\n".join(lines)


def _longest(head: RunningCount, whole: str, stops: list[int], max_tokens: int, renderer: Renderer) -> int:
    """The last stop at which head, text and cut mark stay within the budget, by bisection."""

    def fits(stop: int) -> bool:
        return head.plus(f"{renderer.body(whole[:stop])}\n{CUT_MARK}").tokens <= max_tokens

    low, high = 0, len(stops)
    while low < high:
        middle = (low + high) // 2
        if fits(stops[middle]):
            low = middle + 1
        else:
            high = middle
    # Counts grow with the text but for the joint at the cut mark, so the answer is proved, not assumed.
    while low > 0 and not fits(stops[low - 1]):
        low -= 1
    return stops[low - 1] if low else 0
