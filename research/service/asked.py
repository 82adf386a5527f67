"""What the guard looks at of a request, read once; and what of it is odd enough to be refused by anybody.

Who asks, and from where a request may come: names of this server, and origins of other pages.

A browser sends requests wherever a page tells it to. Two checks tell our own page from others: the Host header names
us, and no name that somebody pointed at 127.0.0.1 (DNS rebinding); the Origin is our own, or one that was named at the
start. Programs send no Origin. They are told apart by their token alone.

The names of a request: its id, and its place in a trace (W3C Trace Context).

The types of ASGI, by which a server, the guard and the application talk to each other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote_to_bytes

from research.errors import UsageError
from research.service.problems import Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


# Each of these means one thing. With two of them, whoever stands before or behind us may choose the other.
_ONCE = frozenset(
    {b"host", b"origin", b"sec-fetch-site", b"authorization", b"content-length", b"content-type", b"transfer-encoding"}
)
_LOOKED_AT = _ONCE | {b"x-request-id", b"accept", b"expect", b"access-control-request-method"}
_LENGTH = re.compile(r"\d{1,18}")

# Paths that mean another one to some program that reads them: control characters, backslashes, an encoded slash, a dot
# encoded twice, a percent sign that begins nothing, empty segments; and segments of dots, encoded or not.
_ODD_PATH = re.compile(
    rb"[\x00-\x20\x7f-\xff\\]|%[01][0-9a-f]|%7f|%2f|%5c|%25(?:2e|2f|5c|00)|%(?![0-9a-f]{2})|//"
    rb"|/(?:\.|%2e){1,2}(?:;[^/]*)?(?:/|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, by its headers. A text that is missing is None."""

    method: str
    path: str
    port: int | None  # that we listen on; None for a socket file
    headers: dict[bytes, str]
    cookies: tuple[str, ...]
    twice: bytes  # a header that may stand there once, and does not; empty if there is none

    @classmethod
    def of(cls, scope: Scope) -> Asked:
        headers: dict[bytes, str] = {}
        cookies: list[str] = []
        twice = b""
        for name, value in scope["headers"]:
            if name == b"cookie":
                cookies.append(value.decode("latin-1"))
            elif name in _LOOKED_AT:
                twice = name if name in headers and name in _ONCE else twice
                headers[name] = value.decode("latin-1").strip(" \t")
        server = scope.get("server")
        port = server[1] if server else None
        return cls(scope["method"], scope["path"], port, headers, tuple(cookies), twice)

    @property
    def host(self) -> str:
        return self.headers.get(b"host", "")

    @property
    def origin(self) -> str | None:
        return self.headers.get(b"origin")

    @property
    def changes_something(self) -> bool:
        return self.method not in {"GET", "HEAD", "OPTIONS"}

    @property
    def is_preflight(self) -> bool:
        return self.method == "OPTIONS" and self.origin is not None and b"access-control-request-method" in self.headers

    @property
    def has_body(self) -> bool:
        return b"transfer-encoding" in self.headers or self.headers.get(b"content-length", "0") != "0"

    @property
    def waits_to_send(self) -> bool:
        """Whether the body is not sent before we ask for it, which we do by reading."""
        return b"expect" in self.headers

    @property
    def length(self) -> int | None:
        """As it was announced; None if it was not."""
        given = self.headers.get(b"content-length")
        return None if given is None else int(given)

    @property
    def bearer(self) -> str | None:
        """What is brought as a token; None if nothing is, "" if it is something else."""
        given = self.headers.get(b"authorization")
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        return token.strip(" ") if scheme.lower() == "bearer" else ""

    @property
    def is_for_a_person(self) -> bool:
        """Whether somebody looks at what comes back: a page is shown to them, not a document for programs."""
        return "text/html" in self.headers.get(b"accept", "") and not self.path.startswith(
            ("/api/", "/knowledge/", "/mcp", "/metrics")
        )

    def oddity(self, scope: Scope, longest: int) -> Problem | None:
        """Why no application should see this request."""
        raw = scope.get("raw_path") or self.path.encode("utf-8", "surrogateescape")
        if len(raw) + len(scope["query_string"]) > longest:
            return Problem(414, "The address is too long", hint="POST takes longer questions", kind="uri-too-long")
        if not raw.startswith(b"/") or _ODD_PATH.search(raw) or not _is_utf8(raw):
            return Problem(400, "The path is odd", "it could be taken for another one", "name the path as /docs has it")
        if self.twice:
            return Problem(400, "A header stands there twice", self.twice.decode("ascii"))
        length = self.headers.get(b"content-length")
        if length is not None and (not _LENGTH.fullmatch(length) or b"transfer-encoding" in self.headers):
            return Problem(400, "The length of the body is odd")
        return None


def _is_utf8(raw: bytes) -> bool:
    if b"%" not in raw:
        return True
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return True


_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9_-](?:[a-z0-9_.-]{0,251}[a-z0-9_-])?)(?::(?P<port>\d{1,5}))?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class From(Enum):
    """Where a request comes from."""

    HERE = "our own page, or a program that is no browser"
    NAMED = "a page of another origin that was named at the start"
    ELSEWHERE = "any other page"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """What was allowed at the start. `hosts`: names beside those of loopback, with a port or for all ports; `origins`:
    pages that may use a bearer token from a browser; without `token_needed` everybody on this machine is the owner."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    token_needed: bool = True

    @classmethod
    def of(
        cls, hosts: Iterable[str] = (), cors_origins: Iterable[str] = (), *, token_needed: bool = True
    ) -> AccessRules:
        """From what a user typed. Raises `UsageError` for what is no host, or no origin."""
        return cls(frozenset(map(_checked_host, hosts)), frozenset(map(_checked_origin, cors_origins)), token_needed)

    def allows_host(self, host: str, port: int | None) -> bool | None:
        """Whether this Host header names us, who listen on `port` (None: on a socket file); None if it is no host."""
        if not host:
            return True if port is None else None
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return None
        name, given = found["name"], found["port"]
        if name in _LOOPBACK and (given is None or port is None or int(given) == port):
            return True
        return name in self.hosts or found.group() in self.hosts

    def whence(self, host: str, origin: str | None, site: str | None) -> From:
        """By Host, Origin and Sec-Fetch-Site, of which the last two are missing where no browser asks."""
        if origin is not None and origin.lower() in self.origins:
            return From.NAMED
        if site is not None and site not in {"same-origin", "none"}:
            return From.ELSEWHERE  # "same-site" too: another port of this machine may be another user's
        if origin is None:
            return From.HERE
        if origin == "null":
            # A form on our own page sends it, for our pages tell no referrer; then the browser vouches for the site.
            return From.HERE if site == "same-origin" else From.ELSEWHERE
        return From.HERE if _is_origin_of(origin, host) else From.ELSEWHERE


def _is_origin_of(origin: str, host: str) -> bool:
    """Whether it is the page that we ourselves served under this very name. (https: by a proxy before us.)"""
    scheme, _, authority = origin.lower().partition("://")
    default = _DEFAULT_PORTS.get(scheme)
    return (
        default is not None
        and bool(authority)
        and authority.removesuffix(default) == host.lower().removesuffix(default)
    )


def _checked_host(given: str) -> str:
    host = given.strip().lower()
    if not _HOST.fullmatch(host):
        raise UsageError(f"{given!r} is no host name", hint="--allow-host NAME or NAME:PORT, such as box.example")
    return host


def _checked_origin(given: str) -> str:
    origin = given.strip().lower().rstrip("/")
    scheme, _, authority = origin.partition("://")
    if scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(authority):
        raise UsageError(
            f"{given!r} is no origin", hint="name each page's own: --cors-origin https://notes.example (no path, no *)"
        )
    return f"{scheme}://{authority.removesuffix(_DEFAULT_PORTS[scheme])}"


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # what may stand in a log, a header and a document as it is
_SAMPLED = "01"


def request_id(given: str | None) -> str:
    """The id that the caller gave, if it is a short plain word; else a new one."""
    return given if given is not None and _ID.fullmatch(given) else os.urandom(8).hex()


def own_traceparent(trace: Mapping[str, str]) -> str:
    """The caller's trace (`research.observe.taken_up`) with a span id of ours; a new one where there is none."""
    span = os.urandom(8).hex()
    given = trace.get("traceparent")
    if given is None:
        return f"00-{os.urandom(16).hex()}-{span}-{_SAMPLED}"
    flags = _SAMPLED if int(given[53:55], 16) & 1 else "00"  # what the other flags mean is not known yet
    return f"00-{given[3:35]}-{span}-{flags}"
