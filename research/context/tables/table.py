"""Looking up tokens in a table on disk.

A dictionary of 200,000 tokens takes 0.1 s to load, for a process that looks up a few thousand. Here they lie in
buckets by their checksum: the file is mapped, and a look-up reads one bucket of one or two tokens.

    header   magic, number of tokens, number of buckets (a power of two), each 32 bits
    starts   where each bucket begins, and where the last one ends
    buckets  a token after the other: its length (one byte), its bytes, its rank (three bytes)

All numbers are little-endian.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from research.errors import CtxError

FOLDER = Path(__file__).parent
SHIPPED = ("o200k_base.bin", "cl100k_base.bin")
MAGIC = 0x3142_5443  # "CTB1"
HEADER = struct.Struct("<III")
START = struct.Struct("<I")
RANK_BYTES = 3

_REMEMBERED = 1 << 16
_BOUNDS = struct.Struct("<II").unpack_from


class TokenTable:
    """token → rank, read where it lies."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        magic, self.count, self._buckets = HEADER.unpack_from(self._bytes)
        if magic != MAGIC:
            raise ValueError(f"{path.name} is no token table")
        self.rank = lru_cache(_REMEMBERED)(self._rank)  # merging asks for the same short ones again and again

    def _rank(self, token: bytes) -> int | None:
        """The token's rank; none if the bytes are no token."""
        start, end = _BOUNDS(self._bytes, HEADER.size + START.size * (crc32(token) & (self._buckets - 1)))
        if token not in (bucket := self._bytes[start:end]):  # most are not, and this is the quick way to see it
            return None
        return dict(_entries(bucket)).get(token)

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Every token with its rank, in no order."""
        return _entries(self._bytes[HEADER.size + START.size * (self._buckets + 1) :])


@lru_cache(maxsize=2)
def open_table(name: str) -> TokenTable:
    """The table of an encoding."""
    try:
        return TokenTable(FOLDER / f"{name}.bin")
    except (OSError, ValueError, struct.error) as error:
        raise CtxError(
            f"the token table of {name} cannot be read: {error}", hint="pip install --force-reinstall ctx-research"
        ) from error


def _entries(packed: bytes) -> Iterator[tuple[bytes, int]]:
    at = 0
    while at < len(packed):
        end = at + 1 + packed[at]
        yield packed[at + 1 : end], int.from_bytes(packed[end : end + RANK_BYTES], "little")
        at = end + RANK_BYTES
