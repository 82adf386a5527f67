"""What a rule found in a text: where, and of which kind. Never the text itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

# Of two that overlap, the first of these names the whole.
SECRET_KINDS = ("private_key", "key", "password")
PATTERN_KINDS = ("iban", "card", "national_id", "email", "phone")
OPTIONAL_KINDS = ("ip", "mac")
MODEL_KINDS = ("address", "person", "location")
KINDS = (*SECRET_KINDS, *PATTERN_KINDS, *OPTIONAL_KINDS, *MODEL_KINDS)

_RANK = {kind: rank for rank, kind in enumerate(KINDS)}


class Finding(NamedTuple):
    start: int
    end: int
    kind: str


Finder = Callable[[str], Iterator[Finding]]


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in order, none of which overlap: those that do become one, so that nothing of either is left."""
    joined: list[Finding] = []
    for each in sorted(findings):
        if joined and each.start < joined[-1].end:
            last = joined[-1]
            kind = min(last.kind, each.kind, key=_RANK.__getitem__)
            joined[-1] = Finding(last.start, max(last.end, each.end), kind)
        else:
            joined.append(each)
    return joined
