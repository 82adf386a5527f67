"""Keys of model servers: where they come from, and that nothing ever shows them.

A key comes from the environment (a variable for each use, or CTX_API_KEY for all) or, if the package `keyring` is
there, from the system's keyring; never from a file. It is a `Secret` from then on. Servers repeat keys in their errors,
so whatever they say passes `scrub`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

from research.addresses import is_this_machine
from research.errors import UsageError

if TYPE_CHECKING:
    import logging

API_KEY, MODEL_KEY, ENCODER_KEY, RERANKER_KEY = (
    "CTX_API_KEY",
    "CTX_MODEL_KEY",
    "CTX_TEXT_ENCODER_KEY",
    "CTX_RERANKER_KEY",
)
_VENDORS = {"https://api.openai.com/": "OPENAI_API_KEY"}  # whose own variable is for their own address alone
ENCODER_KEYS = (ENCODER_KEY, API_KEY, *_VENDORS.values())
"""The variables that may hold the key of an encoder's server."""

KEYRING_SERVICE = "ctx"

_SHOWN = "[key]"
_PIECE = 8  # characters of a key in a row that give it away
_HTTP_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy")


class Secret:
    """A text that is only seen by who asks for it with `reveal`: not in a repr, an error, a log, JSON, a pickle or the
    dictionary of a record that holds it."""

    __slots__ = ("_reveal",)

    def __init__(self, value: str) -> None:
        def reveal() -> str:
            return value

        self._reveal = reveal  # no attribute holds the text, so nothing that lists attributes finds it

    def reveal(self) -> str:
        return self._reveal()

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not pickled")


@dataclass(frozen=True, slots=True)
class Key:
    """A key and where it stands, which is all that may be told of it. `own` is the variable of this use alone,
    `withheld` the one that is not sent."""

    secret: Secret | None = None
    variable: str = ""
    own: str = MODEL_KEY
    withheld: str = ""


def find_key(url: str, own: str, environment: Mapping[str, str] | None = None) -> Key:
    """Return the key for a server: that of its use (`own`), else the keyring's entry of the service `ctx` for its host,
    else the common one, else the vendor's at the vendor's address. The common one goes to whatever is configured, so it
    does not go unencrypted to another machine. Raise `UsageError` for what cannot be a key, without repeating it."""
    given = os.environ if environment is None else environment
    if given.get(own, "").strip():
        return Key(_checked(given[own], own), own, own)
    host = url.partition("://")[2].partition("/")[0]
    if kept := keyring_entry(host)[0].strip():
        where = f"the keyring's entry for {host}"
        return Key(_checked(kept, where), where, own)
    if given.get(API_KEY, "").strip():
        if not url.startswith("https://") and not is_this_machine(url):
            return Key(own=own, withheld=API_KEY)
        return Key(_checked(given[API_KEY], API_KEY), API_KEY, own)
    for start, variable in _VENDORS.items():
        if url.startswith(start) and given.get(variable, "").strip():
            return Key(_checked(given[variable], variable), variable, own)
    return Key(own=own)


def _checked(value: str, where: str) -> Secret:
    value = value.strip()
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise UsageError(f"{where} holds characters that no key has", hint="set it again, as you were given it")
    return Secret(value)


def keyring_entry(name: str) -> tuple[str, str]:
    """The entry of the service `ctx` for a name, and why there is none: "missing" without the package, "locked" where
    the keyring cannot be read."""
    if find_spec("keyring") is None:
        return "", "missing"
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, name) or "", ""
    except KeyringError as error:  # none on this machine, or locked
        from research.observe import log_failure

        log_failure("model", "the keyring cannot be read", error)
        return "", "locked"


def scrub(text: str, secret: Secret | None) -> str:
    """A foreign text without the key: `[key]` stands for it, and for any eight characters of it in a row."""
    if secret is None:
        return text
    from base64 import b64encode
    from urllib.parse import quote

    value = secret.reveal()
    for form in {value, quote(value, safe=""), b64encode(value.encode()).decode().rstrip("=")}:
        text = text.replace(form, _SHOWN)
    pieces = {value[at : at + _PIECE] for at in range(len(value) - _PIECE + 1)}
    hit = [text[at : at + _PIECE] in pieces for at in range(len(text) - _PIECE + 1)]
    if not any(hit):
        return text
    covered = [any(hit[max(0, at - _PIECE + 1) : at + 1]) for at in range(len(text))]
    return "".join(
        character if not inside else _SHOWN if at == 0 or not covered[at - 1] else ""
        for at, (character, inside) in enumerate(zip(text, covered, strict=True))
    )


@contextmanager
def scrubbed_logs(secret: Secret | None) -> Iterator[None]:
    """While a request runs: the HTTP library logs what a server answered, a key that it repeats included."""
    if secret is None:
        yield
        return
    import logging

    def without_key(record: logging.LogRecord) -> bool:
        record.msg, record.args = scrub(record.getMessage(), secret), ()
        return True

    loggers = [logging.getLogger(name) for name in _HTTP_LOGGERS]
    for logger in loggers:
        logger.addFilter(without_key)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(without_key)
