"""Who asks, and from where a request may come: names of this server, and origins of other pages.

A browser sends requests wherever a page tells it to. Two checks tell our own page from others: the Host header names
us, and no name that somebody pointed at 127.0.0.1 (DNS rebinding); the Origin is our own, or one that was named at the
start. Programs send no Origin. They are told apart by their token alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from research.errors import UsageError

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
