"""SomaBrainClient: a memory service at an address, by the calls and documents of seed 000, §16.

    client = SomaBrainClient.get()             # as the SA01_* variables say
    await client.context_evaluate({"tenant_id": …, "session_id": …, "query": …, "top_k": 8})

Nobody is contacted before the first call, and then only that address: redirects are not followed, and proxies of the
environment are not for this machine. Whatever comes that is no answer is a `SomaClientError` whose message holds
nothing of what was sent or stored. What may be repeated is tried again after a while; a call with all its retries is
one for the breaker.

Where a remote memory service is and how patiently it is asked: the SA01_* variables of seed 000, §7.

Without SA01_SOMA_BASE_URL there is none, and nothing is contacted. A key, if the service wants one, is
SA01_SOMA_API_KEY's.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

from research.addresses import Address, parse_address
from research.conversation.health import BreakerState, CircuitBreaker
from research.conversation.salience import read_candidates
from research.errors import SomaClientError, UsageError
from research.llm import Answered
from research.secret import Secret, scrubbed_logs

if TYPE_CHECKING:
    import httpx

BASE_URL, KEY = "SA01_SOMA_BASE_URL", "SA01_SOMA_API_KEY"
_EXAMPLE = "http://127.0.0.1:9696"
MEMORY_NAMESPACE = "wm"


@dataclass(frozen=True, slots=True)
class SomaSettings:
    base_url: str
    timeout_seconds: float = 30.0  # for a whole answer
    max_retries: int = 2
    retry_base_ms: float = 150.0  # before the first retry; twice as long before each further one
    namespace: str = ""  # the logical universe of memories; empty: the service's own
    memory_namespace: str = MEMORY_NAMESPACE
    key: Secret | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", self.base_url.strip().rstrip("/"))
        self.address  # noqa: B018  raises for one that is none

    @property
    def address(self) -> Address:
        """Who is contacted; its `base` is not used."""
        try:
            return parse_address(self.base_url)
        except ValueError:
            # Not repeated: it may hold a password.
            raise UsageError(
                f"{BASE_URL} is no address of a service: no user, password, ? or # may stand in it",
                hint=f"export {BASE_URL}={_EXAMPLE}; a key goes into {KEY}",
            ) from None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> SomaSettings:
        """Raises UsageError if no service is named, or a number is none."""
        given = os.environ if environment is None else environment
        if not given.get(BASE_URL, "").strip():
            raise UsageError(f"{BASE_URL} is not set: no memory service is named", hint=f"export {BASE_URL}={_EXAMPLE}")
        return cls(
            given[BASE_URL],
            timeout_seconds=_number(given, "SA01_SOMA_TIMEOUT_SECONDS", 30.0, 0.001, 3600.0),
            max_retries=int(_number(given, "SA01_SOMA_MAX_RETRIES", 2.0, 0.0, 20.0)),
            retry_base_ms=_number(given, "SA01_SOMA_RETRY_BASE_MS", 150.0, 0.0, 60_000.0),
            namespace=given.get("SA01_NAMESPACE", "").strip(),
            memory_namespace=given.get("SA01_MEMORY_NAMESPACE", "").strip() or MEMORY_NAMESPACE,
            key=_key(given.get(KEY, "").strip()),
        )


def _number(given: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    text = given.get(name, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not least <= value <= most:
        raise UsageError(f"{name} cannot be {text[:40]!r}", hint=f"a number from {least:g} to {most:g}")
    return value


def _key(value: str) -> Secret | None:
    if not value:
        return None
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise UsageError(f"{KEY} holds characters that no key has", hint=f"export {KEY}=… as you were given")
    return Secret(value)


_LARGEST = 4 << 20  # bytes of an answer
_MOST_ERROR = 1 << 16  # bytes of one that is an error
_LONGEST_WAIT = 5.0  # seconds that a service may ask for
_AGAIN = {"unreachable", "busy"}
_GIVEN = "given"  # to `use`, and not made from variables
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_OF_THE_REQUEST = {400, 413, 415, 422}  # what these say, they say about one request, and not about the service


class SomaBrainClient:
    """For many tasks, event loops and threads at once; each event loop has connections of its own."""

    _shared: ClassVar[tuple[SomaBrainClient, object] | None] = None  # and the variables that it was made from
    _sharing: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        base_url: str | None = None,
        *,
        settings: SomaSettings | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        """The service at `base_url`, or as `settings` say, or the environment does."""
        if settings is None:
            settings = SomaSettings(base_url) if base_url else SomaSettings.from_environment()
        self.settings = settings
        self.breaker = breaker or CircuitBreaker()
        self._host = settings.address.host
        self._opening = threading.Lock()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    @classmethod
    def get(cls) -> SomaBrainClient:
        """The one that everybody shares, as the SA01_* variables say now, or as `use` said."""
        said = [(name, value) for name, value in sorted(os.environ.items()) if name.startswith("SA01_")]
        with cls._sharing:
            if cls._shared is None or cls._shared[1] not in (said, _GIVEN):
                cls._shared = cls(settings=SomaSettings.from_environment()), said
            return cls._shared[0]

    @classmethod
    def use(cls, client: SomaBrainClient | None) -> None:
        """Make this the one that `get` gives; None: make it anew from the environment."""
        with cls._sharing:
            cls._shared = None if client is None else (client, _GIVEN)

    async def context_evaluate(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Memories for a turn: `candidates`, each with id, score, text and metadata."""
        return await self._post("/context/evaluate", payload, finds=True)

    async def recall(self, query: str | Mapping[str, Any], top_k: int = 8, **more: Any) -> dict[str, Any]:
        """The same for a question: `recall("…", top_k=5, tenant_id=…)`, or `recall({"query": …, "top_k": …})`."""
        payload = dict(query) if isinstance(query, Mapping) else {"query": query, "top_k": top_k}
        return await self._post("/recall", {**payload, **more}, finds=True)

    async def remember(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        return await self._post("/memory/remember", payload, repeatable=_has_key(payload))

    async def remember_batch(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """`payload["memories"]` are kept. Tried again only if each of them has a key, by which it is known."""
        memories = payload.get("memories")
        listed = memories if isinstance(memories, list | tuple) else []
        keyed = _has_key(payload) or (bool(listed) and all(map(_has_key, listed)))
        return await self._post("/memory/remember/batch", payload, repeatable=keyed)

    async def aclose(self) -> None:
        """Close the connections of this event loop. The client can be used again."""
        with self._opening:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _post(
        self, path: str, payload: Mapping[str, Any], *, finds: bool = False, repeatable: bool = False
    ) -> dict[str, Any]:
        with self.breaker.guard():
            answer = await self._tried(path, self._body(payload), repeatable=finds or repeatable)
            if finds:
                read_candidates(answer)  # raises for what is none
            return answer

    async def _tried(self, path: str, body: bytes, *, repeatable: bool) -> dict[str, Any]:
        for attempt in range(self.settings.max_retries + 1):
            try:
                return await self._ask(path, body)
            except SomaClientError as error:
                failure = error
            may_repeat = (repeatable and failure.code in _AGAIN) or not failure.sent
            if attempt == self.settings.max_retries or not may_repeat:
                raise failure
            # Callers that failed together would else come back together.
            pause = self.settings.retry_base_ms / 1000 * 2.0**attempt * random.uniform(0.5, 1.5)
            await asyncio.sleep(max(pause, failure.wait))
            if self.breaker.state is BreakerState.OPEN:  # others have found out meanwhile that nobody is there
                raise failure
        raise AssertionError("the last attempt returns or raises")

    def _body(self, payload: Mapping[str, Any]) -> bytes:
        """The document as it is sent: with the namespaces, where they are others than a service takes by itself."""
        document = dict(payload)
        if self.settings.namespace:
            document.setdefault("universe", self.settings.namespace)
        if self.settings.memory_namespace != MEMORY_NAMESPACE:
            document.setdefault("namespace", self.settings.memory_namespace)
        try:
            return json.dumps(document, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SomaClientError(
                f"this cannot be sent as JSON: {type(error).__name__}", code="refused", counts=False
            ) from None

    async def _ask(self, path: str, body: bytes) -> dict[str, Any]:
        import httpx

        seconds = self.settings.timeout_seconds
        try:
            async with asyncio.timeout(seconds):  # for all of it: a service may also drip
                with scrubbed_logs(self.settings.key):
                    status, headers, content = await self._send(path, body)
        except (TimeoutError, httpx.TimeoutException):
            raise SomaClientError(
                f"{self._host} did not answer within {seconds:g} s",
                code="timeout",
                hint="see that it works; SA01_SOMA_TIMEOUT_SECONDS waits longer",
            ) from None
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise self._unreachable(error, sent=False) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._unreachable(error) from None
        if status == 204:  # done, and nothing to say
            return {}
        if not 200 <= status < 300:
            raise self._refusal(Answered(status, headers, content.decode("utf-8", "replace")))
        return self._parsed(content)

    async def _send(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self.settings.key is not None:
            headers["Authorization"] = f"Bearer {self.settings.key.reveal()}"
        content = bytearray()
        request = self._connected().stream("POST", self.settings.base_url + path, content=body, headers=headers)
        async with request as response:
            most = _LARGEST if response.is_success else _MOST_ERROR
            async for part in response.aiter_raw():
                content += part
                if len(content) > most:
                    if not response.is_success:
                        break
                    raise self._nonsense(f"more than {_LARGEST >> 20} MB")
            return (
                response.status_code,
                {name.lower(): value for name, value in response.headers.items()},
                bytes(content),
            )

    def _parsed(self, content: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            start = content[:200].lstrip().lower()
            page = start.startswith((b"<!doctype", b"<html", b"<?xml"))
            raise self._nonsense("a web page" if page else "text that is no JSON" if start else "nothing") from None
        if isinstance(answer, list):
            return {"candidates": answer}
        if not isinstance(answer, dict):
            raise self._nonsense(f"JSON that is no document ({type(answer).__name__})")
        return answer

    def _unreachable(self, error: Exception, *, sent: bool = True) -> SomaClientError:
        return SomaClientError(
            f"{self._host} cannot be reached: {type(error).__name__}",
            code="unreachable",
            hint=f"start it, or see that {BASE_URL} is its address",
            detail=str(error)[:200],
            sent=sent,
        )

    def _nonsense(self, what: str) -> SomaClientError:
        return SomaClientError(
            f"{self._host} answers with {what}",
            code="nonsense",
            hint=f"see that {BASE_URL} is the address of a memory service",
        )

    def _refusal(self, answered: Answered) -> SomaClientError:
        status, said = f"{self._host} answered {answered.status}", answered.words(self.settings.key)
        if answered.status in _BUSY:
            wait = min(answered.retry_after or 0.0, _LONGEST_WAIT)
            return SomaClientError(status, code="busy", wait=wait, hint="it is tried again by itself", detail=said)
        if answered.status in {401, 403, 407}:
            return SomaClientError(f"{status}: it wants a key", code="refused", hint=f"export {KEY}=…", detail=said)
        if 300 <= answered.status < 400:
            return SomaClientError(
                f"{status}, a redirect, which is not followed",
                code="refused",
                hint=f"set {BASE_URL} to the address itself",
            )
        counts = answered.status not in _OF_THE_REQUEST
        hint = f"see that {BASE_URL} is the address of a memory service" if counts else ""
        return SomaClientError(status, code="refused", counts=counts, hint=hint, detail=said)

    def _connected(self) -> httpx.AsyncClient:
        """The connections of this event loop; others cannot be used from it."""
        import httpx

        loop = asyncio.get_running_loop()
        with self._opening:
            client = self._clients.get(loop)
            if client is None:
                limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
                secure = self.settings.base_url.startswith("https:")  # to read the certificates takes 0.1 s
                client = self._clients[loop] = httpx.AsyncClient(
                    timeout=self.settings.timeout_seconds,
                    follow_redirects=False,
                    headers={"User-Agent": "ctx"},
                    limits=limits,
                    verify=secure,
                    # One of our own goes past the proxies of the environment.
                    transport=httpx.AsyncHTTPTransport(limits=limits, verify=secure)
                    if self.settings.address.loopback
                    else None,
                )
            return client


def _has_key(memory: object) -> bool:
    return isinstance(memory, Mapping) and any(memory.get(name) for name in ("key", "idempotency_key"))
