"""Telling whether a model's files are still those that filled an index."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

DIGITS = 12
# Pieces of a weights file that enter its fingerprint: enough to notice another training, quick on gigabytes.
SAMPLES = 64
SAMPLE = 4096


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def add_weights(digest: Digest, path: Path) -> None:
    """A weights file by its name, its size and samples of its content."""
    size = path.stat().st_size
    digest.update(f"{path.name}:{size}".encode())
    with path.open("rb") as file:
        for number in range(SAMPLES):
            file.seek(size * number // SAMPLES)
            digest.update(file.read(SAMPLE))


def add_file(digest: Digest, name: str, path: Path) -> None:
    """A small file as a whole."""
    content = path.read_bytes()
    digest.update(f"{name}:{len(content)}".encode())
    digest.update(content)
