"""What a model is told: prompts are files (`prompts/`), sources are quoted blocks, and all of it fits the model.

The prompt, the sources and the room for the answer together stay within the model's window. Tokens are counted by our
own tables; a model with another tokenizer counts otherwise, so its share is an estimate with a margin. What does not
fit is left out from the end: first the last sources shrink to their passages, then they go, and it is told which.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import ceil
from pathlib import Path

from research.context import CUT_MARK, LEAST_BODY_TOKENS, TokenCounter, message, name, plain
from research.errors import ContextTooLongError, NothingFoundError
from research.llm import Message, Picture
from research.models import SourceDocument

PROMPTS = Path(__file__).with_name("prompts")
# What another tokenizer may count more than ours: SmolLM2 counts 1.1 to 1.2 times as many on most pages, and up to 1.4
# where there are many numbers. Other scripts may take thrice as many; then the server says so, and its count is taken.
MARGIN = 1.4
PICTURE_TOKENS = 1_500  # what models count for a picture differs widely; this is more than most

_MESSAGE_TOKENS = 8  # what a server adds around each message
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages that fit, and what of the sources is in them; sources are named by their citation numbers."""

    messages: tuple[Message, ...]
    tokens: int  # by our count, all messages with what a server adds
    estimate: int  # what the model may count at most
    sources: tuple[int, ...]
    shortened: tuple[int, ...] = ()  # of these only passages
    dropped: tuple[int, ...] = ()

    @property
    def note(self) -> str:
        """What did not fit, in words; empty if all of it did."""
        told = []
        if self.dropped:
            told.append(f"without {_numbers(self.dropped)}")
        if self.shortened:
            told.append(f"with only a part of {_numbers(self.shortened)}")
        return f"the model's window is small: it was asked {' and '.join(told)}" if told else ""


@dataclass(frozen=True, slots=True)
class Window:
    """What a model takes: tokens of prompt and answer together, 0 where nobody knows, and how it counts."""

    tokens: int
    max_answer_tokens: int
    margin: float = MARGIN

    def takes(self, tokens: int) -> bool:
        return not self.tokens or self.estimate(tokens) + self.max_answer_tokens <= self.tokens

    def estimate(self, tokens: int) -> int:
        return ceil(tokens * self.margin)


@cache
def load_prompt(name: str) -> str:
    """The prompt of this name, as its file has it."""
    return (PROMPTS / f"{name}.txt").read_text(encoding="utf-8").strip()


def source_block(source: SourceDocument, number: int, text: str) -> str:
    """A source under its number; with a mark, if its text is suspicious. What is no page says what it is."""
    shown = message(name(source.filename).replace('"', "'").replace("<", "(").replace(">", ")"))
    mark = f' suspicious="{" ".join(source.suspicious)}"' if source.suspicious else ""
    what = f'name="{shown}" page="{source.page}"' if source.kind == "page" else f'kind="{source.kind}" name="{shown}"'
    return f'<source id="{number}" {what}{mark}>\n{message(text)}\n</source>'


def fill(prompt: str, **values: str) -> str:
    """A prompt with its {places} filled, in one go: what is filled in fills nothing itself."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], prompt)


def messages_of(question: str, context: str, system_message: str = "") -> tuple[Message, ...]:
    """The messages for a context that is rendered already."""
    user = fill(load_prompt("context"), sources=plain(context), question=plain(question))
    return Message("system", system_message or load_prompt("system")), Message("user", user)


def fit_prompt(
    question: str,
    sources: Sequence[SourceDocument],
    window: Window,
    *,
    counter: TokenCounter | None = None,
    pictures: Sequence[tuple[int, Picture]] = (),
) -> Prompt:
    """The messages for these sources, numbered from 1, as far as they fit. `pictures` are pages of sources, each with
    its source's number. Raises ContextTooLongError if not even a part of the first source fits, NothingFoundError
    without sources."""
    if not sources:
        raise NothingFoundError("there are no sources to write an answer from")
    counter = counter or TokenCounter()
    draft = _Draft(question, [source.markdown_content for source in sources], list(sources), tuple(pictures))
    for number in range(len(sources), 0, -1):
        if window.takes(draft.tokens(counter)):
            return draft.prompt(counter, window)
        draft = draft.shortened(number)
    while len(draft.texts) > 1:
        if window.takes(draft.tokens(counter)):
            return draft.prompt(counter, window)
        draft = replace(draft, texts=draft.texts[:-1])
    return _cut_to_fit(draft, window, counter).prompt(counter, window)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The sources as they are to be sent."""

    question: str
    texts: list[str]
    sources: list[SourceDocument]  # all of them, those that were dropped too
    pictures: tuple[tuple[int, Picture], ...]
    cut: frozenset[int] = field(default_factory=frozenset)

    def messages(self) -> tuple[Message, ...]:
        blocks = [
            source_block(source, number, text)
            for number, (source, text) in enumerate(zip(self.sources, self.texts, strict=False), start=1)
        ]
        shown = [(number, picture) for number, picture in self.pictures if number <= len(self.texts)]
        if shown:
            numbers = ", ".join(str(number) for number, _ in shown)
            blocks.append(fill(load_prompt("pictures"), numbers=numbers))
        user = fill(load_prompt("question"), sources="\n\n".join(blocks), question=plain(self.question))
        return (
            Message("system", load_prompt("system")),
            Message("user", user, tuple(picture for _, picture in shown)),
        )

    def tokens(self, counter: TokenCounter) -> int:
        return sum(
            counter.count(message.text) + _MESSAGE_TOKENS + PICTURE_TOKENS * len(message.pictures)
            for message in self.messages()
        )

    def prompt(self, counter: TokenCounter, window: Window) -> Prompt:
        tokens, kept = self.tokens(counter), len(self.texts)
        return Prompt(
            messages=self.messages(),
            tokens=tokens,
            estimate=window.estimate(tokens),
            sources=tuple(range(1, kept + 1)),
            shortened=tuple(sorted(number for number in self.cut if number <= kept)),
            dropped=tuple(range(kept + 1, len(self.sources) + 1)),
        )

    def shortened(self, number: int) -> _Draft:
        """With nothing but the passages of one source."""
        short = _passages(self.sources[number - 1])
        return self.with_text(number, short) if short and len(short) < len(self.texts[number - 1]) else self

    def with_text(self, number: int, text: str) -> _Draft:
        texts = [*self.texts]
        texts[number - 1] = text
        return replace(self, texts=texts, cut=self.cut | {number})


def _passages(source: SourceDocument) -> str:
    """The passages of a source in the order of the page."""
    found = sorted((passage for passage in source.passages if passage.text.strip()), key=lambda each: each.start)
    return f"\n\n{CUT_MARK}\n\n".join(dict.fromkeys(passage.text.strip() for passage in found))


def _cut_to_fit(draft: _Draft, window: Window, counter: TokenCounter) -> _Draft:
    """The one source that is left, as much of its beginning as fits."""
    if window.takes(draft.tokens(counter)):
        return draft
    words = re.findall(r"\S+\s*|\s+", draft.texts[0])

    def is_too_much(count: int) -> bool:
        return not window.takes(draft.with_text(1, _beginning(words, count)).tokens(counter))

    fits = bisect_left(range(1, len(words)), True, key=is_too_much)
    if counter.count("".join(words[:fits])) < LEAST_BODY_TOKENS:
        needed = window.estimate(draft.with_text(1, "").tokens(counter) + LEAST_BODY_TOKENS) + window.max_answer_tokens
        raise ContextTooLongError(
            f"the model takes {window.tokens:,} tokens; the question, the instructions and an answer of"
            f" {window.max_answer_tokens:,} tokens need about {needed:,}",
            window=window.tokens,
            hint="lower max_answer_tokens, or name a model with a larger window",
        )
    return draft.with_text(1, _beginning(words, fits))


def _beginning(words: Sequence[str], count: int) -> str:
    return f"{''.join(words[:count]).rstrip()} {CUT_MARK}"


def _numbers(numbers: Sequence[int]) -> str:
    return ("source " if len(numbers) == 1 else "sources ") + ", ".join(map(str, numbers))
