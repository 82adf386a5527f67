"""Servers of models as a user writes them: `URL` of a chat model, `openai:MODEL@URL` for vectors, `URL` or `MODEL@URL`
for a reranker.

Indexes remember such a name, commands show it and logs hold it. So it may carry no secret: an address with a user name,
a password or a query in it is refused, in words that do not repeat it. Keys are found by `research.secret`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

EXAMPLE = "http://127.0.0.1:11434/v1"

_EMBEDDINGS = "openai"  # the kind of encoder that is asked over HTTP
_ENDPOINTS = ("/chat/completions", "/completions", "/embeddings", "/models")
_LONGEST = 500  # characters; a catalog takes names of twice that
_WRITTEN = re.compile(r"(?:(?P<model>.+?)@)?(?P<url>https?://.*)", re.IGNORECASE)
_PLACE = re.compile(r"(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?", re.IGNORECASE)
_PATH = re.compile(r"[\w/.~!$&'()*+,;=:@%-]*", re.ASCII)
_HOW = {
    _EMBEDDINGS: "openai:MODEL@URL, such as openai:nomic-embed-text@http://localhost:11434/v1",
    "reranker": "the whole URL, such as http://localhost:8080/v1/rerank, or MODEL@URL where a server has several",
    "server": EXAMPLE,
}


@dataclass(frozen=True, slots=True)
class Address:
    """`base` is what endpoints are added to, `host` what may be shown and remembered."""

    base: str
    host: str
    loopback: bool  # it is on this machine, whatever proxy the environment names


class ModelAddress(NamedTuple):
    """A model and where it is served; `model` is empty where the server has but one."""

    model: str
    url: str


class BadAddress(ValueError):  # noqa: N818  beside Address, and never seen by a user as such
    """What is wrong with an address, without the address itself, and how one reads."""

    def __init__(self, problem: str, kind: str) -> None:
        super().__init__(problem)
        self.hint = f"write it as {_HOW[kind]}"


def parse_address(text: str) -> Address:
    """Return a base address, written with or without /v1. Raise ValueError with the reason, which repeats nothing."""
    if not text.lower().startswith(("http://", "https://")):
        raise ValueError(f"it must begin with http:// or https://, like {EXAMPLE}")
    try:
        root, path = _split(text, "server")
    except BadAddress as problem:
        raise ValueError(f"it {problem}") from None
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    return Address(f"{root}{path or '/v1'}", root.partition("://")[2], is_this_machine(root))


def is_encoder_address(name: str) -> bool:
    """Whether this names an encoder by its address, well written or not."""
    return name.startswith(f"{_EMBEDDINGS}:") or name.lower().startswith(("http://", "https://"))


def encoder_address(name: str) -> ModelAddress:
    """Read `openai:MODEL@URL`. The URL is the server's base, `…/v1`: a bare host gets `/v1`, and `/embeddings` at the
    end is taken off, so that one server has one name."""
    written = _WRITTEN.fullmatch(name.removeprefix(f"{_EMBEDDINGS}:"))
    if written is None or not written["model"] or not name.startswith(f"{_EMBEDDINGS}:"):
        raise BadAddress("needs a model and its address", _EMBEDDINGS)
    model = _checked_model(written["model"], _EMBEDDINGS)
    root, path = _split(written["url"], _EMBEDDINGS)
    return ModelAddress(model, f"{root}{path.removesuffix('/embeddings') or '/v1'}")


def encoder_name(address: ModelAddress) -> str:
    """Return the one way to write it, which an index remembers."""
    return f"{_EMBEDDINGS}:{address.model}@{address.url}"


def same_encoder(name: str, written: str) -> bool:
    """Whether a name that is written as an index remembers it means what somebody wrote."""
    try:
        return name == encoder_name(encoder_address(written))
    except BadAddress:
        return False


def is_reranker_address(name: str) -> bool:
    return "://" in name


def reranker_address(name: str) -> ModelAddress:
    """Read `URL` or `MODEL@URL`. The URL is used as it is: servers put `/rerank` at several places."""
    written = _WRITTEN.fullmatch(name)
    if written is None:
        raise BadAddress("is no http or https address", "reranker")
    model = _checked_model(written["model"], "reranker") if written["model"] else ""
    root, path = _split(written["url"], "reranker")
    if not path:
        raise BadAddress("lacks the path of the address", "reranker")
    return ModelAddress(model, f"{root}{path}")


def is_this_machine(url: str) -> bool:
    """Whether an address is this machine's own, by its very text: a name that resolves to it may change."""
    host = re.match(r"https?://(\[[^]]*\]|[^:/]*)", url)
    return host is not None and (host[1] in ("localhost", "[::1]") or bool(re.fullmatch(r"127(\.\d+){3}", host[1])))


def _checked_model(model: str, kind: str) -> str:
    if model != model.strip() or not model.isprintable() or "://" in model or len(model) > _LONGEST:
        raise BadAddress("has a model's name that is none", kind)
    return model


def _split(url: str, kind: str) -> tuple[str, str]:
    """Scheme, host and port; and the path without a slash at its end. Written by hand and strictly: what a parser
    understands generously, another may understand otherwise."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    if "@" in place:
        raise BadAddress("has a user name or password in its address, which an index would remember", kind)
    if "?" in rest or "#" in rest:
        raise BadAddress("has a ? or # in its address; a key there would be remembered by an index", kind)
    found = _PLACE.fullmatch(place)
    if found is None or not 0 < int(found["port"] or 80) < 65536:
        raise BadAddress("has no host in its address, or a port that is none", kind)
    if not _PATH.fullmatch(path) or len(url) > _LONGEST or ".." in path.split("/"):
        raise BadAddress("has characters in its address that do not belong there", kind)
    return f"{scheme}://{place}".lower(), f"{slash}{path}".rstrip("/")
