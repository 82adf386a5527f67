"""A written answer as sentences, each with its citations: what a model wrote is markdown, in any style of citing.

The units of a page (`research.units`) are those of an answer too. A citation after the full stop belongs to the
sentence before it, one at the beginning of a line to what follows. Put together, the sentences are the answer; only
blanks between them are left out.

Citations are `[1]`, `[1][2]`, `[1, 2]`, `[1-3]`, `[Document 2]`, `[^1]`, wide brackets, and `(1)` in an answer that
uses no other. Every pattern goes over a text once, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from research.units import split

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


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` is as written. `claim` is what it says: without citations, list marks and emphasis."""

    text: str
    claim: str
    kind: str  # as of a unit: "sentence", "item", "row", "line" or "heading"; and "code"
    citations: tuple[Citation, ...]  # their places are those in `text`

    @property
    def begins_with_citation(self) -> bool:
        return bool(self.citations) and not any(map(str.isalnum, ENTRY.sub("", self.text[: self.citations[0].start])))

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(number for citation in self.citations for number in citation.numbers)


_FENCED = re.compile(r"^ {0,3}(?:```|~~~).*?(?:^ {0,3}(?:```|~~~)[^\n]*|\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"[ \t]*(?:[-*+•◦▪‣·–][ \t]+|\(?(?:\d{1,2}|[A-Za-z]|[ivx]{1,5})[.)][ \t]+)")
_ENDS = ".!?…。！？"
_MARKS = re.compile(
    r"^\s*(?:>\s*)*(?:#{1,6}\s+|[-*+•◦▪‣·–]\s+|\(?\d{1,2}[.)]\s+)?|(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|~~|`+|</?\w{1,10}>"
)
_SOURCE_LINE = re.compile(r"\W*(?:sources?|quellen?|fuentes?|fontes?|refs?|references?)?\W*", re.IGNORECASE)


def sentences_of(answer: str) -> list[Sentence]:
    """In the order of the answer; every character that is not a blank is in one of them."""
    citations = citations_in(answer)
    masked = _masked(answer, citations)
    starts = _starts(answer, _spans(masked), citations)
    if not starts:
        return []
    ends = [start for start, _ in starts[1:]] + [len(answer)]
    found: list[Sentence] = []
    at = 0
    for (start, kind), end in zip(starts, ends, strict=True):
        own: list[Citation] = []
        while at < len(citations) and citations[at].start < end:
            own.append(citations[at])
            at += 1
        found += _sentence(answer, start, end, kind, own)
    return found


def _masked(answer: str, citations: list[Citation]) -> str:
    """Blanks where citations stand, so that a sentence ends before them; letters where one is the subject."""
    parts, end = [], 0
    for citation in citations:
        size = citation.end - citation.start
        following = answer[citation.end : citation.end + 2]
        before = answer[max(0, citation.start - 2) : citation.start].rstrip(" ")[-1:]
        # "[1] says so": the sentence begins with it.
        is_subject = following[:1] == " " and following[1:].islower() and before in {"", "\n", *_ENDS}
        parts += [answer[end : citation.start], ("X" if is_subject else " ") * size]
        end = citation.end
    return "".join(parts) + answer[end:]


def _spans(masked: str) -> list[tuple[int, int, str]]:
    """The units of the answer; a listing is one, and an entry of a list is its sentences."""
    found: list[tuple[int, int, str]] = []
    fences = [match.span() for match in _FENCED.finditer(masked)]
    at = 0
    for unit in split(masked):
        while at < len(fences) and fences[at][1] <= unit.start:
            at += 1
        fenced = at < len(fences) and fences[at][0] <= unit.start
        if fenced:
            if not (found and found[-1][:2] == fences[at]):
                found.append((*fences[at], "code"))
        elif _SOURCE_LINE.fullmatch(masked, unit.start, unit.end) and "  " in masked[unit.start - 1 : unit.end + 3]:
            continue  # "Source: [1]" belongs to what stands above it
        elif unit.kind == "item":
            found += _entries(masked, unit.start, unit.end)
        else:
            found.append((unit.start, unit.end, unit.kind))
    return found


def _entries(masked: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    mark = ENTRY.match(masked, start, end)
    text = mark.end() if mark else start
    for number, unit in enumerate(split(masked[text:end])):
        yield (text + unit.start if number else start), text + unit.end, "item"


def _starts(answer: str, spans: list[tuple[int, int, str]], citations: list[Citation]) -> list[tuple[int, str]]:
    """Where each sentence begins: at its unit, or at the marks and citations before it on its own line."""
    starts: list[tuple[int, str]] = []
    last = 0
    for start, end, kind in spans:
        gap = answer[last:start]
        line = gap.rfind("\n") + 1
        begins = 0 if not starts else (last + line if line else start)
        if starts and begins <= starts[-1][0]:
            begins = start
        starts.append((begins, kind))
        last = end
    if not starts and citations:
        starts.append((0, "line"))  # nothing but citations
    elif not starts and answer.strip():
        starts.append((0, "line"))
    return starts


def _sentence(answer: str, start: int, end: int, kind: str, citations: list[Citation]) -> Iterator[Sentence]:
    raw = answer[start:end]
    text = raw.strip()
    if not text:
        return
    first = start + raw.index(text[0])
    own = tuple(Citation(c.start - first, c.end - first, c.numbers) for c in citations)
    yield Sentence(text, _claim(text, own, kind), kind, own)


def _claim(text: str, citations: tuple[Citation, ...], kind: str) -> str:
    parts, end = [], 0
    for citation in citations:
        parts.append(text[end : citation.start])
        end = citation.end
    parts.append(text[end:])
    said = "".join(parts)
    if kind == "code":
        return said
    lines = _MARKS.sub("", said).split("\n")
    kept = [line for line in lines if not _SOURCE_LINE.fullmatch(line)]
    return " ".join(" ".join(kept or lines).split())
