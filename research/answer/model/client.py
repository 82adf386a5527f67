"""ModelClient, the protocol of every language model: messages in, a reply out, piece by piece.

    with open_model(settings) as client:
        for piece in client.reply(messages, max_tokens=600):
            ...

`await client.complete_with_context(query, context, system_message)` gives an object with `.content`, as the contract
(seed 004) calls it.
"""

from __future__ import annotations

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from research.answer.model.guard import Guard
from research.parallel import Call, Workers
from research.secret import Secret

Role = Literal["system", "user"]

DEFAULT_ANSWER_TOKENS = 600


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as a picture, for models that take them."""

    data: bytes
    kind: str = "image/jpeg"

    @property
    def url(self) -> str:
        return f"data:{self.kind};base64,{b64encode(self.data).decode()}"


@dataclass(frozen=True, slots=True)
class Message:
    """What one side says. Pictures come after the text."""

    role: Role
    text: str
    pictures: tuple[Picture, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As OpenAI's interface has it."""
        if not self.pictures:
            return {"role": self.role, "content": self.text}
        shown = [{"type": "image_url", "image_url": {"url": picture.url}} for picture in self.pictures]
        return {"role": self.role, "content": [{"type": "text", "text": self.text}, *shown]}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the server counted them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a server sends at a time: a bit of text, how it ended, what it counted, or only a sign of life."""

    text: str = ""
    finish_reason: str = ""
    usage: Usage | None = None
    thought: bool = False  # it said something that is not part of the answer


Chunks = Generator[Chunk, None, None]


class Reply:
    """A model's answer while it is written: an iterator of pieces of text that are safe to pass on.

    When it is through, `finish_reason` says why ("stop", "length", "repetition", or a word of the server's), and
    `usage` what was counted, if the server tells. Whoever stops early calls `close`.
    """

    def __init__(self, chunks: Chunks, guard: Guard) -> None:
        self.finish_reason = ""
        self.usage: Usage | None = None
        self.thought = False  # it reasoned before it answered; that counts as tokens written
        self._chunks = chunks
        self._guard = guard

    def __iter__(self) -> Iterator[str]:
        for chunk in self._chunks:
            self.finish_reason = chunk.finish_reason or self.finish_reason
            self.usage = chunk.usage or self.usage
            self.thought = self.thought or chunk.thought or self._guard.thought
            if chunk.text and (piece := self._guard.feed(chunk.text)):
                yield piece
            if self._guard.stopped:
                self.finish_reason = self._guard.stopped
                self.close()
                return
        if rest := self._guard.end():
            yield rest

    def close(self) -> None:
        self._chunks.close()


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole reply."""

    content: str
    finish_reason: str
    model: str
    usage: Usage | None = None


class ModelClient(Protocol):
    """A language model. One file a kind; all of them raise kinds of `ModelError` and nothing else."""

    model: str  # its name, as its server knows it
    host: str  # who is contacted
    window: int  # tokens of prompt and answer together that it takes; 0: not known
    max_answer_tokens: int
    key: Secret | None

    @abstractmethod
    def chunks(self, messages: Sequence[Message], max_tokens: int) -> Chunks:
        """The reply as it comes, raw. Nothing is sent before the first of it is asked for."""

    def warm_up(self) -> None:
        """What takes time and can be done before there is a prompt: modules, certificates, a process of our own. It
        contacts nobody. What goes wrong is told by the reply that needs it."""

    def prepare(self) -> Call[None]:
        """`warm_up` beside what the caller does next, which is to search."""
        return Workers("ctx-model-warm-up").start(self.warm_up)

    def reply(self, messages: Sequence[Message], max_tokens: int = 0) -> Reply:
        """The reply, safe to pass on. `max_tokens` is the client's own where it is not given."""
        most = max_tokens or self.max_answer_tokens
        return Reply(self.chunks(messages, most), Guard(most, self.key))

    def complete(self, messages: Sequence[Message], max_tokens: int = 0) -> Completion:
        """The whole reply at once."""
        reply = self.reply(messages, max_tokens)
        content = "".join(reply)
        return Completion(content, reply.finish_reason, self.model, reply.usage)

    async def complete_with_context(self, query: str, context: str, system_message: str = "") -> Completion:
        """An answer to `query` from `context`, the `formatted_text` of a `ResearchContext`. Without a `system_message`
        it is told what `prompts/system.txt` says."""
        import asyncio

        from research.answer.prompt import messages_of

        return await asyncio.to_thread(self.complete, messages_of(query, context, system_message))

    def close(self) -> None:
        """Let go of what is held open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
