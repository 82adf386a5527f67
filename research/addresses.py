"""Models by address, as a user writes them: `openai:MODEL@URL` for vectors, `URL` or `MODEL@URL` for a reranker.

Indexes remember such a name, commands show it and logs hold it. So it may carry no secret: an address with a user name,
a password or a query in it is refused, in words that do not repeat it. A key comes from the environment alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple

EMBEDDINGS = "openai"  # the kind of encoder that is asked over HTTP
_LONGEST = 500  # characters; a catalog takes names of twice that
_WRITTEN = re.compile(r"(?:(?P<model>.+?)@)?(?P<url>https?://.*)", re.IGNORECASE)
_PLACE = re.compile(r"(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?", re.IGNORECASE)
_PATH = re.compile(r"[\w/.~!$&'()*+,;=:@%-]*", re.ASCII)
_HOW = {
    EMBEDDINGS: "openai:MODEL@URL, such as openai:nomic-embed-text@http://localhost:11434/v1",
    "reranker": "the whole URL, such as http://localhost:8080/v1/rerank, or MODEL@URL where a server has several",
}

API_KEY = "CTX_API_KEY"
ENCODER_KEY = "CTX_TEXT_ENCODER_KEY"
RERANKER_KEY = "CTX_RERANKER_KEY"
KEYS = (API_KEY, ENCODER_KEY, RERANKER_KEY)
_VENDORS = {"https://api.openai.com/": "OPENAI_API_KEY"}  # whose own variable is for their own address alone
ENCODER_KEYS = (ENCODER_KEY, API_KEY, *_VENDORS.values())
"""The variables that may hold the key of an encoder's server."""


class Address(NamedTuple):
    """A model and where it is served; `model` is empty where the server has but one."""

    model: str
    url: str


class BadAddress(ValueError):  # noqa: N818  beside Address, and never seen by a user as such
    """What is wrong with an address, without the address itself, and how one reads."""

    def __init__(self, problem: str, kind: str) -> None:
        super().__init__(problem)
        self.hint = f"write it as {_HOW[kind]}"


def is_encoder_address(name: str) -> bool:
    """Whether this names an encoder by its address, well written or not."""
    return name.startswith(f"{EMBEDDINGS}:") or name.lower().startswith(("http://", "https://"))


def encoder_address(name: str) -> Address:
    """What `openai:MODEL@URL` means. The URL is the server's base, `…/v1`: a bare host gets `/v1`, and `/embeddings`
    at the end is taken off, so that one server has one name."""
    written = _WRITTEN.fullmatch(name.removeprefix(f"{EMBEDDINGS}:"))
    if written is None or not written["model"] or not name.startswith(f"{EMBEDDINGS}:"):
        raise BadAddress("needs a model and its address", EMBEDDINGS)
    model = _checked_model(written["model"], EMBEDDINGS)
    root, path = _split(written["url"], EMBEDDINGS)
    return Address(model, f"{root}{path.removesuffix('/embeddings') or '/v1'}")


def encoder_name(address: Address) -> str:
    """The one way to write it, which an index remembers."""
    return f"{EMBEDDINGS}:{address.model}@{address.url}"


def same_encoder(name: str, written: str) -> bool:
    """Whether a name that is written as an index remembers it means what somebody wrote."""
    try:
        return name == encoder_name(encoder_address(written))
    except BadAddress:
        return False


def is_reranker_address(name: str) -> bool:
    return "://" in name


def reranker_address(name: str) -> Address:
    """What `URL` or `MODEL@URL` means. The URL is used as it is: servers put `/rerank` at several places."""
    written = _WRITTEN.fullmatch(name)
    if written is None:
        raise BadAddress("is no http or https address", "reranker")
    model = _checked_model(written["model"], "reranker") if written["model"] else ""
    root, path = _split(written["url"], "reranker")
    if not path:
        raise BadAddress("lacks the path of the address", "reranker")
    return Address(model, f"{root}{path}")


def is_this_machine(url: str) -> bool:
    """Whether an address is this machine's own, by its very text: a name that resolves to it may change."""
    host = re.match(r"https?://(\[[^]]*\]|[^:/]*)", url)
    return host is not None and (host[1] in ("localhost", "[::1]") or bool(re.fullmatch(r"127(\.\d+){3}", host[1])))


@dataclass(frozen=True, slots=True)
class Key:
    """A key and the variable it is in, which is all that may be told of it. `withheld`: the one that is not sent."""

    value: str = field(default="", repr=False)
    variable: str = ""
    withheld: str = ""


def key_for(url: str, own: str) -> Key:
    """The key to send to an address: that of its use (`own`, one of KEYS), else the common one, else the vendor's at
    the vendor's address. The common one goes to whatever is configured, so it does not go unencrypted to another
    machine."""
    if os.environ.get(own):
        return Key(os.environ[own].strip(), own)
    if os.environ.get(API_KEY):
        if url.startswith("https://") or is_this_machine(url):
            return Key(os.environ[API_KEY].strip(), API_KEY)
        return Key(withheld=API_KEY)
    for start, variable in _VENDORS.items():
        if url.startswith(start) and os.environ.get(variable):
            return Key(os.environ[variable].strip(), variable)
    return Key()


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
