"""Text becomes a vector: what every text encoder offers, the names they have, and what these load. One implementation a
file beside this one; here nothing is imported before it is used.

Processes that read documents cut chunks by tokens and need nothing else of an encoder, so `token_counter` counts
without loading it. The embedded one counts without its model; for one at an address, whose tokenizer nobody knows,
tokens are estimated; for another the tokenizer that its library made is handed over in a file. Loading the library
itself takes seconds and gigabytes of address space a process, which a page's time limit would count.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from research.errors import CtxError, EncoderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.models import Question
    from research.store import Reader

DEFAULT = "all-MiniLM-L6-v2/onnx-int8-1"
"""The identity of the embedded encoder."""

ALIASES = ("", "default", "minilm", "all-MiniLM-L6-v2")
"""Short names of the embedded encoder. "sentence-transformers/all-MiniLM-L6-v2" is the fp32 one from a hub."""

_FILE = "file:"


class TokenCounter(Protocol):
    """What cutting text into chunks needs of an encoder."""

    @property
    def max_tokens(self) -> int:
        """The window, special tokens included."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, special tokens not counted."""
        ...


class TextEncoder(TokenCounter, Protocol):
    """Turns text into unit vectors; the dot product of two is their cosine."""

    @property
    def name(self) -> str:
        """The identity an index remembers. Vectors of two names are never mixed."""
        ...

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages, (len(texts), dim). A passage beyond the window raises ValueError."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question of any length, (dim,)."""
        ...


def fitting(text: str, encoder: TextEncoder) -> str:
    """The beginning of a text that fits the encoder's window."""
    while encoder.count_tokens(text) > encoder.max_tokens - 2:  # two special tokens
        text = text[: len(text) // 2]
    return text


def check_window(counts: Sequence[int], room: int) -> None:
    """Raise ValueError for a text of more tokens than the window takes; nothing is cut."""
    for position, count in enumerate(counts):
        if count > room:
            raise ValueError(f"text {position} has {count} tokens; the window takes {room}")


def split_to_fit(text: str, encoder: TextEncoder) -> list[str]:
    """A text in parts that fit the encoder's window, cut between words and about equally long."""
    if encoder.count_tokens(text) <= encoder.max_tokens - 2:  # two special tokens
        return [text]
    middle = len(text) // 2
    places = (text.rfind(" ", 1, middle + 1), text.rfind("\n", 1, middle + 1))
    cut = max(places) if max(places) > middle // 2 else middle
    return [part for half in (text[:cut], text[cut:]) if half.strip() for part in split_to_fit(half.strip(), encoder)]


def usable_cores() -> int:
    """Cores this process may run on; fewer than the machine's under taskset or in a container."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_embedded(name: str) -> bool:
    return name == DEFAULT or name in ALIASES


def load_text_encoder(name: str = DEFAULT, *, threads: int | None = None, timeout: int = 0) -> TextEncoder:
    """The encoder of a name: the embedded one, a model by its address, or a sentence-transformers model by its hub
    name, its folder's full path or the name an index remembers. That must be on this machine: nothing is fetched.

    `threads` is how many cores embedding may use; None takes all this process may run on. `timeout`: how many seconds
    an address may take for an answer; 0 is the usual.
    """
    if is_embedded(name):
        from research.encoders.minilm import MiniLMEncoder

        return MiniLMEncoder(threads=threads)
    from research.addresses import is_encoder_address

    if is_encoder_address(name):
        from research.encoders.openai import OpenAIEncoder

        return OpenAIEncoder(name, patient=True, timeout=timeout)
    from research.encoders.sentence_transformers import SentenceTransformersEncoder

    return SentenceTransformersEncoder(name, threads=threads)


def load_remembered(
    name: str, *, dim: int, sketch: str = "", named: Sequence[str] = (), timeout: int = 0
) -> TextEncoder:
    """The encoder that an index names, if it is the embedded one or the user allowed it; `named` are those the user
    names now. `dim` is the length of the index's vectors, `sketch` what it remembers of a model behind an address."""
    if is_embedded(name):
        return load_text_encoder(name)
    from research.addresses import is_encoder_address
    from research.encoders.allowed import check_allowed

    check_allowed(name, named)
    if is_encoder_address(name):
        from research.encoders.openai import OpenAIEncoder

        return OpenAIEncoder(name, dim=dim, sketch=sketch, timeout=timeout)
    encoder = load_text_encoder(name)
    if encoder.dim != dim:
        raise EncoderUnavailable(
            f"{name} gives vectors of {encoder.dim} dimensions, and this index has {dim}",
            hint="embed all documents anew: CTX_TEXT_ENCODER=MODEL ctx ingest PATH",
        )
    return encoder


def check_text_encoder(name: str, *, dim: int = 0, sketch: str = "", timeout: int = 0) -> str:
    """What there is to say of the encoder that an index names. Raises what loading it would raise, as far as its files
    tell; one that is served at an address is tried there."""
    if is_embedded(name):
        return name
    from research.addresses import is_encoder_address

    if is_encoder_address(name):
        from research.encoders.openai import describe

        return describe(name, dim=dim, sketch=sketch, timeout=timeout)
    from research.encoders.sentence_transformers import find_remembered

    return find_remembered(name)[0]


def identify_text_encoder(wanted: str, fetching: Callable[[str], None] = lambda _: None) -> str:
    """The name an index would remember an encoder by that the user typed, told without loading it. A hub name that is
    not on this machine is fetched, for the user has asked for it by name; `fetching` hears of it first."""
    if is_embedded(wanted):
        return DEFAULT
    from research.addresses import encoder_address, encoder_name, is_encoder_address

    if is_encoder_address(wanted):
        return encoder_name(encoder_address(wanted))
    from research.encoders.sentence_transformers import identify, to_fetch

    missing = to_fetch(wanted)
    if missing:
        fetching(missing)
    return identify(wanted)


@dataclass(frozen=True, slots=True)
class _FileCounter:
    tokenizer: Any
    max_tokens: int

    def count_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)


def hand_over(tokenizer: str, max_tokens: int, path: Path) -> str:
    """Write a tokenizer (the JSON of the `tokenizers` package) and its window for `token_counter` to read; returns what
    to call it by."""
    path.write_text(json.dumps({"max_tokens": max_tokens, "tokenizer": tokenizer}), encoding="utf-8")
    return f"{_FILE}{path}"


def token_counter(name: str) -> TokenCounter:
    """The counter of the embedded encoder, of one at an address, or of one that was handed over."""
    from research.addresses import is_encoder_address

    if is_encoder_address(name):
        from research.encoders.openai import EstimatedTokens

        return EstimatedTokens()
    if not name.startswith(_FILE):
        return load_text_encoder(name, threads=1)
    from tokenizers import Tokenizer

    given = json.loads(Path(name.removeprefix(_FILE)).read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_str(given["tokenizer"])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _FileCounter(tokenizer, given["max_tokens"])


def is_light(name: str) -> bool:
    """Whether counting by this name takes little memory."""
    from research.addresses import is_encoder_address

    return is_embedded(name) or is_encoder_address(name) or name.startswith(_FILE)


class QuestionEncoder:
    """Embeds questions with the encoder that filled the index; loads it with the first one, and another if the index
    was filled anew since. A `given` encoder is kept."""

    def __init__(
        self,
        given: TextEncoder | None = None,
        named_encoders: Sequence[str] = (),
        timeout: int = 0,
        check: Callable[[str], None] | None = None,
    ) -> None:
        """`timeout`: seconds that an encoder at an address may take; 0 is the usual. `check` raises for the name of one
        that may not be asked."""
        self._given = given
        self._check = check
        self._named_encoders = named_encoders
        self._timeout = timeout
        self._loaded: tuple[tuple[str, int, str], TextEncoder] | None = None
        self._loading = threading.Lock()

    def vector(self, reader: Reader, question: Question) -> NDArray[np.float32]:
        """(dim,), unit length."""
        encoder = self.encoder(reader)
        known: NDArray[np.float32] | None = question.memo.known(("vector", encoder.name))
        if known is None:
            known = question.memo.put(("vector", encoder.name), encoder.embed_query(question.wording))
        return known

    def encoder(self, reader: Reader) -> TextEncoder:
        if self._given is not None:
            return self._given
        name = reader.chunks.encoder()
        if not name:
            raise CtxError("no document has vectors yet", hint="finish with: ctx ingest PATH")
        if self._check is not None and not is_embedded(name):
            self._check(name)
        dim, sketch = reader.chunks.dim(), reader.chunks.sketch()
        with self._loading:
            if self._loaded is None or self._loaded[0] != (name, dim, sketch):
                encoder = load_remembered(
                    name, dim=dim, sketch=sketch, named=self._named_encoders, timeout=self._timeout
                )
                self._loaded = ((name, dim, sketch), encoder)
            return self._loaded[1]
