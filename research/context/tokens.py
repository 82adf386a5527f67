"""Exact token counts, as tiktoken gives them, from tables that come with ctx.

tiktoken downloads its tables and needs 0.4 s to load 200,000 entries. Both are avoided: the tables lie beside this
file (`tables`). A piece of text that is a token counts one. Byte-pair merging inside any other piece only ever looks
up substrings of that piece, so tiktoken with a table of all substrings that are tokens gives the same count as with
the whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from research.context.tables.table import open_table
from research.errors import CtxError

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"

# Beyond this many characters of pieces that are no tokens, the whole table serves a process better.
_WHOLE_TABLE_AFTER = 100_000
_OPEN_CHARACTERS = 8  # at the end of a growing text, more than any piece looks ahead
_MOST_PIECES = 200_000  # whose counts are remembered
_LONG_PIECE = 500
_LONGEST_TOKEN = 128  # bytes, in either table

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
        self._merged = 0  # characters of pieces that were no tokens

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.count_pieces(self.pieces(text))

    def prepare(self, text: str) -> None:
        """Learn at once what counting parts of this text will need."""
        self.count(text)

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
        found: list[str] = _pattern(self.encoding).findall(text)
        return found

    def _learn(self, pieces: set[str]) -> None:
        table = open_table(self.encoding)
        self._counts.update((piece, 1) for piece in pieces if table.rank(piece.encode()) is not None)
        others = [piece for piece in pieces if piece not in self._counts]
        if not others:
            return
        self._merged += sum(map(len, others))
        # Substrings of a long run without spaces are too many to look up one by one.
        whole = self._merged > _WHOLE_TABLE_AFTER or any(len(piece) > _LONG_PIECE for piece in others)
        encoding = _whole(self.encoding) if whole else _partial(self.encoding, others)
        for piece in others:
            self._counts[piece] = len(encoding.encode_ordinary(piece))


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


@lru_cache(maxsize=2)
def _whole(name: str) -> Encoding:
    return _encoding(name, dict(open_table(name).items()))


def _partial(name: str, pieces: Sequence[str]) -> Encoding:
    """An encoding that knows every token that can occur in these pieces, and every single byte."""
    wanted: set[bytes] = set()
    for piece in pieces:
        raw = piece.encode()
        wanted.update(
            raw[start:end]
            for start in range(len(raw))
            for end in range(start + 2, min(len(raw), start + _LONGEST_TOKEN) + 1)
        )
    rank_of = open_table(name).rank
    return _encoding(name, _bytes(name) | {token: rank for token in wanted if (rank := rank_of(token)) is not None})


@lru_cache(maxsize=2)
def _bytes(name: str) -> dict[bytes, int]:
    """The tokens of one byte, which every table must have."""
    singles = [bytes([value]) for value in range(256)]
    return {token: rank for token in singles if (rank := open_table(name).rank(token)) is not None}


def _encoding(name: str, ranks: dict[bytes, int]) -> Encoding:
    import tiktoken

    # It is given one piece at a time, and a pattern that takes all of it is quicker to compile.
    return tiktoken.Encoding(name, pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=2)
def _pattern(name: str) -> Any:
    import regex  # comes with tiktoken, and knows the classes its patterns use

    return regex.compile(_PATTERNS[name])
