"""One source file into its pieces. Runs in a reading process: a file that hangs or crashes the parser costs itself."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.code.decoding import decode, unwanted
from ingest.code.definitions import Parsed, parse, recover
from ingest.code.languages import LANGUAGES, language_of
from ingest.code.masking import mask
from ingest.code.units import Unit, text_units, units_of
from research.errors import DocumentError

LARGEST = 2_000_000  # bytes of a file; larger ones are data, or generated
_LONG_LINES = frozenset({"html", "css", "sql", "yaml", "toml", "ini"})


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What became of a file: its pieces, or why it was passed over."""

    sha256: str
    language: str
    units: list[Unit]
    passed_over: str = ""
    has_errors: bool = False
    secrets: int = 0
    cut: bool = False

    def message(self) -> dict[str, Any]:
        return {
            "event": "code",
            "sha256": self.sha256,
            "language": self.language,
            "units": [unit.to_dict() for unit in self.units],
            "passed_over": self.passed_over,
            "has_errors": self.has_errors,
            "secrets": self.secrets,
            "cut": self.cut,
        }


def read_code(path: Path) -> ReadFile:
    """Raises `DocumentError` if it cannot be read."""
    data = _bytes_of(path)
    digest, language = hashlib.sha256(data).hexdigest(), language_of(path.name)
    text = decode(data)
    reason = unwanted(data, text, has_long_lines=language in _LONG_LINES)
    if reason:
        return ReadFile(digest, language, [], reason)
    module = (path.parent.name if path.stem in ("__init__", "index", "mod") else "") or path.stem
    if language not in LANGUAGES:
        masked, secrets = mask(text)
        return ReadFile(digest, language, text_units(masked, path.name), secrets=secrets)
    source = text.encode()
    parsed = _parsed(source, language)
    masked, secrets = mask(text, _characters(source, parsed))
    if secrets:
        source = masked.encode()
        parsed = _parsed(source, language)
    units = units_of(source, parsed, language, module)
    return ReadFile(digest, language, units, has_errors=parsed.has_errors, secrets=secrets, cut=parsed.cut)


def _parsed(source: bytes, language: str) -> Parsed:
    parsed = parse(source, language)
    return recover(source, parsed, language) if parsed.has_errors else parsed


def _characters(source: bytes, parsed: Parsed) -> list[tuple[int, int]]:
    """Where strings and comments are, counted in characters and not in bytes."""
    if source.isascii():
        return list(parsed.quoted)
    found: list[tuple[int, int]] = []
    at, characters = 0, 0
    for start, end in parsed.quoted:
        if start < at:  # inside the one before
            continue
        characters += len(source[at:start].decode("utf-8", "replace"))
        length = len(source[start:end].decode("utf-8", "replace"))
        found.append((characters, characters + length))
        at, characters = end, characters + length
    return found


def _bytes_of(path: Path) -> bytes:
    """All of it, if it is still a file and not too large. A pipe put in its place must not hold us up."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DocumentError("it is no longer a file", code="unreadable")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DocumentError("it has grown beyond what is read of a source file", code="too_large")
    return data
