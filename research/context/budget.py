"""Fitting sources into a token budget that holds exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from research.context.citations import SEPARATOR, block, body, header
from research.context.tokens import Tally, TokenCounter
from research.models import SourceDocument
from research.text import SENTENCE_BREAK

CUT_MARK = "[…]"

# A cut source must still say something: fewer tokens than this and it is dropped instead.
_LEAST_BODY_TOKENS = 16

_PARAGRAPH_END = re.compile(r"\n{2,}|\n(?=[-|#>*]|\d+\.)")
_SENTENCE_END = re.compile(rf"{SENTENCE_BREAK.pattern}|\n")  # lines of a list or table count as sentences
_WORD_END = re.compile(r"(?<=\S)(?=\s)")


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits: the text, its sources in order, its exact tokens, and how many sources were left out."""

    text: str
    sources: list[SourceDocument]
    tokens: int
    dropped: list[SourceDocument]

    @property
    def truncated(self) -> bool:
        return bool(self.dropped) or any(source.cut for source in self.sources)


def fit(sources: Sequence[SourceDocument], max_tokens: int, counter: TokenCounter) -> Fitted:
    """Take sources in order while they fit. The one that crosses the budget is cut, the rest are dropped."""
    text, tally = "", Tally(counter)
    kept: list[SourceDocument] = []
    for number, source in enumerate(sources, start=1):
        added = _joined(text, block(source, number))
        longer = tally.plus(added)
        if longer.tokens <= max_tokens:
            text, tally = text + added, longer
            kept.append(source)
            continue
        cut = _cut(text, tally, source, number, max_tokens=max_tokens, counter=counter)
        if cut is not None:
            last = _joined(text, block(cut, number))
            text, tally = text + last, tally.plus(last)
            kept.append(cut)
        break
    return Fitted(text, kept, tally.tokens, list(sources[len(kept) :]))


def _joined(text: str, part: str) -> str:
    """What adding a part adds to the text."""
    return f"{SEPARATOR}{part}" if text else part


def _cut(
    before: str, tally: Tally, source: SourceDocument, number: int, *, max_tokens: int, counter: TokenCounter
) -> SourceDocument | None:
    """The source shortened to what is left of the budget; None if nothing useful fits."""
    head = tally.plus(_joined(before, header(source, number)) + "\n")
    whole = source.markdown_content.strip()  # as it is, so that the source keeps its page's own text
    room = max_tokens - head.tokens
    if room < _LEAST_BODY_TOKENS:
        return None
    for ends in (_PARAGRAPH_END, _SENTENCE_END, _WORD_END):
        stops = [match.start() for match in ends.finditer(whole) if match.start() > 0]
        length = _longest(head, whole, stops, max_tokens)
        kept = _without_last_heading(whole[:length])
        # A paragraph break is the best place, unless it would waste most of the room.
        if kept and (counter.count(kept) >= room // 2 or (ends is _WORD_END)):
            cut = replace(source, markdown_content=f"{kept}\n{CUT_MARK}", cut=True)
            # Without its last heading a text is shorter, though not always in tokens.
            return cut if tally.plus(_joined(before, block(cut, number))).tokens <= max_tokens else None
    return None


def _without_last_heading(text: str) -> str:
    """A heading whose text was cut away promises what does not follow."""
    lines = text.rstrip().split("\n")
    while lines and (not lines[-1].strip() or lines[-1].startswith("#")):
        lines.pop()
    return "\n".join(lines)


def _longest(head: Tally, whole: str, stops: list[int], max_tokens: int) -> int:
    """The last stop at which head, text and cut mark stay within the budget, by bisection."""

    def fits(stop: int) -> bool:
        return head.plus(f"{body(whole[:stop])}\n{CUT_MARK}").tokens <= max_tokens

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
