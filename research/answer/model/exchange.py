"""One HTTP request whose answer is read as it comes, within time limits: what comes is its head, then its bytes."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from research.answer.model.background import BackgroundReader
from research.answer.model.refusals import MOST_BODY, Answered, shown
from research.errors import ModelError, ModelProtocolError, ModelTimeoutError, ModelUnavailableError
from research.secret import Secret, scrubbed_logs

if TYPE_CHECKING:
    import httpx

_ERROR_SECONDS = 2.0  # for what a server has to say about its refusal


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds what may take, and how often a request that failed before the first token is tried again."""

    connect: float = 10.0
    first_token: float = 120.0
    between_tokens: float = 60.0
    total: float = 600.0
    attempts: int = 3
    backoff: float = 0.5  # before the second attempt; twice as long before each further one

    @classmethod
    def of(cls, seconds: float) -> Patience:
        """From the setting `model_timeout`, which says how long a model may take to begin."""
        return cls(min(10.0, seconds), seconds, seconds / 2, seconds * 5)


class Clock:
    """Of one answer: how long may still be waited for what comes next."""

    def __init__(self, patience: Patience) -> None:
        self.begun = False
        self._patience = patience
        self._started = self._last = time.monotonic()

    def token(self) -> None:
        self.begun = True
        self._last = time.monotonic()

    def left(self) -> float:
        now, patience = time.monotonic(), self._patience
        next_token = patience.between_tokens if self.begun else patience.first_token
        return min(self._last + next_token, self._started + patience.total) - now

    def expired(self, host: str) -> ModelTimeoutError:
        hint = "raise model_timeout, or give the model less to read with --max-tokens"
        patience, took = self._patience, time.monotonic() - self._started
        if took >= patience.total:
            return ModelTimeoutError(f"{host} was not through after {patience.total:g} s", hint=hint)
        if not self.begun:
            return ModelTimeoutError(f"{host} did not begin to answer within {patience.first_token:g} s", hint=hint)
        return ModelTimeoutError(f"{host} stopped in the middle: nothing for {patience.between_tokens:g} s", hint=hint)


@dataclass(frozen=True, slots=True)
class Head:
    status: int
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Line:
    """The connection that a request went out by, so that it can be cut from another thread."""

    open: socket.socket | None = field(default=None)

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self.open = info["return_value"].get_extra_info("socket")

    def cut(self) -> None:
        if self.open is not None:
            with suppress(OSError):  # it is cut already
                socket.socket.shutdown(self.open, socket.SHUT_RDWR)  # not TLS's own, which would wait for the server


class Exchange:
    """A request that is under way. Raises kinds of ModelError; `close` it whatever happens."""

    def __init__(self, client: httpx.Client, request: httpx.Request, host: str, key: Secret | None) -> None:
        self._host = host
        self._key = key
        self._received = False
        line = _Line()
        request.extensions["trace"] = line.trace
        self._reader = BackgroundReader(_transfer(client, request, key), line.cut)

    def head(self, clock: Clock) -> Head:
        found = self._next(clock)
        if not isinstance(found, Head):
            raise self._silent("nothing was sent")
        return found

    def data(self, clock: Clock) -> bytes | None:
        """Some bytes of the body; None after the last."""
        found = self._next(clock)
        return found if isinstance(found, bytes) else None

    def body(self, clock: Clock, most: int = MOST_BODY) -> bytes:
        """The body, or its beginning where it is longer."""
        received = bytearray()
        while len(received) < most and (data := self.data(clock)) is not None:
            received += data
        return bytes(received[:most])

    def answered(self, head: Head) -> Answered:
        """A response that is no answer, as a whole. One that breaks off or hangs has said enough by its status."""
        body = b""
        with suppress(ModelError):
            body = self.body(Clock(Patience(first_token=_ERROR_SECONDS)))
        return Answered(head.status, head.headers, body.decode("utf-8", "replace"))

    def close(self) -> None:
        self._reader.close()

    def _next(self, clock: Clock) -> Head | bytes | None:
        import httpx

        left = clock.left()
        if left <= 0:  # something may always be there to be read, and never what is waited for
            raise clock.expired(self._host)
        try:
            found = self._reader.next(left)
        except (TimeoutError, httpx.ReadTimeout):
            raise clock.expired(self._host) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._failed(error) from None  # a traceback would show its words, and those may hold the key
        self._received = True
        return found

    def _failed(self, error: Exception) -> ModelError:
        import httpx

        why = shown(str(error) or type(error).__name__, self._key)
        if isinstance(error, httpx.ConnectTimeout):
            return ModelUnavailableError(f"{self._host} does not answer: no connection in time", hint=_hint(why))
        if isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol | httpx.InvalidURL):
            return ModelUnavailableError(f"{self._host} cannot be reached: {why}", hint=_hint(why))
        if self._received:
            return ModelProtocolError(f"{self._host} broke off in the middle: {why}", hint="try again")
        if isinstance(error, httpx.RemoteProtocolError) and "disconnected" not in why:
            return ModelProtocolError(f"{self._host} does not speak HTTP: {why}", hint=_hint(why))
        return self._silent(why)

    def _silent(self, why: str) -> ModelUnavailableError:
        error = ModelUnavailableError(f"{self._host} closed the connection without an answer: {why}", hint=_hint(why))
        error.retry_after = 0.0
        return error


def _hint(why: str) -> str:
    if "CERTIFICATE" in why.upper():
        return "the server's certificate is not trusted: name its authority's file with SSL_CERT_FILE=…"
    if "SSL" in why.upper():
        return "does the server speak https? try model_url with http://"
    return "see that the server runs, and that model_url is its address"


def _transfer(client: httpx.Client, request: httpx.Request, key: Secret | None) -> Generator[Head | bytes, None, None]:
    """Runs in a thread of its own."""
    with scrubbed_logs(key):
        response = client.send(request, stream=True)
        try:
            yield Head(response.status_code, {name.lower(): value for name, value in response.headers.items()})
            yield from response.iter_raw()
        finally:
            response.close()
