"""Encoder names and what they load."""

from __future__ import annotations

from research.encoders.base import TextEncoder
from research.encoders.minilm.encoder import MiniLMEncoder

DEFAULT = MiniLMEncoder.name
ALIASES = ("", "default", "minilm", "all-MiniLM-L6-v2")
"""Short names of the embedded encoder. "sentence-transformers/all-MiniLM-L6-v2" is the fp32 one from a hub."""


def load_text_encoder(name: str = DEFAULT, *, threads: int | None = None) -> TextEncoder:
    """The encoder an index or a user names: the embedded one, or any sentence-transformers name or folder.

    `threads` is how many cores embedding may use; None takes all this process may run on.
    """
    if name == DEFAULT or name in ALIASES:
        return MiniLMEncoder(threads=threads)
    from research.encoders.sentence_transformers import SentenceTransformersEncoder

    return SentenceTransformersEncoder(name, threads=threads)
