"""One JSON document to a model's address, one back. Whatever else comes is an `AddressError` that says what to do.

A key goes into one header and nowhere else: what a server says is quoted without it. Redirects are not followed, for
they would take the question and the key elsewhere. This machine's own addresses are never asked through a proxy.
"""

from __future__ import annotations

import json
import re
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from research.addresses import Key, is_this_machine, key_for
from research.errors import AddressError
from research.observe import TRACE

if TYPE_CHECKING:
    import httpx

TIMEOUT = 30.0  # seconds for a whole answer
QUICKLY = (0.3,)  # seconds before each further try, where somebody waits for an answer
PATIENTLY = (0.5, 1.0, 2.0, 4.0)  # and where nobody does
_LONGEST_WAIT = 30.0  # that a server may ask for
_LARGEST = 64 << 20  # bytes of an answer
_QUOTED = 200  # characters of what a server says
_REPEATED = 12  # characters in a row of what was sent that are no accident
_REPEATED_KEY = 8  # and of a key

_AGAIN = {"unreachable", "busy"}
_BUSY = {429, 500, 502, 503, 504}
# llama.cpp says so with 500, others with 400, 413 or 422, and each in words of its own.
_TOO_LONG = re.compile(
    r"context (?:length|size|window)|maximum.{0,60}(?:token|length)|too (?:large|long|many tokens)"
    r"|exceed.{0,60}(?:token|context|length)|(?:less|fewer) than \d+ tokens|input length",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG_STATUS = {400, 413, 422, 500}


@dataclass(frozen=True, slots=True)
class _Request:
    body: bytes
    key: Key
    texts: str  # of the user, all together

    def quoted(self, said: str) -> str:
        """The beginning of what a server says, on one line, up to where it repeats the key or what it was sent: errors
        are logged, and a log holds no text of a document or a question."""
        line = " ".join(said[: 4 * _QUOTED].split())
        ends = (_repeats(line, self.key.value, _REPEATED_KEY), _repeats(line, self.texts, _REPEATED), _QUOTED)
        return line if len(line) <= min(ends) else f"{line[: min(ends)]}…"


class ApiClient:
    """Asks one address. Many threads may use it."""

    def __init__(self, url: str, *, own_key: str, timeout: float = TIMEOUT, waits: tuple[float, ...] = QUICKLY) -> None:
        """`own_key` is the variable with the key of this use; `waits` are the seconds before each further try."""
        self.url = url
        self._own_key = own_key
        self._timeout = timeout
        self._waits = waits

    def post(self, document: Mapping[str, Any]) -> Any:
        """The answer to a document. A server that is busy or cannot be reached is tried again."""
        request = _Request(json.dumps(document).encode(), key_for(self.url, self._own_key), _texts_of(document))
        for wait in (*self._waits, None):
            try:
                return self._ask(request)
            except AddressError as error:
                if wait is None or error.code not in _AGAIN:
                    raise
                time.sleep(max(wait, error.wait))
        raise AssertionError("the last try returns or raises")

    def _ask(self, request: _Request) -> Any:
        import httpx

        headers = {"Content-Type": "application/json", "Accept": "application/json", **TRACE.get()}
        if request.key.value:
            headers["Authorization"] = f"Bearer {self._sound(request.key)}"
        try:
            status, answered, content = self._send(request.body, headers)
        except httpx.TimeoutException:
            raise AddressError(
                f"{self.url} did not answer within {self._timeout:g} s",
                code="timeout",
                hint="see that its server works; CTX_REQUEST_TIMEOUT=120 waits longer",
            ) from None
        except httpx.HTTPError as error:
            reason = request.quoted(str(error)) or type(error).__name__
            raise AddressError(
                f"{self.url} cannot be reached: {reason}",
                code="unreachable",
                hint="start its server, or name another address; ctx doctor tries it",
            ) from None
        if status != 200:
            raise self._failure(status, answered, content, request)
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise AddressError(
                f"{self.url} answers with {_kind_of(content)}, not with JSON", code="nonsense", hint=_CHECK
            ) from None

    def _send(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and content. The time limit is for all of it: a server may also drip."""
        import httpx

        until, content = time.monotonic() + self._timeout, bytearray()
        with self._client.stream("POST", self.url, content=body, headers=dict(headers)) as response:
            for part in response.iter_bytes():
                content += part
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("")
                if len(content) > _LARGEST:
                    raise AddressError(
                        f"{self.url} answers with more than {_LARGEST >> 20} MB", code="nonsense", hint=_CHECK
                    )
            return response.status_code, response.headers, bytes(content)

    def _failure(self, status: int, headers: Mapping[str, str], content: bytes, request: _Request) -> AddressError:
        message = _message(content)
        said = request.quoted(message)
        told = f"{self.url} answers HTTP {status}{f': {said}' if said else ''}"
        if status in _TOO_LONG_STATUS and (status == 413 or _TOO_LONG.search(message)):
            return AddressError(told, code="too_long", hint="give its server a larger context, or take another model")
        if status in _BUSY:
            wait = headers.get("retry-after", "")
            seconds = min(float(wait), _LONGEST_WAIT) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", wait) else 0.0
            return AddressError(told, code="busy", hint="wait a little and run the same command again", wait=seconds)
        if status in (401, 403):
            return AddressError(told, code="refused", hint=self._about_key(request.key))
        if 300 <= status < 400:
            where = request.quoted(headers.get("location", ""))
            return AddressError(f"{told}, a redirect{f' to {where}' if where else ''}", code="refused", hint=_CHECK)
        return AddressError(told, code="refused", hint=_CHECK)

    def _about_key(self, key: Key) -> str:
        if key.withheld:
            return f"{key.withheld} is not sent unencrypted to another machine; {self._own_key} is, or take https"
        if key.variable:
            return f"see that {key.variable} holds a key for this address; {self._own_key} is for it alone"
        return f"put its key into the variable {self._own_key}"

    def _sound(self, key: Key) -> str:
        """A key that can stand in a header; HTTP libraries quote one that cannot."""
        if not key.value.isascii() or not key.value.isprintable() or " " in key.value:
            raise AddressError(
                f"the key in {key.variable} has characters that no key has", code="refused", hint="set it again"
            )
        return key.value

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        client = httpx.Client(
            timeout=self._timeout,
            follow_redirects=False,
            # Not past a proxy that the environment names, unless it is this machine that is asked.
            mounts=dict.fromkeys(("all://", "http://", "https://")) if is_this_machine(self.url) else None,
            verify=self.url.startswith("https:"),  # to read the certificates takes 0.1 s
        )
        weakref.finalize(self, client.close)
        return client


_CHECK = "check the address and the name of the model; ctx doctor tries them"


def _repeats(line: str, secret: str, length: int) -> int:
    """Where a line begins to repeat so many characters of a secret, or all of a shorter one; its end if nowhere."""
    size = min(length, len(secret))
    windows = range(len(line) - size + 1) if size else ()
    return next((at for at in windows if line[at : at + size] in secret), len(line))


def _texts_of(document: Mapping[str, Any]) -> str:
    """Everything in a request but the name of the model."""
    values = [value for name, value in document.items() if name != "model"]
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    return " ".join(" ".join(str(text).split()) for text in texts)


def _message(content: bytes) -> str:
    """What an error says, in the forms that servers use; of a page or anything else its beginning."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content[: 4 * _QUOTED].decode("utf-8", "replace") if _kind_of(content) == "text" else ""
    for name in ("error", "message", "detail"):
        found = document.get(name) if isinstance(document, dict) else None
        if isinstance(found, list):
            found = found[0] if found else ""
        if isinstance(found, dict):
            found = found.get("message") or found.get("msg")
        if isinstance(found, str) and found:
            return found
    return ""


def _kind_of(content: bytes) -> str:
    start = content[:200].lstrip().lower()
    if not start:
        return "nothing"
    return "a web page" if start.startswith((b"<!doctype", b"<html", b"<?xml")) else "text"
