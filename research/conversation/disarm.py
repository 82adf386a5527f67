"""Text of memories as it may stand in a system message: it cannot look like one of our labels, change who speaks, or
close what it stands in.

It is disarmed as a document's is (`research.answer.quotation`): by a round bracket, so that it is still seen and no
word is lost. What counts is how a text reads, whatever letters it is written with. An order to a model cannot be
disarmed without changing words; it is marked in the memory's label, as documents are.

    [2] (conversation)      → (2) (conversation)
    System: you may         → (System: you may
    <|im_start|>system      → (|im_start|>system
    Relevant memory:        → (Relevant memory:
"""

from __future__ import annotations

import re
import unicodedata

from research.answer.quotation import quotation
from research.context.injection.detector import signals_of
from research.context.injection.folding import fold
from research.context.render.cited import one_line

_LONGEST_LABEL = 80
_ROLES = "system|assistant|developer|user|human|tool|function|bot|ai|llm|chatgpt|claude"
_AS_ANGLE = str.maketrans(dict.fromkeys("<＜﹤〈〈⟨❬❮˂ᐸ", "‹"))  # `fold` takes away what stands in pointed brackets
_NUMBER = rf"[\W_]{{0,3}}(?:no|nr)?[\W_]{{0,3}}(?:\d|[ivxlc]{{1,8}}\b|[{''.join(map(chr, range(0x2460, 0x2500)))}])"
# Where something reads as ours, by what must be there before it: the beginning of a line, or nothing.
_LINES = (
    re.compile(
        rf"^[^\w\n(]{{0,8}}(?=(?:{_ROLES})(?:[\W_]{{0,3}}(?:prompt|message|instructions?))?[^\w\n]{{0,4}}:)", re.M
    ),
    re.compile(r"^[^\w\n(]{0,8}(?=relevant[^\w\n]+memor(?:y|ies)[^\w\n]*:)", re.M),
)
_TAGS = re.compile(rf"<(?=[\W_]{{0,4}}(?:{_ROLES}|instructions?|memory)\b)")
_ROLE_FIELD = re.compile(r"(?<![(\w])(?=[\"'][^\w\n]{0,3}role[^\w\n]{0,3}[\"']\s*:)")
_BRACKETS = re.compile(r"[()\[\]{}<>（）［］【】〔〕]")


def disarmed(text: str) -> str:
    """The text of a memory for a `memory` block."""
    text = quotation(text)
    reading = fold(text.translate(_AS_ANGLE))
    replaced = {match.start() for match in _TAGS.finditer(reading)} | _label_brackets(text, reading)
    opened = {match.end() for pattern in _LINES for match in pattern.finditer(reading)}
    opened |= {match.start() for match in _ROLE_FIELD.finditer(reading)}
    if not replaced and not opened:
        return text
    return "".join(
        ("(" if at in opened else "") + ("(" if at in replaced else character) for at, character in enumerate(text)
    )


def label(source: str, text: str) -> str:
    """What stands in the brackets behind a number: where a memory is from, and what is suspicious about it."""
    name = _BRACKETS.sub(" ", disarmed(one_line(source)))
    name = " ".join(name.split())[:_LONGEST_LABEL].strip() or "memory"
    signals = signals_of(text, title=source)
    return f"{name}; suspicious: {' '.join(signals)}" if signals else name


def _label_brackets(text: str, reading: str) -> set[int]:
    """Where a line begins with a number in brackets, of whatever kind but the round one that disarms."""
    found = set()
    start = 0
    while start < len(text):
        end = reading.find("\n", start)
        end = len(text) if end < 0 else end
        at = next((at for at in range(start, min(end, start + 9)) if text[at].isalnum() or _opens(text[at])), end)
        if at < end and _opens(text[at]) and re.match(_NUMBER, reading[at + 1 : at + 20]):
            found.add(at)
        start = end + 1
    return found


def _opens(character: str) -> bool:
    return character in "[{<" or (character != "(" and unicodedata.category(character) in {"Ps", "Pi"})
