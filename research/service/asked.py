"""What the guard looks at of a request, read once; and what of it is odd enough to be refused by anybody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from research.service.asgi import Scope
from research.service.problems import Problem

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
