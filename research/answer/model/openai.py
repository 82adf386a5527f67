"""A model behind any OpenAI-compatible address: Ollama, llama.cpp, vLLM, LM Studio, hosted ones.

Nothing is sent before a reply is asked for, and then only to that address: redirects are not followed, and the proxies
that the environment names are not for this machine.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from research.address import parse_address
from research.answer.model.client import DEFAULT_ANSWER_TOKENS, Chunk, Chunks, Message, ModelClient
from research.answer.model.event_stream import DONE, WRONG_SERVER, EventDecoder, chunk_of, parse_event
from research.answer.model.exchange import Clock, Exchange, Head, Patience
from research.answer.model.refusals import Answered, is_too_long, knows_no_model, no_such_model, refusal, shown
from research.errors import ModelError, ModelProtocolError
from research.observe import TRACE
from research.secret import Secret

if TYPE_CHECKING:
    import httpx

_CHAT, _MODELS = "/chat/completions", "/models"
_MOST_LIST = 1 << 22  # bytes of a list of models
_LONGEST_WAIT = 20.0  # seconds that a server may ask for before the next attempt
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
# Parameters that some servers or models do not take, and what is sent in their place.
_OPTIONAL: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "temperature": "", "stream_options": ""}


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a server has, and how many tokens it takes; 0 if it does not say."""

    name: str
    window: int = 0


class OpenAIModel(ModelClient):
    """`url` is the base address, with or without /v1; `host` is what it is called in words. For many threads."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: Secret | None = None,
        host: str = "",
        patience: Patience | None = None,
        window: int = 0,
        max_answer_tokens: int = DEFAULT_ANSWER_TOKENS,
    ) -> None:
        self.address = parse_address(url)
        self.model = model
        self.host = host or self.address.host
        self.key = key
        self.patience = patience or Patience()
        self.window = window
        self.max_answer_tokens = max_answer_tokens
        self._refused: set[str] = set()  # optional parameters that the server does not take
        self._opening = threading.Lock()
        self._client: httpx.Client | None = None

    def chunks(self, messages: Sequence[Message], max_tokens: int) -> Chunks:
        clock = Clock(self.patience)
        attempt = 1
        while True:
            try:
                yield from self._attempt(messages, max_tokens, clock)
            except ModelError as error:
                wait = self._wait(error, attempt)
                if clock.begun or wait is None or wait >= clock.left():
                    raise
                time.sleep(wait)
                attempt += 1
            else:
                return

    def warm_up(self) -> None:
        self._connected()

    def models(self) -> list[ServedModel]:
        """What the server has."""
        clock = Clock(Patience(first_token=self.patience.connect))
        exchange = self._exchange("GET", _MODELS)
        try:
            head = exchange.head(clock)
            if head.status != 200:
                raise refusal(exchange.answered(head), self.host, self.key)
            found = parse_event(exchange.body(clock, _MOST_LIST).decode("utf-8", "replace"))
        finally:
            exchange.close()
        return list(_served(found))

    def close(self) -> None:
        with self._opening:
            if self._client is not None:
                self._client.close()
            self._client = None

    def _wait(self, error: ModelError, attempt: int) -> float | None:
        """Seconds before the next attempt; None if there is none."""
        if error.retry_after is None or attempt >= self.patience.attempts or error.retry_after > _LONGEST_WAIT:
            return None
        return max(error.retry_after, self.patience.backoff * 2.0 ** (attempt - 1))

    def _attempt(self, messages: Sequence[Message], max_tokens: int, clock: Clock) -> Chunks:
        exchange, head = self._open(messages, max_tokens, clock)
        try:
            if "html" in head.headers.get("content-type", ""):
                raise refusal(exchange.answered(head), self.host, self.key)
            if "content-encoding" in head.headers:  # nobody asked for it, and it may unpack to anything
                raise ModelProtocolError(f"{self.host} answers in a compressed form", hint=WRONG_SERVER)
            read = self._whole if "json" in head.headers.get("content-type", "") else self._stream
            for chunk in read(exchange, clock):
                if chunk.text or chunk.thought:
                    clock.token()
                yield chunk
        finally:
            exchange.close()

    def _open(self, messages: Sequence[Message], max_tokens: int, clock: Clock) -> tuple[Exchange, Head]:
        """A response of status 200. Parameters that are not taken are left out; each costs one more request, once."""
        while True:
            exchange = self._exchange("POST", _CHAT, self._payload(messages, max_tokens))
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
                raise self._explained(answered)

    def _stream(self, exchange: Exchange, clock: Clock) -> Iterator[Chunk]:
        seen = finished = False
        try:
            for event in _events(exchange, clock):
                if event.strip() == DONE:
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
            raise ModelProtocolError(f"{self.host} did not answer as a model does", hint=WRONG_SERVER)
        if not finished:
            raise ModelProtocolError(f"{self.host} broke off in the middle of the answer", hint="try again")

    def _whole(self, exchange: Exchange, clock: Clock) -> Iterator[Chunk]:
        """From a server that does not stream."""
        chunk = self._chunk(exchange.body(clock, _MOST_LIST).decode("utf-8", "replace"))
        if chunk is None:
            raise ModelProtocolError(f"{self.host} did not answer as a model does", hint=WRONG_SERVER)
        yield chunk

    def _chunk(self, event: str) -> Chunk | None:
        found = parse_event(event)
        if found.get("error"):
            code = found["error"].get("code") if isinstance(found["error"], dict) else None
            raise refusal(Answered(code if isinstance(code, int) else 500, {}, event), self.host, self.key)
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
        if answered.status not in {400, 422} or is_too_long(answered):
            return False
        body = answered.body.replace('\\"', "'").replace('"', "'")
        new = {name for name in _OPTIONAL if f"'{name}'" in body} - self._refused
        self._refused |= new
        return bool(new)

    def _explained(self, answered: Answered) -> ModelError:
        if not knows_no_model(answered):
            return refusal(answered, self.host, self.key)
        try:
            served = [shown(each.name, self.key) for each in self.models()]
        except ModelError:
            return refusal(answered, self.host, self.key)
        return no_such_model(self.model, self.host, served)

    def _exchange(self, method: str, path: str, payload: Mapping[str, Any] | None = None) -> Exchange:
        client = self._connected()
        content = None if payload is None else json.dumps(payload).encode()
        kind = {} if payload is None else {"Content-Type": "application/json"}
        headers = {**kind, **TRACE.get()}
        request = client.build_request(method, self.address.base + path, content=content, headers=headers)
        return Exchange(client, request, self.host, self.key)

    def _connected(self) -> httpx.Client:
        import httpx

        with self._opening:
            if self._client is None:
                # A connection is cut where a reply is stopped, so none is kept for another.
                limits = httpx.Limits(max_keepalive_connections=0)
                self._client = httpx.Client(
                    auth=_bearer(self.key) if self.key else None,
                    timeout=httpx.Timeout(self.patience.total, connect=self.patience.connect),
                    follow_redirects=False,
                    headers={"User-Agent": "ctx", "Accept-Encoding": "identity"},
                    limits=limits,
                    # One of our own goes past the proxies of the environment, and knows its certificates.
                    transport=httpx.HTTPTransport(limits=limits) if self.address.loopback else None,
                )
            return self._client


def _events(exchange: Exchange, clock: Clock) -> Iterator[str]:
    decoder = EventDecoder()
    while (data := exchange.data(clock)) is not None:
        yield from decoder.feed(data)
    yield from decoder.end()


def _bearer(key: Secret) -> httpx.Auth:
    """The key enters a request where it is sent, and stands in no header before."""
    import httpx

    class Bearer(httpx.Auth):
        def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
            request.headers["Authorization"] = f"Bearer {key.reveal()}"
            yield request

    return Bearer()


def _served(found: Mapping[str, Any]) -> Iterator[ServedModel]:
    listed = found.get("data")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(name := each.get("id"), str) and name:
            meta = each.get("meta")
            facts = {**meta, **each} if isinstance(meta, dict) else each
            sizes = [facts[size] for size in _WINDOWS if isinstance(facts.get(size), int) and facts[size] > 0]
            yield ServedModel(name, sizes[0] if sizes else 0)
