"""What stands around the name of a part in a question: frames, kinds of documents, small words (asking_words.toml)."""

from __future__ import annotations

import tomllib
from pathlib import Path

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ASKING = frozenset[str](_WORDS["asking"].split())
SECTIONS = frozenset[str](_WORDS["sections"].split())
OLDER = frozenset[str](_WORDS["older"].split())
DOCUMENTS = frozenset[str](_WORDS["documents"].split())
KINDS_OF_KINDS = frozenset[str](_WORDS["kinds_of_kinds"].split())
SMALL = frozenset[str](_WORDS["small"].split())
UNSPACED_DOCUMENTS: list[str] = _WORDS["unspaced_documents"].split()
UNSPACED_SMALL: list[str] = _WORDS["unspaced_small"].split()
FRAMES: dict[tuple[str, ...], str] = {
    tuple(frame.split()): part for part, frames in _WORDS["frames"].items() for frame in frames
}
