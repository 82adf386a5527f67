"""Which documents are meant: by name, path, pattern, title, id or its beginning, today's or a former one; and what
stays with a file when its content changes, its lasting id and the ids its documents had before.

The ways are tried in order, and the first that means anything decides: a whole file name before a part of one, whatever
stands in titles. All documents are looked at once, so this is linear in their number; a pattern is matched without
backtracking. What was read of the documents is remembered for as long as nobody writes.

`doc_id` comes from the content. `file_id` is given once and goes over to whatever the file holds next. Ids that were
given out before, in citations and scripts, go on meaning what the file holds now (`former_ids`, always one step); an id
that a document has today means that document.
"""

from __future__ import annotations

import os
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from research.errors import NothingFoundError, UsageError
from research.records import DocumentInfo
from research.store.catalog.documents import get_documents
from research.store.catalog.labels import write_tags
from research.store.catalog.pages import rows_in
from research.store.catalog.reader import Reader

_MOST_NAMED = 10  # documents in a message
_MOST_MEANT = 3  # that are proposed
_LONGEST = 4096  # characters of a path, on most systems; what is longer means nothing
_SHOWN = 80
_LIKENESS = 75.0  # of a name to what was typed, in percent, to be proposed
_ID = re.compile(r"(?:page:)?(?P<id>[0-9a-f]{16}|file-[0-9a-f]{16}(?:-[0-9]{1,9})?)(?:#(?P<page>[0-9]{0,9}))?")
_HEX = re.compile(r"[0-9a-f]{4,15}")
_SURE_OF_AN_ID = 6  # hex digits; fewer are as likely a word ("face") or a year
WILD = "*?["


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """What a document can be called by, and what else it is chosen by."""

    doc_id: str
    filename: str
    title: str
    num_pages: int
    timestamp: str
    paths: tuple[str, ...]  # every one that its file was seen at
    name: str  # the file name, folded
    folded_title: str
    folded_paths: tuple[str, ...]

    @property
    def stem(self) -> str:
        return self.name.removesuffix(".pdf")


def known_documents(reader: Reader) -> Sequence[KnownDocument]:
    """All documents by file name, remembered while nobody writes."""
    known = reader.count_cache()
    if KnownDocument not in known:
        paths: dict[str, list[str]] = {}
        for doc_id, path in reader.connection.execute("SELECT doc_id, path FROM files ORDER BY path"):
            paths.setdefault(doc_id, []).append(path)
        rows = reader.connection.execute(
            "SELECT doc_id, filename, title, num_pages, timestamp, source_path FROM documents ORDER BY filename, doc_id"
        )
        known[KnownDocument] = [_known(row, paths.get(row["doc_id"]) or [row["source_path"]]) for row in rows]
    found: list[KnownDocument] = known[KnownDocument]
    return found


def find_documents(reader: Reader, wanted: str, folder: str = "", *, cautious: bool = False) -> list[KnownDocument]:
    """The documents that a name means, by file name. Raises NothingFoundError if none, and UsageError for the beginning
    of several ids.

    `folder`: what relative paths are relative to, first of all. `cautious`: neither by a title nor by less of an id
    than nobody would type by chance, for what cannot be undone.
    """
    text = stored_text(wanted)
    for way in _ways(reader, text, folder, cautious=cautious) if 0 < len(text) <= _LONGEST else ():
        found = way()
        if found:
            return found
    raise NothingFoundError(
        f"no document matches {shown(wanted)}", hint=_meant(reader, text, folder, cautious=cautious)
    )


def select_documents(
    reader: Reader, names: Iterable[str], folder: str = "", *, cautious: bool = False
) -> list[DocumentInfo]:
    """All that these names mean, each document once. Raises for one that means none."""
    chosen: dict[str, None] = {}
    for name in names:
        if not name.strip():
            raise UsageError("a document's name is empty", hint="see them all with: ctx list")
        chosen.update((found.doc_id, None) for found in find_documents(reader, name, folder, cautious=cautious))
    return get_documents(reader, list(chosen))


def select_one(reader: Reader, name: str, folder: str = "") -> DocumentInfo:
    """The one document that is meant. Raises if several are."""
    found = select_documents(reader, [name], folder)
    if len(found) > 1:
        raise ambiguous(name, found)
    return found[0]


def page_of_ref(text: str) -> int | None:
    """The page that a ref (`page:<doc>#7`) names; None if it is none, or names none."""
    match = _ID.fullmatch(text.lower())
    return int(match["page"]) if match and match["page"] else None


def ambiguous(name: str, found: Sequence[DocumentInfo | KnownDocument]) -> UsageError:
    known = ", ".join(f"{document.filename} ({document.doc_id})" for document in found[:_MOST_NAMED])
    more = " …" if len(found) > _MOST_NAMED else ""
    return UsageError(f"{shown(name)} matches {len(found)} documents: {known}{more}", hint="name one by its id")


def is_pattern(name: str, found: Sequence[DocumentInfo]) -> bool:
    """Whether these were found because the name is a pattern; a file may be called `notes [1].pdf`."""
    return any(mark in name for mark in WILD) and not any(name in {d.filename, d.source_path} for d in found)


def fold(text: str) -> str:
    """Case and spelling aside: an é may be written as one character or as two."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def stored_text(name: str) -> str:
    """As paths are stored: bytes that are no valid text are escaped, and so is what no path can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        with suppress(UnicodeEncodeError):
            return os.fsencode(name).decode("utf-8", "backslashreplace")
        return name.encode("utf-8", "backslashreplace").decode()
    return name


def absolute(path: str, folder: str) -> str:
    """A path without dots, relative to a folder; empty if there is none to be relative to, or it is no path."""
    if "\0" in path:
        return ""
    path = os.path.expanduser(path) if path.startswith("~") else path  # noqa: PTH111  text, not a path of ours
    if not path.startswith("/") and not folder:
        return ""
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118


def shown(value: str) -> str:
    """A value somebody typed, in a message."""
    return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}…"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a folded text is one of a folded pattern; `*` also stands for slashes."""
    import fnmatch

    # Python's translation holds each star's first fit (an atomic group), so nothing is tried twice. For a bracket it
    # looks to the end for the one that closes it: those after the last of these are spelt out.
    head, closing, tail = pattern.rpartition("]")
    compiled = re.compile(fnmatch.translate(head + closing + tail.replace("[", "[[]")))
    return lambda text: compiled.match(text) is not None


def close_to(wanted: str, names: Iterable[str], most: int = _MOST_MEANT) -> list[str]:
    """The names most like what was typed, best first."""
    from rapidfuzz import fuzz, process

    if not 0 < len(wanted) <= _SHOWN:
        return []
    choices = {name: fold(name) for name in names}
    found = process.extract(fold(wanted), choices, scorer=fuzz.ratio, score_cutoff=_LIKENESS, limit=most)
    return [name for _, _, name in found]


def _known(row: Sequence[Any], paths: Sequence[str]) -> KnownDocument:
    doc_id, filename, title, num_pages, timestamp, _ = row
    folded_title, folded_paths = " ".join(fold(title).split()), tuple(map(fold, paths))
    return KnownDocument(
        doc_id, filename, title, num_pages, timestamp, tuple(paths), fold(filename), folded_title, folded_paths
    )


_Way = Callable[[], list[KnownDocument]]


def _ways(reader: Reader, text: str, folder: str, *, cautious: bool) -> Iterator[_Way]:
    """What a name can mean, the surest first."""
    known = known_documents(reader)
    lower = fold(text)
    stem = lower.removesuffix(".pdf")
    place = fold(absolute(text, folder)) if "/" in text or text.startswith("~") else ""

    def those(test: Callable[[KnownDocument], bool]) -> _Way:
        return lambda: [document for document in known if test(document)]

    def with_ids(ids: Iterable[str]) -> list[KnownDocument]:
        chosen = set(ids)
        return [document for document in known if document.doc_id in chosen] if chosen else []

    def beginning_with(beginning: str) -> list[KnownDocument]:
        found = [document for document in known if document.doc_id.startswith(beginning)]
        found = found or with_ids(former_ids_beginning(reader, beginning))
        if len(found) > 1:  # whoever types a part of an id means one document
            raise ambiguous(text, found)
        return found

    if match := _ID.fullmatch(lower):
        yield lambda: with_ids(current_ids(reader, [match["id"]]))
    yield those(lambda d: text == d.filename or text in d.paths)
    yield those(lambda d: d.stem == stem)
    if place:
        yield those(lambda d: any(path in (place, f"{place}.pdf") for path in d.folded_paths))
    if "/" in lower:
        end = f"/{lower.strip('/')}"
        yield those(lambda d: any(path.endswith((end, f"{end}.pdf")) for path in d.folded_paths))
    is_beginning = _HEX.fullmatch(lower) is not None
    if is_beginning and len(lower) >= _SURE_OF_AN_ID:
        yield lambda: beginning_with(lower)
    if any(mark in text for mark in WILD):
        yield those(_fits(text, folder))
    if cautious:
        yield those(lambda d: bool(stem) and stem in d.name)
        return
    title = " ".join(lower.split())
    yield those(lambda d: bool(title) and d.folded_title == title)
    if not (lower.endswith(".pdf") or lower.startswith((".", "/", "~")) or any(mark in text for mark in WILD)):
        yield lambda: with_ids(_with_words(reader, text))
    yield those(lambda d: bool(stem) and stem in d.name)
    if is_beginning:
        yield lambda: beginning_with(lower)


def _fits(text: str, folder: str) -> Callable[[KnownDocument], bool]:
    """Whether a document fits a pattern: of names, or of paths and the ends of paths where it holds a slash."""
    if "/" not in text:
        fits = matcher(fold(text))
        return lambda document: bool(fits(document.name))
    if text.startswith((".", "/", "~")):
        import glob

        whole = absolute(text, glob.escape(folder)) if folder or not text.startswith(".") else text.lstrip("./")
        at = [matcher(fold(whole))] if whole.startswith("/") else [matcher(f"*/{fold(whole)}")]
    else:
        at = [matcher(f"*/{fold(text)}")]
    return lambda document: any(fits(path) for path in document.folded_paths for fits in at)


def _with_words(reader: Reader, text: str) -> list[str]:
    """The documents that have all of these words in their file name or title."""
    from research.store.fulltext.analyzer import analyze_name

    words = sorted(set(analyze_name(text)))
    counted: dict[str, int] = {}
    query = "SELECT doc_id, COUNT(*) FROM name_words WHERE word IN"
    for doc_id, count in rows_in(reader.connection, query, words, "GROUP BY doc_id"):
        counted[doc_id] = counted.get(doc_id, 0) + count
    return [doc_id for doc_id, count in counted.items() if words and count == len(words)]


def _meant(reader: Reader, text: str, folder: str, *, cautious: bool) -> str:
    """The next thing to type, with the names that are most like this one."""
    everything = "see them all with: ctx list"
    if not 0 < len(text) <= _LONGEST:
        return everything
    if cautious:
        found: list[KnownDocument] = []
        with suppress(UsageError):  # a part of several ids
            found = next(filter(None, (way() for way in _ways(reader, text, folder, cautious=False))), [])
        if found:
            meant = ", ".join(document.filename for document in found[:_MOST_NAMED])
            return f"this means {meant} by title or a short id; use the file name or the whole id"
    known = known_documents(reader)
    last = text.rstrip("/").rpartition("/")[2]
    close = close_to(last, [document.filename for document in known]) or close_to(last, _parts_of_names(known))
    return f"did you mean {' or '.join(close)}? {everything}" if close else everything


def _parts_of_names(known: Sequence[KnownDocument]) -> set[str]:
    """File names without their ending, titles, and words of titles."""
    words = {word for document in known for word in re.findall(r"\w{4,}", document.title)}
    return words | {document.stem for document in known} | {document.title for document in known}


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a document takes over from itself, when it is read again, and from what stood at its path before."""

    file_id: str  # empty: none of them had one
    former_ids: frozenset[str]
    tags: frozenset[str]
    added: str  # when this content was first added; empty if it is new


def inheritance(connection: sqlite3.Connection, doc_id: str, path: str) -> Inheritance:
    """Read before anything is deleted; part of the caller's transaction."""
    own = connection.execute("SELECT file_id, timestamp FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    # A document with a copy elsewhere stays as it is, and keeps what it has.
    gone = connection.execute(
        "SELECT doc_id, file_id FROM documents WHERE doc_id = (SELECT doc_id FROM files WHERE path = ?)"
        " AND doc_id <> ? AND NOT EXISTS (SELECT 1 FROM files other"
        " WHERE other.doc_id = documents.doc_id AND other.path <> ?)",
        (path, doc_id, path),
    ).fetchone()
    both = (doc_id, doc_id if gone is None else gone[0])
    tags = connection.execute("SELECT tag FROM tags WHERE doc_id IN (?, ?)", both)
    former = connection.execute("SELECT former_id FROM former_ids WHERE doc_id IN (?, ?)", both)
    file_id = own[0] if own is not None else gone[1] if gone is not None else ""
    ids = {str(row[0]) for row in former} | (set() if gone is None else {str(gone[0]), str(gone[1])})
    return Inheritance(
        file_id=str(file_id),
        former_ids=frozenset(ids - {doc_id, file_id}),
        tags=frozenset(str(row[0]) for row in tags),
        added=str(own[1]) if own is not None else "",
    )


def hand_over(connection: sqlite3.Connection, doc_id: str, left: Inheritance) -> None:
    """Written once the document is there; part of the caller's transaction."""
    write_tags(connection, doc_id, sorted(left.tags))
    connection.executemany(
        "INSERT INTO former_ids (former_id, doc_id) VALUES (?, ?)"
        " ON CONFLICT (former_id) DO UPDATE SET doc_id = excluded.doc_id",
        [(former_id, doc_id) for former_id in sorted(left.former_ids)],
    )


def new_file_id(connection: sqlite3.Connection, doc_id: str) -> str:
    """One that nothing has or had: the same content may have stood in another file, which has changed since."""
    number, found = 1, f"file-{doc_id}"
    while connection.execute(
        "SELECT 1 FROM documents WHERE file_id = ? UNION ALL SELECT 1 FROM former_ids WHERE former_id = ?",
        (found, found),
    ).fetchone():
        number += 1
        found = f"file-{doc_id}-{number}"
    return found


def current_ids(reader: Reader, ids: Iterable[str]) -> list[str]:
    """The documents that ids (today's, lasting or former) mean now, each once; those that mean none are left out."""
    found: dict[str, None] = {}
    for wanted in ids:
        for query in (
            "SELECT doc_id FROM documents WHERE doc_id = ?",
            "SELECT doc_id FROM documents WHERE file_id = ?",
            "SELECT doc_id FROM former_ids WHERE former_id = ?",
        ):
            row = reader.connection.execute(query, (wanted,)).fetchone()
            if row is not None:
                found[str(row[0])] = None
                break
    return list(found)


def former_ids_beginning(reader: Reader, beginning: str) -> list[str]:
    """The documents that former ids with this beginning (hex digits) mean now."""
    rows = reader.connection.execute(
        "SELECT DISTINCT doc_id FROM former_ids WHERE former_id >= ? AND former_id < ? ORDER BY doc_id",
        (beginning, f"{beginning}g"),
    )
    return [str(row[0]) for row in rows]
