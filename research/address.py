"""Addresses of model servers, as the user gives them and as they are called."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

EXAMPLE = "http://127.0.0.1:11434/v1"

_ENDPOINTS = ("/chat/completions", "/completions", "/embeddings", "/models")


@dataclass(frozen=True, slots=True)
class Address:
    """`base` is what endpoints are added to, `host` what may be shown and remembered."""

    base: str
    host: str
    loopback: bool  # it is on this machine, whatever proxy the environment names


def parse_address(text: str) -> Address:
    """A base address with or without /v1. Raises ValueError with the reason; the address itself is not repeated, for it
    may hold a password."""
    parts = _split(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"it must begin with http:// or https://, like {EXAMPLE}")
    if "@" in parts.netloc:
        raise ValueError("it may hold no user and password: a key comes from CTX_MODEL_KEY")
    if parts.query or parts.fragment:
        raise ValueError("it may hold nothing after ? or #: a key comes from CTX_MODEL_KEY")
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    host = parts.netloc.lower()
    return Address(f"{parts.scheme}://{host}{path or '/v1'}", host, _is_loopback(parts.hostname))


def _split(text: str) -> SplitResult:
    if not text.isprintable() or " " in text:
        raise ValueError("it holds blanks or characters that nobody sees")
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  raises for one that is no number
    except ValueError:
        raise ValueError(f"it is no address; one reads like {EXAMPLE}") from None
    return parts


def _is_loopback(name: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
