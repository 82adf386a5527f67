"""What every text encoder offers. Implementations: one file or folder each, named in registry.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
