"""The headers that every answer carries, so that a browser does with it what is meant, and no more."""

from __future__ import annotations

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

# In the place of the application's own, if it has any.
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
# Unless the application says something else: pictures may be kept by a browser, /docs needs other styles.
_UNLESS_SET = (
    (b"content-security-policy", CSP.encode()),
    (b"cache-control", b"no-store"),
)
_EXPOSED = b"X-Request-Id, Traceparent, Retry-After, Mcp-Session-Id"
_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_ALLOWED_HEADERS = (
    b"Authorization, Content-Type, Accept, X-Request-Id, Traceparent, Tracestate, Mcp-Session-Id, Mcp-Protocol-Version,"
    b" Last-Event-Id"
)
_OURS = frozenset({name for name, _ in _ALWAYS} | {b"server", b"x-request-id", b"traceparent"})


def completed(given: Iterable[tuple[bytes, bytes]], own: Headers) -> Headers:
    """The application's headers with ours: `own` are those of this very request."""
    headers = [(name, value) for name, value in given if name.lower() not in _OURS]
    there = {name.lower() for name, _ in headers}
    headers += _ALWAYS
    headers += [each for each in _UNLESS_SET if each[0] not in there]
    return headers + own


def cors_headers(origin: str | None) -> Headers:
    """For a page of an origin that was named at the start, or None for any other. Without credentials: cookies are for
    our own page."""
    if origin is None:
        return [(b"vary", b"Origin")]
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    ]


def preflight_headers() -> Headers:
    """What a browser is told that asks before a request of another origin."""
    return [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-allow-private-network", b"true"),
        (b"access-control-max-age", b"600"),
    ]
