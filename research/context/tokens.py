"""Exact token counts, as tiktoken gives them, from tables that come with ctx.

tiktoken downloads its tables and needs 0.4 s to load 200,000 entries. Both are avoided: the tables lie beside this
file (`tables`) and are looked up where they lie. A piece of text that is a token counts one; a word or two in ten are
not, and are merged here. Only a text with so much to merge that loading pays is left to tiktoken.

A table holds its tokens in buckets by their checksum: the file is mapped, and a look-up reads one bucket of one or two.

    header   magic, number of tokens, number of buckets (a power of two), each 32 bits
    starts   where each bucket begins, and where the last one ends
    buckets  a token after the other: its length (one byte), its bytes, its rank (three bytes)

All numbers are little-endian.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from research.errors import CtxError

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"

FOLDER = Path(__file__).parent / "tables"
SHIPPED = ("o200k_base.bin", "cl100k_base.bin")
MAGIC = 0x3142_5443  # "CTB1"
HEADER = struct.Struct("<III")
START = struct.Struct("<I")
RANK_BYTES = 3

_REMEMBERED = 1 << 16
_BOUNDS = struct.Struct("<II").unpack_from

_MOST_PIECES = 200_000  # whose counts are remembered
_MOST_TEXTS = 200  # that are remembered: pages of the last twenty questions
_SHORT_TEXT, _LONG_TEXT = 500, 20_000  # characters of a text that is counted anew each time
_OPEN_CHARACTERS = 8  # at the end of a growing text, more than any piece looks ahead
# Merging a piece costs about the square of its length; beyond this much of it tiktoken is quicker, loading included.
_MOST_MERGING = 5_000_000

_O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s"
)
_PATTERNS = {"o200k_base": _O200K, "cl100k_base": _CL100K}


class TokenCounter:
    """Counts tokens of one encoding. `count` is exact: the same number as tiktoken's `encode_ordinary`."""

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        if encoding not in _PATTERNS:
            known = ", ".join(_PATTERNS)
            raise CtxError(f"unknown token encoding {encoding!r}", hint=f"choose one of: {known}")
        self.encoding = encoding
        self._counts: dict[str, int] = {}  # a piece's tokens; words repeat, so this saves most of the work
        self._settled: dict[str, tuple[int, str]] = {}  # of pages, which come again with the next questions
        self._merging = 0  # done so far, in squared bytes

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.count_pieces(self.pieces(text))

    def count_pieces(self, pieces: Sequence[str]) -> int:
        """Tokens of pieces that `pieces` gave."""
        counts = self._counts
        try:
            return sum(map(counts.__getitem__, pieces))
        except KeyError:
            if len(counts) > _MOST_PIECES:
                # Another one, because other threads may be adding up what is in this.
                counts = self._counts = {}
            self._count_new({piece for piece in pieces if piece not in counts}, counts)
        return sum(map(counts.__getitem__, pieces))

    def settled(self, text: str) -> tuple[int, str]:
        """The tokens of a text but for its end, which may become others by what follows, and that end."""
        if (known := self._settled.get(text)) is not None:
            return known
        pieces = self.pieces(text)
        stable, length, readable = len(pieces), 0, False
        while stable > 0 and (length < _OPEN_CHARACTERS or not readable):
            stable -= 1
            length += len(pieces[stable])
            readable = readable or not pieces[stable].isspace()
        found = self.count_pieces(pieces[:stable]), "".join(pieces[stable:])
        if _SHORT_TEXT < len(text) < _LONG_TEXT:
            if len(self._settled) >= _MOST_TEXTS:
                self._settled = {}
            self._settled[text] = found
        return found

    def pieces(self, text: str) -> list[str]:
        """The text as the encoding cuts it up before merging."""
        if not text.isascii():  # halves of a character are read as tiktoken reads them
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        found: list[str] = _pattern(self.encoding).findall(text)
        return found

    def _count_new(self, pieces: set[str], counts: dict[str, int]) -> None:
        table = open_table(self.encoding)
        unknown = {}
        for piece in pieces:
            raw = piece.encode()
            if table.rank(raw) is not None:
                counts[piece] = 1
            else:
                unknown[piece] = raw
        self._merging += sum(len(raw) ** 2 for raw in unknown.values())
        if self._merging > _MOST_MERGING:
            whole = _tiktoken_encoding(self.encoding)
            counts.update((piece, len(whole.encode_ordinary(piece))) for piece in unknown)
        else:
            for piece, raw in unknown.items():
                counts[piece] = _bpe_count(raw, table.rank)


class RunningCount:
    """The count of a text that grows, without counting its beginning again.

    A piece depends on what follows it only as far as the blanks after it, or the three characters of a contraction
    ('re), reach. So all but the last few characters, and the blanks before them, are settled whatever is added.
    """

    def __init__(self, counter: TokenCounter, settled: int = 0, open_end: str = "") -> None:
        self._counter = counter
        self._settled = settled
        self._open_end = open_end

    def plus(self, text: str) -> RunningCount:
        """With this added; the count itself stays as it is."""
        settled, open_end = self._counter.settled(self._open_end + text)
        return RunningCount(self._counter, self._settled + settled, open_end)

    @property
    def tokens(self) -> int:
        return self._settled + self._counter.count(self._open_end)


def _bpe_count(piece: bytes, rank_of: Callable[[bytes], int | None]) -> int:
    """Tokens of a piece by byte-pair merging: the neighbours of the lowest rank are joined until none are a token."""
    parts = [piece[at : at + 1] for at in range(len(piece))]
    ranks: list[int | None] = []
    for a, b in pairwise(parts):
        ranks.append(rank_of(a + b))
    while (lowest := min((rank for rank in ranks if rank is not None), default=None)) is not None:
        at = ranks.index(lowest)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del ranks[at]
        if at > 0:
            ranks[at - 1] = rank_of(parts[at - 1] + parts[at])
        if at < len(ranks):
            ranks[at] = rank_of(parts[at] + parts[at + 1])
    return len(parts)


@lru_cache(maxsize=2)
def _tiktoken_encoding(name: str) -> Encoding:
    import tiktoken

    # It is given one piece at a time, and a pattern that takes all of it is quicker to compile.
    ranks = dict(open_table(name).items())
    return tiktoken.Encoding(name, pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=2)
def _pattern(name: str) -> Any:
    import regex  # comes with tiktoken, and knows the classes its patterns use

    return regex.compile(_PATTERNS[name])


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
        at = 0
        while at < len(bucket):
            end = at + 1 + bucket[at]
            if bucket[at + 1 : end] == token:
                return int.from_bytes(bucket[end : end + RANK_BYTES], "little")
            at = end + RANK_BYTES
        return None

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Every token with its rank, in no order."""
        at = HEADER.size + START.size * (self._buckets + 1)
        while at < len(self._bytes):
            end = at + 1 + self._bytes[at]
            yield self._bytes[at + 1 : end], int.from_bytes(self._bytes[end : end + RANK_BYTES], "little")
            at = end + RANK_BYTES


@lru_cache(maxsize=2)
def open_table(name: str) -> TokenTable:
    """The table of an encoding."""
    try:
        return TokenTable(FOLDER / f"{name}.bin")
    except (OSError, ValueError, struct.error) as error:
        raise CtxError(
            f"the token table of {name} cannot be read: {error}", hint="pip install --force-reinstall ctx-research"
        ) from error
