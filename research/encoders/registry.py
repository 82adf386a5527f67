"""Encoder names and what they load."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from research.encoders.base import TextEncoder
from research.encoders.minilm import MiniLMEncoder
from research.errors import EncoderUnavailable

DEFAULT = MiniLMEncoder.name
ALIASES = ("", "default", "minilm", "all-MiniLM-L6-v2")
"""Short names of the embedded encoder. "sentence-transformers/all-MiniLM-L6-v2" is the fp32 one from a hub."""


def is_embedded(name: str) -> bool:
    return name == DEFAULT or name in ALIASES


def load_text_encoder(name: str = DEFAULT, *, threads: int | None = None, timeout: int = 0) -> TextEncoder:
    """The encoder of a name: the embedded one, a model by its address, or a sentence-transformers model by its hub
    name, its folder's full path or the name an index remembers. That must be on this machine: nothing is fetched.

    `threads` is how many cores embedding may use; None takes all this process may run on. `timeout`: how many seconds
    an address may take for an answer; 0 is the usual.
    """
    if is_embedded(name):
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
        return MiniLMEncoder()
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

    return find_remembered(name).name


def identify_text_encoder(wanted: str, *, fetching: Callable[[str], None] = lambda _: None) -> str:
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
