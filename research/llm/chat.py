"""Chat models: messages in, a reply out, piece by piece, from any OpenAI-compatible address.

Ollama, llama.cpp, vLLM, LM Studio, hosted ones. Everything that comes is limited and nothing is believed: a line, a
whole stream, the type of every field.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, Self

from research.addresses import parse_address
from research.errors import ModelError, ModelProtocolError, ModelRefusedError
from research.llm.endpoint import Clock, Endpoint, Exchange, Patience
from research.llm.refusals import Advice, Answered, Guard, shown
from research.parallel import Call, Workers
from research.secret import Key, Secret

DEFAULT_ANSWER_TOKENS = 600
WRONG_SERVER = "see that model_url is the address of an OpenAI-compatible server; most end in /v1"

_ADVICE = Advice(
    WRONG_SERVER,
    "raise model_timeout, or give the model less to read with --max-tokens",
    "see that the server runs, and that model_url is its address",
)
_CHAT, _MODELS = "/chat/completions", "/models"
_MOST_ANSWER = 1 << 22  # bytes of one that does not stream
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
# Parameters that some servers or models do not take, and what is sent in their place.
_OPTIONAL: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "temperature": "", "stream_options": ""}
_DONE = "[DONE]"
_MOST_LINE = 1 << 20  # bytes
_MOST_STREAM = 1 << 26
_LINE_END = re.compile(rb"\r\n|\n|\r(?=[^\n])")


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

    role: Literal["system", "user"]
    text: str
    pictures: tuple[Picture, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As OpenAI's interface has it."""
        if not self.pictures:
            return {"role": self.role, "content": self.text}
        pictures = [{"type": "image_url", "image_url": {"url": picture.url}} for picture in self.pictures]
        return {"role": self.role, "content": [{"type": "text", "text": self.text}, *pictures]}


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


class ChatModel(ABC):
    """A language model. All of them raise kinds of `ModelError` and nothing else."""

    model: str  # its name, as its server knows it
    host: str  # who is contacted
    window: int  # tokens of prompt and answer together that it takes; 0: not known
    max_answer_tokens: int
    key: Secret | None

    @abstractmethod
    def chunks(self, messages: Sequence[Message], max_tokens: int) -> Chunks:
        """The reply as it comes, raw. Nothing is sent before the first of it is asked for."""

    @abstractmethod
    def warm_up(self) -> None:
        """Do what takes time before there is a prompt: modules, certificates, a process of our own. It contacts nobody.
        What goes wrong is told by the reply that needs it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held open."""

    def prepare(self) -> Call[None]:
        """Begin `warm_up` beside what the caller does next, which is to search."""
        return Workers("ctx-model-warm-up").start(self.warm_up)

    def reply(self, messages: Sequence[Message], max_tokens: int = 0) -> Reply:
        """The reply, safe to pass on. `max_tokens` is the model's own where it is not given."""
        most = max_tokens or self.max_answer_tokens
        return Reply(self.chunks(messages, most), Guard(most, self.key))

    def complete(self, messages: Sequence[Message], max_tokens: int = 0) -> Completion:
        """The whole reply at once."""
        reply = self.reply(messages, max_tokens)
        content = "".join(reply)
        return Completion(content, reply.finish_reason, self.model, reply.usage)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a server has, and how many tokens it takes; 0 if it does not say."""

    name: str
    window: int = 0


class OpenAIChat(ChatModel):
    """`url` is the base address, with or without /v1; `host` is what it is called in words. For many threads."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: Key | Secret | None = None,
        host: str = "",
        patience: Patience | None = None,
        window: int = 0,
        max_answer_tokens: int = DEFAULT_ANSWER_TOKENS,
    ) -> None:
        self.address = parse_address(url)
        self.model = model
        self.host = host or self.address.host
        known = key if isinstance(key, Key) else Key(key)
        self.key = known.secret
        self.patience = patience or Patience()
        self.window = window
        self.max_answer_tokens = max_answer_tokens
        self._refused: set[str] = set()  # optional parameters that the server does not take
        # A connection is cut where a reply is stopped, so none is kept for another.
        self._endpoint = Endpoint(self.address.base, self.host, known, _ADVICE, self.patience, keep=False)

    def chunks(self, messages: Sequence[Message], max_tokens: int) -> Chunks:
        clock = Clock(self.patience)
        for tried in count(1):
            try:
                yield from self._attempt(messages, max_tokens, clock)
            except ModelError as error:
                if clock.begun:
                    raise
                self.patience.pause(error, tried, clock.left())
            else:
                return

    def warm_up(self) -> None:
        self._endpoint.open()

    def close(self) -> None:
        self._endpoint.close()

    def models(self) -> list[ServedModel]:
        """What the server has."""
        found = self._endpoint.fetch("GET", _MODELS, seconds=self.patience.connect)
        return list(_served(parse_event(found.decode("utf-8", "replace"))))

    def _attempt(self, messages: Sequence[Message], max_tokens: int, clock: Clock) -> Chunks:
        exchange, head = self._open(messages, max_tokens, clock)
        kind = head.headers.get("content-type", "")
        try:
            if "html" in kind:
                raise self._endpoint.refusal(exchange.answered(head))
            if "content-encoding" in head.headers:  # nobody asked for it, and it may unpack to anything
                raise self._endpoint.nonsense("answers in a compressed form")
            for chunk in (self._whole if "json" in kind else self._stream)(exchange, clock):
                if chunk.text or chunk.thought:
                    clock.token()
                yield chunk
        finally:
            exchange.close()

    def _open(self, messages: Sequence[Message], max_tokens: int, clock: Clock) -> tuple[Exchange, Answered]:
        """A response of status 200. Parameters that are not taken are left out; each costs one more request, once."""
        while True:
            payload = self._payload(messages, max_tokens)
            exchange = self._endpoint.exchange("POST", _CHAT, payload)
            try:
                head = exchange.head(clock)
                if head.status == 200:
                    return exchange, head
                answered = exchange.answered(head)
            except BaseException:
                exchange.close()
                raise
            exchange.close()
            if not self._learns(answered):
                raise self._no_such_model(answered) or self._endpoint.refusal(answered, payload)

    def _stream(self, exchange: Exchange, clock: Clock) -> Iterator[Chunk]:
        seen = finished = False
        try:
            for event in _events(exchange, clock):
                if event.strip() == _DONE:
                    finished = True
                    break
                chunk = self._chunk(event)
                if chunk is not None:
                    seen, finished = True, finished or bool(chunk.finish_reason)
                    yield chunk
        except ModelError:
            if not finished:  # after that it may break as it likes
                raise
        if not seen:
            raise self._endpoint.nonsense("did not answer as a model does")
        if not finished:
            raise ModelProtocolError(f"{self.host} broke off in the middle of the answer", hint="try again")

    def _whole(self, exchange: Exchange, clock: Clock) -> Iterator[Chunk]:
        """From a server that does not stream."""
        chunk = self._chunk(exchange.body(clock, _MOST_ANSWER).decode("utf-8", "replace"))
        if chunk is None:
            raise self._endpoint.nonsense("did not answer as a model does")
        yield chunk

    def _chunk(self, event: str) -> Chunk | None:
        found = parse_event(event)
        if found.get("error"):
            code = found["error"].get("code") if isinstance(found["error"], dict) else None
            raise self._endpoint.refusal(Answered(code if isinstance(code, int) else 500, {}, event))
        return chunk_of(found)

    def _payload(self, messages: Sequence[Message], max_tokens: int) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream_options": {"include_usage": True},
        }
        names = {name: _OPTIONAL[name] if name in self._refused else name for name in wanted}
        optional = {names[name]: value for name, value in wanted.items() if names[name]}
        said = [message.to_dict() for message in messages]
        return {"model": self.model, "messages": said, "stream": True, **optional}

    def _learns(self, answered: Answered) -> bool:
        """Whether the server refuses a parameter that can be left out, and said so for the first time."""
        if answered.status not in {400, 422} or answered.is_too_long:
            return False
        body = answered.body.replace('\\"', "'").replace('"', "'")
        new = {name for name in _OPTIONAL if f"'{name}'" in body} - self._refused
        self._refused |= new
        return bool(new)

    def _no_such_model(self, answered: Answered) -> ModelRefusedError | None:
        """Where it knows no such model, what it has; with none, or with this one among them, the address is wrong."""
        if not answered.knows_no_model:
            return None
        try:
            served = [shown(each.name, self.key) for each in self.models()]
        except ModelError:
            return None
        if not served or self.model in served:
            return ModelRefusedError(f"{self.host} has no chat completions at this address", hint=WRONG_SERVER)
        most = ", ".join(served[:8]) + (f" and {len(served) - 8} more" if len(served) > 8 else "")
        told = f"{self.host} has no model {self.model!r}; it has {most}"
        return ModelRefusedError(told, hint=f"ctx ask … --model {served[0]}")


class EventDecoder:
    """Server-sent events: bytes as they come, cut anywhere, become the data of events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data: list[str] = []
        self._read = 0

    def feed(self, received: bytes) -> Iterator[str]:
        self._read += len(received)
        self._buffer += received
        start = 0
        for match in _LINE_END.finditer(self._buffer):
            yield from self._line(bytes(self._buffer[start : match.start()]))
            start = match.end()
        del self._buffer[:start]
        if len(self._buffer) > _MOST_LINE or self._read > _MOST_STREAM:
            raise ModelProtocolError("the server sends more than an answer can be", hint=WRONG_SERVER)

    def end(self) -> Iterator[str]:
        """What stands without an empty line after it at the end."""
        yield from self._line(bytes(self._buffer).rstrip(b"\r"))
        yield from self._line(b"")
        self._buffer.clear()

    def _line(self, line: bytes) -> Iterator[str]:
        if not line:
            if self._data:
                data, self._data = "\n".join(self._data), []
                yield data
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        if name in {"data", "error"}:  # llama.cpp has called an error so
            self._data.append(value.removeprefix(" "))


def _events(exchange: Exchange, clock: Clock) -> Iterator[str]:
    decoder = EventDecoder()
    while (data := exchange.data(clock)) is not None:
        yield from decoder.feed(data)
    yield from decoder.end()


def parse_event(data: str) -> Mapping[str, Any]:
    """The JSON object of an event. Raise ModelProtocolError for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelProtocolError("the server answered with something that is no JSON", hint=WRONG_SERVER) from None
    if not isinstance(found, dict):
        raise ModelProtocolError("the server answered with JSON that is no reply of a model", hint=WRONG_SERVER)
    return found


def chunk_of(event: Mapping[str, Any]) -> Chunk | None:
    """Of an event of a stream, or of a whole reply; None for one that is neither, as some servers send between."""
    choices = event.get("choices")
    usage = _usage(event.get("usage"))
    if not isinstance(choices, list):
        return Chunk(usage=usage) if usage else None
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    said = choice.get("delta") or choice.get("message") or {}
    if not isinstance(said, dict):
        return None
    text = _text(said.get("content")) or _text(said.get("refusal")) or _text(choice.get("text"))
    reason = choice.get("finish_reason")
    thought = any(said.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    return Chunk(text, reason if isinstance(reason, str) else "", usage, thought)


def _text(content: object) -> str:
    """A text, or the texts among the parts of one."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(part for part in parts if isinstance(part, str))


def _usage(counted: object) -> Usage | None:
    if not isinstance(counted, dict):
        return None
    prompt, completion = counted.get("prompt_tokens"), counted.get("completion_tokens")
    if not all(isinstance(count, int) and count >= 0 for count in (prompt, completion)):
        return None
    return Usage(int(prompt or 0), int(completion or 0))


def _served(found: Mapping[str, Any]) -> Iterator[ServedModel]:
    listed = found.get("data")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(name := each.get("id"), str) and name:
            meta = each.get("meta")
            facts = {**meta, **each} if isinstance(meta, dict) else each
            sizes = [facts[size] for size in _WINDOWS if isinstance(facts.get(size), int) and facts[size] > 0]
            yield ServedModel(name, sizes[0] if sizes else 0)
