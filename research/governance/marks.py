"""Marks of classification on pages ("Strictly confidential"): a proposal, which holds once a person accepts it.

A mark is a line of its own: at the top or the bottom of a page, or in capitals like a stamp. The word in a sentence is
none, nor is a heading in the middle of a page about classification. To look for them, the text of every page is
unpacked once: about a second for ten thousand pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.governance.access import CLASSIFICATIONS

if TYPE_CHECKING:
    from research.store.catalog.reader import Reader

_LONGEST = 80  # characters of a line
_EDGE = 3  # lines at the top and at the bottom
_MOST_PAGES = 10  # that a proposal names

# English, German, French and Spanish. The strictest first: "strictly confidential" is more than "confidential".
_WORDS = {
    "Restricted": (
        "restricted|top secret|secret|(?:strictly|highly|most) (?:private (?:and|&) )?confidential|strictly private"
        "|streng (?:vertraulich|geheim)|geheim|strictement confidentiel|estrictamente confidencial"
    ),
    "Confidential": (
        "(?:(?:company|business|client|commercial(?:ly)?|private (?:and|&)) )?confidential|commercial in confidence"
        "|(?:firmen)?vertraulich|confidentiel|confidencial"
    ),
    "Internal": (
        "(?:for )?internal(?: use)?(?: only)?|company internal|nur (?:für|zum|zur) (?:den )?internen gebrauch|intern"
        "|usage interne|(?:de )?uso interno"
    ),
}
_BEFORE = r"(?:(?:document |security |information )?(?:classification|klassifizierung)\s*[:–—-]\s*)?"
_MORE = (
    r"do not (?:copy|distribute|share|forward|circulate)|not for (?:distribution|publication|circulation|release)"
    r"|(?:and |& )?proprietary|draft|entwurf|for internal use only|internal use only|information|document|material"
    r"|all rights reserved|nicht (?:weitergeben|zur weitergabe)"
    r"|(?:page|seite|p\.)\s*\d{1,5}(?:\s*(?:of|/|von)\s*\d{1,5})?|\d{1,5}"
)
_LAST = r"(?:property of|©|\(c\)|copyright)[^\n]{0,60}"  # whose it is, in any words
_JOINT = r"[\s\-–—|·•:,/.()\[\]]"
_MARKS = {
    level: re.compile(
        rf"{_BEFORE}(?:{words})(?:{_JOINT}{{1,5}}(?:{_MORE})){{0,3}}(?:{_JOINT}{{1,5}}{_LAST}|{_JOINT}{{0,3}})", re.I
    )
    for level, words in _WORDS.items()
}
_DRESS = re.compile(r"^[\s#>*_|~`\-–—•·\[(<{=]+|[\s*_|~`\-–—•·\])>}=]+$")


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the pages of a document say of it. `mark` is the line as it stands there."""

    doc_id: str
    file_id: str
    filename: str
    classification: str
    mark: str
    pages: tuple[int, ...]


def mark_of(line: str) -> str:
    """The classification that a line by itself says; empty for any other line."""
    if len(line) > _LONGEST:
        return ""
    bare = " ".join(_DRESS.sub("", line).split())
    return next((level for level, pattern in _MARKS.items() if pattern.fullmatch(bare)), "")


def marks_on(text: str) -> Iterator[tuple[str, str]]:
    """(classification, line) of each mark on a page."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        at_edge = number < _EDGE or number >= len(lines) - _EDGE
        if (at_edge or line.isupper()) and (level := mark_of(line)):
            yield level, line


def proposals(reader: Reader) -> list[Proposal]:
    """One for each document with a mark that nobody has classified, the strictest of its marks; by name."""
    from research.store.catalog.documents import all_documents
    from research.store.catalog.labels import labels_at
    from research.store.catalog.pages import document_markdown

    found = []
    for info in all_documents(reader):
        decided = labels_at(reader, "", [f"document:{info.file_id}"])
        if any(label.name == "classification" for labels in decided.values() for label in labels):
            continue
        seen = [
            (CLASSIFICATIONS.index(level), line, page)
            for page, text in document_markdown(reader, info.doc_id)
            for level, line in marks_on(text)
        ]
        if not seen:
            continue
        strictest = max(level for level, _, _ in seen)
        lines = [(line, page) for level, line, page in seen if level == strictest]
        pages = tuple(dict.fromkeys(page for _, page in lines))[:_MOST_PAGES]
        found.append(Proposal(info.doc_id, info.file_id, info.filename, CLASSIFICATIONS[strictest], lines[0][0], pages))
    return sorted(found, key=lambda each: (each.filename, each.doc_id))
