"""Exact token counts, as tiktoken gives them, from tables that come with ctx.

tiktoken downloads its tables and needs 0.4 s to load 200,000 entries. Both are avoided: the tables lie beside this
file (`tables`) and are looked up where they lie. A piece of text that is a token counts one; a word or two in ten are
not, and are merged here. Only a text with so much to merge that loading pays is left to tiktoken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from research.context.tables.table import open_table
from research.errors import CtxError

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"

_MOST_PIECES = 200_000  # whose counts are remembered
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
        self._merging = 0  # done so far, in squared bytes

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.count_pieces(self.pieces(text))

    def count_pieces(self, pieces: Sequence[str]) -> int:
        """Tokens of pieces that `pieces` gave."""
        fresh = {piece for piece in pieces if piece not in self._counts}
        if fresh:
            if len(self._counts) > _MOST_PIECES:
                self._counts.clear()
                fresh = set(pieces)
            self._learn(fresh)
        return sum([self._counts[piece] for piece in pieces])

    def pieces(self, text: str) -> list[str]:
        """The text as the encoding cuts it up before merging."""
        if not text.isascii():  # halves of a character are read as tiktoken reads them
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        found: list[str] = _pattern(self.encoding).findall(text)
        return found

    def _learn(self, pieces: set[str]) -> None:
        table = open_table(self.encoding)
        unknown = {}
        for piece in pieces:
            raw = piece.encode()
            if table.rank(raw) is not None:
                self._counts[piece] = 1
            else:
                unknown[piece] = raw
        self._merging += sum(len(raw) ** 2 for raw in unknown.values())
        if self._merging > _MOST_MERGING:
            whole = _whole(self.encoding)
            self._counts.update((piece, len(whole.encode_ordinary(piece))) for piece in unknown)
        else:
            self._counts.update((piece, _merged(raw, table.rank)) for piece, raw in unknown.items())


class Tally:
    """The count of a text that grows, without counting its beginning again.

    A piece depends on what follows it only as far as the blanks after it, or the three characters of a contraction
    ('re), reach. So all but the last few characters, and the blanks before them, are settled whatever is added.
    """

    def __init__(self, counter: TokenCounter, settled: int = 0, open_end: str = "") -> None:
        self._counter = counter
        self._settled = settled
        self._open_end = open_end

    def plus(self, text: str) -> Tally:
        """With this added; the tally itself stays as it is."""
        pieces = self._counter.pieces(self._open_end + text)
        stable, length, readable = len(pieces), 0, False
        while stable > 0 and (length < _OPEN_CHARACTERS or not readable):
            stable -= 1
            length += len(pieces[stable])
            readable = readable or not pieces[stable].isspace()
        settled = self._settled + self._counter.count_pieces(pieces[:stable])
        return Tally(self._counter, settled, "".join(pieces[stable:]))

    @property
    def tokens(self) -> int:
        return self._settled + self._counter.count(self._open_end)


def _merged(piece: bytes, rank_of: Callable[[bytes], int | None]) -> int:
    """Tokens of a piece by byte-pair merging: the neighbours of the lowest rank are joined until none are a token."""
    parts = [piece[at : at + 1] for at in range(len(piece))]
    ranks = [rank_of(a + b) for a, b in pairwise(parts)]
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
def _whole(name: str) -> Encoding:
    import tiktoken

    # It is given one piece at a time, and a pattern that takes all of it is quicker to compile.
    ranks = dict(open_table(name).items())
    return tiktoken.Encoding(name, pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=2)
def _pattern(name: str) -> Any:
    import regex  # comes with tiktoken, and knows the classes its patterns use

    return regex.compile(_PATTERNS[name])
