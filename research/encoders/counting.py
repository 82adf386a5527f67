"""Counting an encoder's tokens in another process, without loading the encoder there.

Reading processes cut chunks by tokens and need nothing else of an encoder. The embedded one counts without its model;
for one at an address, whose tokenizer nobody knows, tokens are estimated; for another the tokenizer that its library
made is handed over in a file. Loading the library itself takes seconds and gigabytes of address space a process, which
a page's time limit would count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.addresses import is_encoder_address
from research.encoders.base import TokenCounter
from research.encoders.registry import is_embedded, load_text_encoder

_FILE = "file:"


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
    return is_embedded(name) or is_encoder_address(name) or name.startswith(_FILE)
