"""Where a remote memory service is and how patiently it is asked: the SA01_* variables of seed 000, §7.

Without SA01_SOMA_BASE_URL there is none, and nothing is contacted. A key, if the service wants one, is
SA01_SOMA_API_KEY's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from research.address import Address, parse_address
from research.errors import UsageError
from research.secret import Secret

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

    def same_as(self, other: SomaSettings) -> bool:
        """With the key, which takes no part in a comparison."""
        keys = [settings.key.reveal() if settings.key else "" for settings in (self, other)]
        return self == other and keys[0] == keys[1]

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
