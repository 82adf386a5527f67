"""A question for a part of a document (its introduction, its summary, its balance sheet) is answered by that part."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.context import section_path
from research.models import FoundPart, Item, Passage, Question
from research.search.legs import Boosted, Ranked
from research.store import STOP_WORDS, normalize

if TYPE_CHECKING:
    from research.store import Reader

_WORDS = tomllib.loads(Path(__file__).with_name("asking_words.toml").read_text(encoding="utf-8"))
ASKING, SECTIONS, OLDER, DOCUMENTS, KINDS_OF_KINDS, SMALL = (
    frozenset[str](_WORDS[name].split())
    for name in ("asking", "sections", "older", "documents", "kinds_of_kinds", "small")
)
FRAMES: dict[tuple[str, ...], str] = {
    tuple(frame.split()): part for part, frames in _WORDS["frames"].items() for frame in frames
}


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of part; the table explains the fields."""

    headings: tuple[tuple[str, ...], ...] = ()
    asked: tuple[str, ...] = ()
    last: bool = False
    begins: bool = False
    everyday: bool = False
    also: str = ""

    @property
    def names(self) -> list[str]:
        """The names that a heading may give it."""
        return [name for tier in self.headings for name in tier]


def _read(path: Path) -> Mapping[str, Part]:
    table: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    sums_up = table["summary"]["headings"]
    shared = {"abstract": sums_up, "letter": sums_up[2:3]}
    return {
        kind: Part(
            **entry
            | {
                "headings": tuple(map(_names, entry.get("headings", shared.get(kind, ())))),
                "asked": _names(entry.get("asked", "")),
            }
        )
        for kind, entry in table.items()
    }


def _names(phrases: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in phrases.split(",") if phrase.strip())


PARTS = _read(Path(__file__).with_name("part_words.toml"))
SUMMARY = PARTS["summary"].headings
# Deep inside a document these open a chapter; the others do, if more words follow.
IN_FRONT = [*SUMMARY[2], *(name for tier in SUMMARY[4:] for name in tier)]


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
    tokens, framed = _TOKEN.findall(folded), list[AskedPart]()
    if len(tokens) > 1 and (kind := FRAMES.get((tokens[0], tokens[-1]))):
        tokens, framed = tokens[1:-1], [AskedPart(kind)]
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
        parts = [part for part in parts if part.kind not in PARTS or not PARTS[part.kind].everyday]
    if sections:
        parts = [replace(part, section=True) for part in parts]
    # "What do the authors name as limitations?" asks for the limitations, not for the authors.
    parts = sorted(parts, key=lambda part: part.kind == "authors") or sections[:1]
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


def _unspaced(folded: str) -> tuple[str, list[AskedPart], list[str]]:
    """The text without what it asks for in scripts without spaces, that, and the kinds of document."""
    if folded.isascii():
        return folded, [], []
    parts, document = [], []
    for phrase, kind in _unspaced_phrases():
        if phrase in folded:
            folded = folded.replace(phrase, " ")
            parts.append(AskedPart(kind, said=phrase))
    for word in _WORDS["unspaced_documents"].split():
        if word in folded:
            folded = folded.replace(word, " ")
            document.append(word)
    for word in _WORDS["unspaced_small"].split() if parts else ():
        folded = folded.replace(word, " ")
    return folded, parts, document


def _phrase_at(tokens: list[str], place: int) -> tuple[str, int]:
    """The part that is named here, and by how many words; otherwise none, and one word to go on."""
    for length in range(min(_MOST_PHRASE, len(tokens) - place), 0, -1):
        kind = _phrases().get(" ".join(tokens[place : place + length]))
        if kind:
            return kind, length
    return "", 1


@lru_cache(maxsize=1)
def _phrases() -> dict[str, str]:
    """What is asked for → kind. "Abstract" asks for one, though it may also sum up; so what is asked for alone wins."""
    return {" ".join(_TOKEN.findall(phrase)): kind for phrase, kind in _asked_for() if phrase.isascii()}


@lru_cache(maxsize=1)
def _unspaced_phrases() -> list[tuple[str, str]]:
    found = {phrase: kind for phrase, kind in _asked_for() if not phrase.isascii()}
    return sorted(found.items(), key=lambda entry: -len(entry[0]))


def _asked_for() -> list[tuple[str, str]]:
    """Names of parts, and their kind; the later ones win."""
    first = [(phrase, kind) for kind, part in PARTS.items() if part.headings for phrase in part.headings[0]]
    return first + [(phrase, kind) for kind, part in PARTS.items() for phrase in part.asked]


NAME = "document-parts"

_MOST_NAME = 4  # words; with more, the pages that hold them say as much
# Where a title page comes that says no more than the title.
_AMONG_THE_FIRST = 3


class DocumentPartsBooster:
    """The booster of the pages that hold the part of a document that is asked for."""

    name = NAME

    def boost(self, question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Boosted:
        from research.search.page_references import references_in

        if not ranked or len(question.text) > _MOST_LETTERS or references_in(question.text):
            return Boosted(ranked)
        ranking = list(dict.fromkeys(page.doc_id for page in ranked))
        asked = part_question(question.wording)
        if asked is None:
            return _with_title_page(reader, name_question(question.wording), ranking, ranked)
        if asked.parts == (NAMED_SECTION,):
            return _lifted(_named_section(reader, asked, ranking), ranked)
        return _parts(reader, asked, ranked, question.about)


def _lifted(
    pages: Sequence[tuple[int, str]],
    ranked: Sequence[Ranked],
    place: int = 0,
    parts: Mapping[int, FoundPart] | None = None,
) -> Boosted:
    """The ranking with these pages (page_id, doc_id) at a place, with the score of what stood there."""
    chosen = dict(pages)
    score = ranked[min(place, len(ranked) - 1)].score
    others = [page for page in ranked if page.page_id not in chosen]
    lifted = [Ranked(page_id, doc_id, score) for page_id, doc_id in chosen.items()]
    return Boosted([*others[:place], *lifted, *others[place:]], frozenset(chosen), parts=parts or {})


def _parts(reader: Reader, asked: PartQuestion, ranked: Sequence[Ranked], about: Mapping[str, float]) -> Boosted:
    from research.search.names import documents_meant
    from research.search.part_pages import pages_of_parts

    documents = documents_meant(reader, asked, ranked, about)
    parts = {doc_id: pages_of_parts(reader, doc_id, asked) for doc_id in documents}
    found = [[(page_id, doc_id) for page_id in pages] for doc_id, pages in parts.items()]
    # Of several documents that may be meant, first the first page of each.
    pages = [pages[0] for pages in found if pages] + [page for pages in found for page in pages[1:]]
    known = {page_id: part for pages in parts.values() for page_id, part in pages.items() if part is not None}
    return _lifted(pages, ranked, parts=known)


def _named_section(reader: Reader, asked: PartQuestion, ranking: Sequence[str]) -> list[tuple[int, str]]:
    from research.search.names import documents_with_section
    from research.search.part_pages import page_of_section

    for doc_id, words, needed in documents_with_section(reader, asked, ranking):
        page_id = page_of_section(reader, doc_id, words, needed)
        if page_id is not None:
            return [(page_id, doc_id)]
    return []


def _with_title_page(reader: Reader, asked: PartQuestion, ranking: Sequence[str], ranked: Sequence[Ranked]) -> Boosted:
    """Where the question is no more than a name: the title page first if it says what the document is about, or else
    among the first."""
    if not 0 < len(asked.rest) <= _MOST_NAME:
        return Boosted(ranked)
    from research.search.names import documents_called

    [doc_id, *others] = documents_called(reader, asked.rest, asked.document, ranking) or [""]
    fronts = reader.lookups.front_pages([doc_id]).get(doc_id, []) if not others else []
    if not fronts:
        return Boosted(ranked)
    place = 0 if fronts[0].has_text else _AMONG_THE_FIRST - 1
    if any(page.page_id == fronts[0].page_id for page in ranked[: place + 1]):
        return Boosted(ranked)
    return _lifted([(fronts[0].page_id, doc_id)], ranked, place)


_MOST = 3  # passages
_LONGEST = 400  # characters of one; as many as a quote has
_SENTENCE = 4  # words; what has fewer is a running header or a caption
_NEXT = 0.05  # what a passage scores less than the one before it
_LATER = 0.3  # and on a later page
_NUMBER_PART_PASSAGES = 14  # characters that a heading's line may have beside it
_GOES_ON = {"risks", "letter", "outline"}  # over headings of its own
_NAMES = {"risks": "section on risks", "letter": "letter or statement to its readers"}


def opened(item: Item) -> Item:
    """The item, if it was found for a part of its document, with the beginning of that as its passages."""
    if item.part is None:
        return item
    begins = item.part.heading or item.part.name == "beginning"
    outline = item.part.name == "outline"
    headings = [unit.start for unit in item.units if outline and unit.kind == "heading"]  # each stands before its text
    section = str(item.metadata.get("section_path") or "")
    passages = [
        Passage(
            item.text[(start := max((each for each in headings if each < begin), default=begin)) : end],
            1.0 - _NEXT * rank - (0.0 if begins else _LATER),
            start=start,
            end=end,
            section_path=section_path(item.text, item.units, start, section),
        )
        for rank, (begin, end) in enumerate(islice(_windows(item), 1 if outline else _MOST))
    ]
    return replace(item, passages=tuple(passages)) if passages else item


def _windows(item: Item) -> Iterator[tuple[int, int]]:
    """Sentences of the part that follow each other; no heading parts them, and few parts go on behind the next one."""
    assert item.part is not None
    top, window = _place_of(item.part.heading, item.text), (0, 0)
    for unit in item.units:
        start = max(unit.start, top)
        full = window[1] > 0 and (unit.kind == "heading" or unit.end - window[0] > _LONGEST)
        if unit.end > top and full:
            yield window
            if unit.kind == "heading" and item.part.name not in _GOES_ON:
                return
            window = (0, 0)
        words = item.text[start : unit.end].split()
        said = len(words) >= _SENTENCE or (words[-1:] and words[-1][-1] in ".!?。")
        if unit.end > top and said and unit.kind not in ("heading", "row", "code"):
            window = (window[0] if window[1] else start, unit.end)
    if window[1]:
        yield window


def _place_of(heading: str, text: str) -> int:
    """Where the text under a heading begins; a line that runs on from its heading is part of it."""
    best, found, place = len(text), 0, 0
    for line in text.splitlines(keepends=True) if heading else ():
        said = normalize(line).strip("#*_ \n")
        alone = heading in said and len(said) <= len(heading) + _NUMBER_PART_PASSAGES
        if (alone or said.startswith(heading)) and len(said) < best:
            best, found = len(said), place + len(line) * alone
        place += len(line)
    return found


def part_note(items: Sequence[Item]) -> str:
    """What part of its document an answer is, in plain words; empty, if it is none."""
    part = items[0].part if items else None
    if part is None:
        return ""
    found = [item for item in items if item.part is not None and item.part.name == part.name]
    files = list(dict.fromkeys(str(item.metadata["filename"]) for item in found))
    pages = [item.ref.part for item in found if item.metadata["filename"] == files[0]]
    run = [int(page) - at for at, page in enumerate(pages)]
    where = f"page{'s' if len(pages) > 1 else ''} {', '.join(pages)}"
    if len(pages) > 1 and len(set(run)) == 1:
        where = f"pages {pages[0]}-{pages[-1]}"
    if len(files) > 1:
        where = ", ".join(files)
    if part.name in ("outline", "beginning"):
        begins = "it begins so" if part.name == "beginning" else "its sections begin so"
        return f"No summary of its own was found in the document; {begins} ({where})."
    return f"From {'each' if len(files) > 1 else 'the'} document's own {_NAMES.get(part.name, part.name)} ({where})."
