"""The citations that a model writes: `[1]`, `[1][2]`, `[1, 2]`, `[1-3]`, `[Document 2]`, `[^1]`, wide brackets, and
`(1)` in an answer that uses no other. Every pattern goes over a text once, whatever the text is."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MOST_OF_A_RANGE = 50  # [1-1000000000] names its two ends


@dataclass(frozen=True, slots=True)
class Citation:
    """`text[start:end]` is it with its brackets. The numbers are as written: nobody has looked whether they exist."""

    start: int
    end: int
    numbers: tuple[int, ...]


_NUMBER = r"[-−]?\d{1,1000}+"
_TO = r"\s{0,3}(?:-|–|—|−|‐|\.\.|to|bis)\s{0,3}"
_ENTRY = rf"\^?{_NUMBER}(?:{_TO}\^?\d{{1,1000}}+)?"
_AND = r"\s{0,3}(?:[,;/&、，]|and|und)\s{0,3}"
# What may stand before the numbers and after them; a name after a colon makes it a header, which nobody may write.
_LEAD = r"(?:(?:documents?|docs?|sources?|refs?|references?|passages?|dokumente?|quellen?|fuentes?|fontes?)\.?\s{0,3})?"
_WITH_LEAD = rf"{_AND}{_LEAD}{_ENTRY}"
_PLACE = r"(?:\s{0,3}(?:[,:†]\s{0,3})(?:pages?|pp?|source|seiten?|s|l)\b[^\[\]\n]{0,40})?"
_LINK = r"(?:\((?:https?:|file:|#)[^()\s]{0,300}\))?"
_BRACKETED = re.compile(
    rf"[\[【［]\s{{0,3}}{_LEAD}(?P<list>{_ENTRY}(?:{_WITH_LEAD})*+){_PLACE}\s{{0,3}}[\]】］]{_LINK}", re.IGNORECASE
)
_ROUND = re.compile(r"(?<=\S)[ \t]?\((?P<list>\d{1,2}(?:\s?[,;]\s?\d{1,2}){0,9})\)(?=\s*(?:[.!?。！？;]|\(|\n|$))")
_ONE = re.compile(rf"(?P<first>{_NUMBER})(?:{_TO}\^?(?P<last>\d+))?", re.IGNORECASE)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)


def citations_in(text: str) -> list[Citation]:
    """In the order of the text. What stands in code is an index of an array."""
    code = [match.span() for match in _CODE.finditer(text)] if "`" in text else []
    found = [_citation(match) for match in _outside(_BRACKETED, text, code)]
    return found or [_citation(match) for match in _outside(_ROUND, text, code)]


def _outside(pattern: re.Pattern[str], text: str, code: list[tuple[int, int]]) -> list[re.Match[str]]:
    found, spans = [], iter(code)
    span = next(spans, None)
    for match in pattern.finditer(text):
        while span is not None and span[1] <= match.start():
            span = next(spans, None)
        if span is None or match.end() <= span[0]:
            found.append(match)
    return found


def _citation(match: re.Match[str]) -> Citation:
    numbers: list[int] = []
    for entry in _ONE.finditer(match["list"]):
        first = int(entry["first"].replace("−", "-"))
        last = int(entry["last"]) if entry["last"] else first
        numbers += range(first, last + 1) if 0 <= last - first <= _MOST_OF_A_RANGE else [first, last]
    return Citation(match.start(), match.end(), tuple(numbers))
