"""A text as the rules read it: figures and letters of full width, spaces and dashes of all kinds made plain, and what
nobody sees (zero-width characters, soft hyphens) left out. Where something was found is told in places of the original.

PDFs are full of such characters by accident; a hostile text may hold them on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ZEROS = (0x0660, 0x06F0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50, 0x1D7CE, 0x1D7D8)
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_PLAIN = {
    **{0xFF01 + at: 0x21 + at for at in range(94)},
    **{zero + value: 0x30 + value for zero in _ZEROS for value in range(10)},
    **{ord(sign): 0x20 for sign in _SPACES},
    **{ord(sign): 0x2D for sign in _DASHES},
    **dict(zip(map(ord, "“”„‟‘’‚‛"), map(ord, "\"\"\"\"''''"), strict=True)),
}
_UNSEEN = (
    "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f"
)
_ANY_UNSEEN = re.compile(f"[{_UNSEEN}]")


@dataclass(frozen=True, slots=True)
class Folded:
    text: str
    places: Sequence[int] | None = None  # of each character in the original; None: where it stands here

    def original(self, start: int, end: int) -> tuple[int, int]:
        if self.places is None:
            return start, end
        return self.places[start], self.places[end - 1] + 1

    def __repr__(self) -> str:
        return f"Folded({len(self.text)} characters)"


def fold(text: str) -> Folded:
    if text.isascii():
        return Folded(text)
    plain = text.translate(_PLAIN)  # one character for one
    if not _ANY_UNSEEN.search(plain):
        return Folded(plain)
    places = [at for at, sign in enumerate(plain) if not _ANY_UNSEEN.match(sign)]
    return Folded("".join(plain[at] for at in places), places)
