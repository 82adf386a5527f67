"""A model's server: requests whose answers are read as they come, within time limits, and tried again where that helps.

Nothing is sent but to the address itself: redirects are not followed, and the proxies that the environment names are
not for this machine. An HTTP library's own time-out begins anew with every byte, does not cover the look-up of a name,
and cannot be another one before the first token than between two; so an exchange runs in a thread of its own, and each
of its parts is waited for only so long.
"""

from __future__ import annotations

import json
import math
import queue
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from research.addresses import is_this_machine
from research.errors import ModelError, ModelProtocolError, ModelTimeoutError, ModelUnavailableError
from research.llm.refusals import Advice, Answered, refusal, shown
from research.observe import TRACE
from research.secret import Key, find_key, scrubbed_logs

if TYPE_CHECKING:
    from collections.abc import Generator

    import httpx

_ERROR_SECONDS = 2.0  # for what a server has to say about its refusal
_MOST_ERROR = 1 << 16  # bytes of that
MOST_BODY = 1 << 26  # bytes of an answer
_AHEAD = 64  # parts that are read before they are wanted; more would fill the memory
_LOOK_SECONDS = 0.1  # a Ctrl-C that comes just before a wait begins is heard only when it ends
_CLOSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds what may take, and before each further try of a request that failed before the first token.
    `starting`: a server that cannot be reached may be on its way up, and is tried again as a busy one is."""

    connect: float = 10.0
    first_token: float = 120.0
    between_tokens: float = 60.0
    total: float = 600.0
    waits: tuple[float, ...] = (0.5, 1.0)
    longest_wait: float = 20.0  # that a server may ask for
    starting: bool = False

    @classmethod
    def of(cls, seconds: float) -> Patience:
        """From the setting `model_timeout`, which says how long a model may take to begin."""
        return cls(min(10.0, seconds), seconds, seconds / 2, seconds * 5)

    def pause(self, error: ModelError, tried: int, left: float = math.inf) -> None:
        """Wait for the next try after so many; raise the error if there is none in the seconds left."""
        after = 0.0 if self.starting and isinstance(error, ModelUnavailableError) else error.retry_after
        if after is None or tried > len(self.waits) or after > self.longest_wait:
            raise error
        if (wait := max(after, self.waits[tried - 1])) >= left:
            raise error
        time.sleep(wait)


TIMEOUT = 30.0  # seconds for a whole answer of an encoder or a reranker
QUICKLY = (0.3,)  # seconds before each further try, where somebody waits for an answer
PATIENTLY = (0.5, 1.0, 2.0, 4.0)  # and where nobody does


_ADVICE = Advice(
    "check the address and the name of the model; ctx doctor tries them",
    "see that its server works; CTX_REQUEST_TIMEOUT=120 waits longer",
    "start its server, or name another address; ctx doctor tries it",
)


def model_endpoint(url: str, own_key: str, *, timeout: float = 0.0, waits: tuple[float, ...] = QUICKLY) -> Endpoint:
    """Return the endpoint of an encoder or a reranker, which is asked with one document for another. Raise UsageError
    for a key that is none."""
    seconds = timeout or TIMEOUT
    patience = Patience(seconds, seconds, seconds, seconds, waits, starting=True)
    return Endpoint(url, url, find_key(url, own_key), _ADVICE, patience)


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

    def expired(self, host: str, hint: str) -> ModelTimeoutError:
        patience = self._patience
        if not self.begun:
            return ModelTimeoutError(f"{host} did not answer within {patience.first_token:g} s", hint=hint)
        if time.monotonic() >= self._started + patience.total:
            return ModelTimeoutError(f"{host} was not through after {patience.total:g} s", hint=hint)
        return ModelTimeoutError(f"{host} stopped in the middle: nothing for {patience.between_tokens:g} s", hint=hint)


class Endpoint:
    """Asks one server; for many threads. `host` is what it is called in words. `keep`: connections are kept for further
    requests, as where each is read to its end."""

    def __init__(self, url: str, host: str, key: Key, advice: Advice, patience: Patience, *, keep: bool = True) -> None:
        self.url = url
        self.host = host
        self.key = key
        self.advice = advice
        self.patience = patience
        self._keep = keep
        self._opening = threading.Lock()
        self._client: httpx.Client | None = None

    def post(self, document: Mapping[str, Any]) -> Any:
        """Return the JSON that answers a document."""
        for tried in count(1):
            try:
                return self._asked(document)
            except ModelError as error:
                self.patience.pause(error, tried)
        raise AssertionError

    def _asked(self, document: Mapping[str, Any]) -> Any:
        body = self.fetch("POST", "", document)
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            start = body[:200].lstrip().lower()
            page = start.startswith((b"<!doctype", b"<html", b"<?xml"))
            kind = "a web page" if page else "text" if start else "nothing"
            raise self.nonsense(f"answers with {kind}, not with JSON") from None

    def fetch(
        self, method: str, path: str, document: Mapping[str, Any] | None = None, *, seconds: float | None = None
    ) -> bytes:
        """Return the whole body of an answer."""
        clock = Clock(self.patience if seconds is None else Patience(first_token=seconds))
        exchange = self.exchange(method, path, document)
        try:
            head = exchange.head(clock)
            if head.status != 200:
                raise self.refusal(exchange.answered(head), document)
            return exchange.body(clock)
        finally:
            exchange.close()

    def exchange(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Exchange:
        """Begin a request. Close what is returned, whatever happens."""
        client = self.open()
        content = None if document is None else json.dumps(document).encode()
        kind = {} if document is None else {"Content-Type": "application/json"}
        headers = {**kind, **TRACE.get()}
        return Exchange(self, client, client.build_request(method, self.url + path, content=content, headers=headers))

    def refusal(self, answered: Answered, document: Mapping[str, Any] | None = None) -> ModelError:
        return refusal(answered, self.host, self.key, self.advice, _texts_of(document or {}))

    def nonsense(self, what: str) -> ModelProtocolError:
        return ModelProtocolError(f"{self.host} {what}", hint=self.advice.address)

    def open(self) -> httpx.Client:
        """Load what is needed, and read certificates; nobody is contacted."""
        import httpx

        with self._opening:
            if self._client is None:
                limits = httpx.Limits() if self._keep else httpx.Limits(max_keepalive_connections=0)
                verify = self.url.startswith("https:")  # to read the certificates takes 0.1 s
                self._client = httpx.Client(
                    auth=_bearer(self.key) if self.key.secret else None,
                    timeout=httpx.Timeout(self.patience.total, connect=self.patience.connect),
                    follow_redirects=False,
                    headers={"User-Agent": "ctx", "Accept-Encoding": "identity"},
                    limits=limits,
                    verify=verify,
                    # One of our own goes past the proxies of the environment, and knows its certificates.
                    transport=httpx.HTTPTransport(verify, limits=limits) if is_this_machine(self.url) else None,
                )
                weakref.finalize(self, self._client.close)
            return self._client

    def close(self) -> None:
        with self._opening:
            if self._client is not None:
                self._client.close()
            self._client = None


@dataclass(frozen=True, slots=True)
class _Ended:
    """The last thing an exchange's thread says: why it ended."""

    error: BaseException | None = None


class Exchange:
    """A request that is under way. Raises kinds of ModelError; `close` it whatever happens."""

    def __init__(self, endpoint: Endpoint, client: httpx.Client, request: httpx.Request) -> None:
        self._endpoint = endpoint
        self._received = False
        self._line: socket.socket | None = None  # that the request went out by, so that it can be cut from here
        self._queue: queue.Queue[Answered | bytes | _Ended] = queue.Queue(_AHEAD)
        self._closed = threading.Event()
        self._over = False
        request.extensions["trace"] = self._trace
        self._thread = threading.Thread(target=self._run, args=(client, request), name="ctx-model", daemon=True)
        self._thread.start()

    def head(self, clock: Clock) -> Answered:
        found = self._next(clock)
        if not isinstance(found, Answered):
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

    def answered(self, head: Answered) -> Answered:
        """A response that is no answer, as a whole. One that breaks off or hangs has said enough by its status."""
        body = b""
        with suppress(ModelError):
            body = self.body(Clock(Patience(first_token=_ERROR_SECONDS)), _MOST_ERROR)
        return Answered(head.status, head.headers, body.decode("utf-8", "replace"))

    def close(self) -> None:
        """Stop reading. A thread that hangs where nothing wakes it is left to its own time-outs."""
        self._closed.set()
        if not self._over and self._line is not None:
            with suppress(OSError):  # it is cut already
                socket.socket.shutdown(self._line, socket.SHUT_RDWR)  # not TLS's own, which would wait for the server
        self._thread.join(_CLOSE_SECONDS)

    def _next(self, clock: Clock) -> Answered | bytes | None:
        import httpx

        host, slow = self._endpoint.host, self._endpoint.advice.slow
        while True:  # something may always be there to be read, and never what is waited for
            if (left := clock.left()) <= 0:
                raise clock.expired(host, slow)
            with suppress(queue.Empty):
                found = self._queue.get(timeout=min(left, _LOOK_SECONDS))
                break
        if not isinstance(found, _Ended):
            self._received = True
            return found
        self._over = True
        self._queue.put(found)
        try:
            if found.error is not None:
                raise found.error
        except httpx.ReadTimeout:
            raise clock.expired(host, slow) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._failed(error) from None  # a traceback would show its words, and those may hold the key
        return None

    def _run(self, client: httpx.Client, request: httpx.Request) -> None:
        ended = _Ended()
        try:
            with scrubbed_logs(self._endpoint.key.secret):
                response = client.send(request, stream=True)
                try:
                    headers = {name.lower(): value for name, value in response.headers.items()}
                    going = self._put(Answered(response.status_code, headers))
                    parts = response.iter_raw()
                    while going and (part := next(parts, None)) is not None:
                        going = self._put(part)
                finally:
                    response.close()
        except BaseException as error:  # noqa: BLE001  who waits gets it
            ended = _Ended(error)
        self._put(ended)

    def _put(self, part: Answered | bytes | _Ended) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(part, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._line = info["return_value"].get_extra_info("socket")

    def _failed(self, error: Exception) -> ModelError:
        import httpx

        host, why = self._endpoint.host, shown(str(error) or type(error).__name__, self._endpoint.key.secret)
        if isinstance(error, httpx.ConnectTimeout):
            return ModelUnavailableError(f"{host} does not answer: no connection in time", hint=self._hint(why))
        if isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol | httpx.InvalidURL):
            return ModelUnavailableError(f"{host} cannot be reached: {why}", hint=self._hint(why))
        if self._received:
            return ModelProtocolError(f"{host} broke off in the middle: {why}", hint="try again")
        if isinstance(error, httpx.RemoteProtocolError) and "disconnected" not in why:
            return ModelProtocolError(f"{host} does not speak HTTP: {why}", hint=self._hint(why))
        return self._silent(why)

    def _silent(self, why: str) -> ModelUnavailableError:
        host = self._endpoint.host
        error = ModelUnavailableError(f"{host} closed the connection without an answer: {why}", hint=self._hint(why))
        error.retry_after = 0.0
        return error

    def _hint(self, why: str) -> str:
        if "CERTIFICATE" in why.upper():
            return "the server's certificate is not trusted: name its authority's file with SSL_CERT_FILE=…"
        if "SSL" in why.upper():
            return "does the server speak https? try its address with http://"
        return self._endpoint.advice.unreachable


def _texts_of(document: Mapping[str, Any]) -> str:
    """Everything in a request but the name of the model."""
    values = [value for name, value in document.items() if name != "model"]
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    said = (str(text.get("content", "")) if isinstance(text, dict) else str(text) for text in texts)
    return " ".join(" ".join(text.split()) for text in said)


def _bearer(key: Key) -> httpx.Auth:
    """The key enters a request where it is sent, and stands in no header before."""
    import httpx

    class Bearer(httpx.Auth):
        def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
            assert key.secret is not None
            request.headers["Authorization"] = f"Bearer {key.secret.reveal()}"
            yield request

    return Bearer()
