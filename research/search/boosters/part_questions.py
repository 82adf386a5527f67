"""Reads a question for a part of a document: which parts are asked for, and which words are left to name the document.

"Summarise the RAPTOR paper" asks for a summary and leaves `raptor`. A question that leaves words which name no document
("What conclusion did the inspector reach about the bridge?") is about something else; whoever uses this must see to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from research.search.boosters.asking_words import (
    ASKING,
    DOCUMENTS,
    FRAMES,
    KINDS_OF_KINDS,
    SECTIONS,
    SMALL,
    UNSPACED_DOCUMENTS,
    UNSPACED_SMALL,
)
from research.search.boosters.part_words import PARTS
from research.store.fulltext.analyzer import STOP_WORDS, normalize

# What is longer is a pasted text.
_MOST_LETTERS = 400
_MOST_PHRASE = 4  # words
_TOKEN = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)*|[ivx]{1,5}|[a-h]")
_ABOUT = STOP_WORDS | SMALL


@dataclass(frozen=True, slots=True)
class AskedPart:
    kind: str  # a key of PARTS, or "section"
    number: str = ""  # of a section, or of an appendix: "3.2", "b"
    said: str = ""  # how it was asked for; a heading that reads so is the one that is meant
    section: bool = False  # it was called a section or chapter


NAMED_SECTION = AskedPart("named section")
"""A section or chapter that is called by its heading's words."""


@dataclass(frozen=True, slots=True)
class PartQuestion:
    parts: tuple[AskedPart, ...]
    rest: tuple[str, ...]  # the words that are left, and must name the document
    document: tuple[str, ...]  # the kinds of document it speaks of: "paper", "handbook"


def part_question(text: str) -> PartQuestion | None:
    """What a question for parts of a document asks for; None if it asks for none."""
    if len(text) > _MOST_LETTERS:
        return None
    folded, parts, document = _unspaced(normalize(text))
    tokens, framed = _unframed(_TOKEN.findall(folded))
    rest: list[str] = []
    sections: list[AskedPart] = []
    place = 0
    while place < len(tokens):
        kind, length = _phrase_at(tokens, place)
        word = tokens[place]
        following = tokens[place + length] if place + length < len(tokens) else ""
        if kind:
            numbered = kind == "appendix" and _NUMBER.fullmatch(following) is not None
            said = " ".join(tokens[place : place + length])
            parts.append(AskedPart(kind, following if numbered else "", said))
            length += numbered
        elif word in SECTIONS and _NUMBER.fullmatch(following):
            parts.append(AskedPart("section", following))
            length += 1
        elif word in DOCUMENTS or (word in KINDS_OF_KINDS and following in DOCUMENTS):
            document.append(word)
        elif word in SECTIONS:
            sections.append(NAMED_SECTION)
        elif word not in _ABOUT:
            rest.append(word)
        place += length
    parts += framed
    if not (document or sections):  # everyday words: "the results of Boeing" are figures, those of a paper a section
        parts = [part for part in parts if not _is_everyday(part)]
    if sections:
        parts = [replace(part, section=True) for part in parts]
    parts = _in_order(parts) or sections[:1]
    if not parts:
        return None
    spoken = {word for part in parts if part.kind in PARTS for word in PARTS[part.kind].also.split()}
    rest = [word for word in rest if word not in spoken]
    return PartQuestion(tuple(dict.fromkeys(parts)), tuple(dict.fromkeys(rest)), tuple(document))


def name_question(text: str) -> PartQuestion:
    """A question that asks for no part, as if it were a document's name; without words if it asks for something."""
    tokens = _TOKEN.findall(normalize(text[:_MOST_LETTERS]))
    if not ASKING.isdisjoint(tokens):
        return PartQuestion((), (), ())
    words = [word for word in tokens if word not in _ABOUT]
    rest = tuple(word for word in words if word not in DOCUMENTS)
    return PartQuestion((), rest, tuple(word for word in words if word in DOCUMENTS))


def _is_everyday(part: AskedPart) -> bool:
    return part.kind in PARTS and PARTS[part.kind].everyday


def _in_order(parts: list[AskedPart]) -> list[AskedPart]:
    """ "What do the authors name as limitations?" asks for the limitations, not for the authors."""
    return sorted(parts, key=lambda part: part.kind == "authors") if len(parts) > 1 else parts


def _unspaced(folded: str) -> tuple[str, list[AskedPart], list[str]]:
    """The text without what it asks for in scripts without spaces, that, and the kinds of document."""
    if folded.isascii():
        return folded, [], []
    parts, document = [], []
    for phrase, kind in _unspaced_phrases():
        if phrase in folded:
            folded = folded.replace(phrase, " ")
            parts.append(AskedPart(kind, said=phrase))
    for word in UNSPACED_DOCUMENTS:
        if word in folded:
            folded = folded.replace(word, " ")
            document.append(word)
    for word in UNSPACED_SMALL if parts else ():
        folded = folded.replace(word, " ")
    return folded, parts, document


def _unframed(tokens: list[str]) -> tuple[list[str], list[AskedPart]]:
    if len(tokens) > 1 and (kind := FRAMES.get((tokens[0], tokens[-1]))):
        return tokens[1:-1], [AskedPart(kind)]
    return tokens, []


def _phrase_at(tokens: list[str], place: int) -> tuple[str, int]:
    """The part that is named here, and by how many words; otherwise none, and one word to go on."""
    for length in range(min(_MOST_PHRASE, len(tokens) - place), 0, -1):
        kind = _phrases().get(" ".join(tokens[place : place + length]))
        if kind:
            return kind, length
    return "", 1


def names(phrases: str) -> list[str]:
    return [phrase.strip() for phrase in phrases.split(",") if phrase.strip()]


@lru_cache(maxsize=1)
def _phrases() -> dict[str, str]:
    """What is asked for → kind. "Abstract" asks for one, though it may also sum up; so what is asked for alone wins."""
    found: dict[str, str] = {}
    for phrases, kind in _asked_for():
        for phrase in phrases.split(","):
            if phrase.isascii():
                found[" ".join(_TOKEN.findall(phrase))] = kind
    return found


@lru_cache(maxsize=1)
def _unspaced_phrases() -> list[tuple[str, str]]:
    found = {
        phrase.strip(): kind for phrases, kind in _asked_for() for phrase in phrases.split(",") if not phrase.isascii()
    }
    return sorted(found.items(), key=lambda entry: -len(entry[0]))


def _asked_for() -> list[tuple[str, str]]:
    """Names of parts, separated by commas, and their kind; the later ones win."""
    first = [(part.headings[0], kind) for kind, part in PARTS.items() if part.headings]
    return first + [(part.asked, kind) for kind, part in PARTS.items()]
