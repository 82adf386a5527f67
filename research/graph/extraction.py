"""What the graph is made of, read from the text: a document's sections, what its pages say of each other, what it is
called and what it mentions; and what pieces of code are called in their tree, what they call and import.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from research.context import outline_of
from research.graph.references import WORDS, Reference, references_in, targets_of
from research.records import DocumentInfo
from research.search import version_of
from research.store import PageText, graph

_MOST_SECTIONS = 2000
_MOST_MENTIONS = 500  # of a document: a list of all files there are is no reference to each
_MOST_LETTERS = 60_000  # of a page
_LEAST_TITLE = 4  # words: "Annual report" is what many documents are about
_LEAST_LETTERS = 16
_ENDING = re.compile(r"\.(?:pdf|docx?|md|txt|html?|xlsx?|pptx?)(?!\w)", re.I)
_BEFORE_ENDING, _MOST_WORDS = 160, 6  # characters and words of a file name
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>|{}\\^`\[\]]{1,200}")
_ARXIV = re.compile(r"\barxiv:\s?(\d{4}\.\d{4,5})(?:v\d{1,2})?\b", re.I)
_WORD = re.compile(r"\w+")

_MOST_SUFFIXES = 6
_PYTHON_FROM = re.compile(r"from\s+(\.*)([\w.]*)\s+import\s+(.+)")
_PYTHON_IMPORT = re.compile(r"import\s+(.+)")
_QUOTED = re.compile(r"[\"']([^\"']{1,200})[\"']")
_PATH = re.compile(r"[\w]+(?:(?:\.|::|/)\w+)+")


def digest(space: str, name: str) -> int:
    """A name as the graph keeps it: a number that only the same name of the same space has."""
    made = hashlib.blake2b(f"{space}\0{name}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(made, "big", signed=True) or 1


@dataclass(frozen=True, slots=True)
class Section:
    number: int  # in the order of the document, from 1
    heading: str
    above: int  # the section it is a part of; 0: the document


@dataclass(frozen=True, slots=True)
class DocumentGraph:
    """Edges inside of a document by physical pages, and names by their digests."""

    sections: list[Section] = field(default_factory=list)
    pages_of: list[tuple[int, int]] = field(default_factory=list)  # (section, or 0 for the document; page)
    refers: list[tuple[int, int, int]] = field(default_factory=list)  # page → page, and as what it is referred to
    names: list[int] = field(default_factory=list)
    families: list[int] = field(default_factory=list)  # names that it shares with its other versions
    mentions: Mapping[int, list[int]] = field(default_factory=dict)  # page → names


class Titles:
    """The titles of all documents that are long enough to be recognised in a text."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        """(id, title) of each."""
        self._beginning: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
        for _, title in documents:
            words = title_words(title)
            if words:
                same = self._beginning.setdefault(words[:_LEAST_TITLE], {})
                same[words] = digest("title", " ".join(words))

    def found_in(self, text: str) -> Iterator[int]:
        """The names of those that a text holds."""
        if not self._beginning:
            return
        words = [match.group() for match in _WORD.finditer(text[:_MOST_LETTERS].casefold())]
        for at in range(len(words) - _LEAST_TITLE + 1):
            same = self._beginning.get(tuple(words[at : at + _LEAST_TITLE]))
            if same is not None:
                yield from (name for title, name in same.items() if tuple(words[at : at + len(title)]) == title)


def title_words(title: str) -> tuple[str, ...]:
    """Of a title that means one document; of others none."""
    words = tuple(_WORD.findall(title.casefold()))
    return words if len(words) >= _LEAST_TITLE and sum(map(len, words)) >= _LEAST_LETTERS else ()


def document_graph(info: DocumentInfo, pages: Sequence[PageText], titles: Titles) -> DocumentGraph:
    """Of all pages of a document, in order."""
    outline = outline_of(pages)
    sections, pages_of = _sections([(entry.level, entry.title, entry.page) for entry in outline], pages)
    targets = targets_of(pages, outline)
    refers: dict[tuple[int, int, int], None] = {}
    mentions: dict[int, list[int]] = {}
    left = _MOST_MENTIONS
    for page in pages:
        for reference in references_in(page.markdown):
            target = targets.page(reference, page.page)
            if target is not None:
                refers[page.page, target, reference_name(reference)] = None
        mentioned = list(dict.fromkeys([*_written_names(page.markdown), *titles.found_in(page.markdown)]))[:left]
        left -= len(mentioned)
        if mentioned:
            mentions[page.page] = mentioned
    names, families = names_of(info, pages[0].markdown if pages else "")
    own = {*names, *families}
    mentions = {page: [name for name in found if name not in own] for page, found in mentions.items()}
    return DocumentGraph(sections, pages_of, list(refers), names, families, mentions)


def _sections(
    headings: Sequence[tuple[int, str, int]], pages: Sequence[PageText]
) -> tuple[list[Section], list[tuple[int, int]]]:
    """Sections, each below the one it stands in; and pages below the sections that begin on them, and the one that
    goes on there."""
    sections: list[Section] = []
    above: list[tuple[int, int]] = []  # (level, number) of those in force
    begin: dict[int, list[int]] = {}
    for number, (level, heading, at) in enumerate(headings[:_MOST_SECTIONS], start=1):
        while above and above[-1][0] >= level:
            above.pop()
        sections.append(Section(number, heading, above[-1][1] if above else 0))
        above.append((level, number))
        begin.setdefault(at, []).append(number)
    held: list[tuple[int, int]] = []
    going_on = 0
    for at in (each.page for each in pages):
        held += [(number, at) for number in dict.fromkeys([going_on, *begin.get(at, ())]) if number]
        if not going_on and at not in begin:
            held.append((0, at))
        going_on = begin.get(at, [going_on])[-1]
    return sections, held


def reference_name(reference: Reference) -> int:
    return digest("reference", f"{reference.kind} {reference.number}".casefold())


def _written_names(text: str) -> Iterator[int]:
    """File names, DOIs and the like, whether there is such a document or not."""
    text = text[:_MOST_LETTERS]
    for match in _ENDING.finditer(text):
        start = max(0, match.start() - _BEFORE_ENDING)
        line = text[start : match.end()].rpartition("\n")[2].casefold().replace("%20", " ").rpartition("/")[2]
        words = line.split()[-_MOST_WORDS:]
        for at in range(len(words)):  # a file name may hold spaces; where it begins is not known
            yield digest("file", " ".join(words[at:]).lstrip("(,'\"`*_[<“„"))
    yield from (digest("doi", doi) for doi in _dois(text))
    yield from (digest("arxiv", match[1]) for match in _ARXIV.finditer(text))


def _dois(text: str) -> list[str]:
    found = (match.group().rstrip(".,;:)'*_").casefold() for match in _DOI.finditer(text))
    return list(dict.fromkeys(found))


def names_of(info: DocumentInfo, first_page: str) -> tuple[list[int], list[int]]:
    """What a document is called: by others, and with its other versions."""
    names = [digest("file", " ".join(info.filename.casefold().split()))]
    if words := title_words(info.title):
        names.append(digest("title", " ".join(words)))
    first = first_page[:_MOST_LETTERS]
    dois, arxiv = _dois(first), {match[1] for match in _ARXIV.finditer(first)}
    names += [digest("doi", doi) for doi in dois[:1] if len(dois) == 1]  # more are what it cites
    names += [digest("arxiv", number) for number in arxiv if len(arxiv) == 1]
    series = version_of(info.filename, info.title).series
    return names, [digest("family", series)] if series else []


def newer_pairs(versions: Iterable[tuple[int, str, str]]) -> list[tuple[int, int]]:
    """(newer, older) of (node, file name, title) that have a name in common: each with the one before it."""
    known: dict[tuple[int, ...], list[int]] = {}
    for node, filename, title in versions:
        if version := version_of(filename, title).number:
            known.setdefault(version, []).append(node)
    order = sorted(known)
    return [(new, old) for older, newer in pairwise(order) for new in known[newer] for old in known[older]]


def piece_names(root: str, metadata: Mapping[str, Any]) -> list[int]:
    """What a piece of code is called by others of its tree."""
    if metadata.get("unit_type") == "module":
        return []
    names = {str(metadata.get(key) or "") for key in ("name", "qualified_name")} - {""}
    return [digest("code", f"{root}\0{name}") for name in sorted(names)]


def file_names(root: str, file_path: str) -> list[int]:
    """How a file is imported: by its path in the tree, in dots, or by the end of it."""
    parts = _module_parts(file_path)
    ends = {".".join(parts[at:]) for at in range(min(len(parts), _MOST_SUFFIXES)) if at == 0 or len(parts) - at >= 2}
    return [digest("module", f"{root}\0{name}") for name in sorted(ends - {""})]


def piece_mentions(root: str, metadata: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(kind, name) of what a piece calls and imports."""
    calls = [str(name) for name in metadata.get("calls") or ()]
    found = [(graph.CALLS, digest("code", f"{root}\0{name}")) for name in calls if name not in WORDS["built_in"]]
    own = str(metadata.get("file_path") or "")
    for statement in metadata.get("imports") or ():
        found += [(graph.IMPORTS, digest("module", f"{root}\0{name}")) for name in imported(str(statement), own)]
    return list(dict.fromkeys(found))


def imported(statement: str, file_path: str) -> Iterator[str]:
    """The modules that an import of a file may mean, in dots."""
    if match := _PYTHON_FROM.match(statement):
        dots, module, names = match.groups()
        base = _module_parts(file_path) if dots else []
        if dots and not file_path.endswith("__init__.py"):
            base = base[:-1]
        base = base[: len(base) - (len(dots) - 1)] if len(dots) > 1 else base
        path = ".".join([*base, *filter(None, module.split("."))])
        yield path
        yield from (f"{path}.{name}" for name in _WORD.findall(names)[:20] if name != "as")
    elif quoted := _QUOTED.search(statement):
        yield from _relative(quoted[1], file_path)
    elif match := _PYTHON_IMPORT.match(statement):
        for part in match[1].rstrip(";").split(",")[:20]:
            yield part.split(" as ")[0].strip().replace("::", ".").replace("/", ".")
    else:
        yield from (path.group().replace("::", ".").replace("/", ".") for path in _PATH.finditer(statement))


def _relative(path: str, file_path: str) -> Iterator[str]:
    """`./dates`, as JavaScript writes it; `util/text.h`, as C does."""
    if not path.startswith("."):
        yield ".".join(_module_parts(path))
        return
    parts = list(PurePosixPath(file_path).parent.parts)
    for part in PurePosixPath(path).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    yield ".".join(_module_parts("/".join(parts)))


def _module_parts(file_path: str) -> list[str]:
    path = PurePosixPath(file_path)
    stem = path.name if path.name.startswith(".") else path.name.partition(".")[0]
    parts = [*path.parent.parts, stem]
    return [part for part in parts if part not in ("", ".", "/", "__init__", "index", "mod")]
