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

from bisect import bisect_right
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from research.store.reader import Reader, Repository, grouped

if TYPE_CHECKING:
    from research.filters import Filters, PageRange


import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from research.errors import NothingFoundError, UsageError
from research.records import DocumentInfo

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


def _parts_of_names(known: Sequence[KnownDocument]) -> set[str]:
    """File names without their ending, titles, and words of titles."""
    words = {word for document in known for word in re.findall(r"\w{4,}", document.title)}
    return words | {document.stem for document in known} | {document.title for document in known}


@dataclass(frozen=True, slots=True)
class Scope:
    """Documents by their ids, None for all; and ranges of physical pages, in order, none for all."""

    documents: frozenset[str] | None = None
    pages: tuple[PageRange, ...] = ()

    def count(self, reader: Reader) -> int:
        """How many pages there are."""
        known = reader.names.known()
        chosen = [d for d in known if self.documents is None or d.doc_id in self.documents]
        return sum(pages_in(document, self.pages) for document in chosen)

    def page_ids(self, reader: Reader) -> list[int]:
        """All of them."""
        rows: Iterable[tuple[int, int]] = (
            reader.execute(
                "SELECT page_id, page FROM pages WHERE page >= ? AND page <= ?", (self.pages[0][0], self.pages[-1][1])
            )
            if self.documents is None
            else reader.rows_in("SELECT page_id, page FROM pages WHERE doc_id IN", sorted(self.documents))
        )
        return sorted(page_id for page_id, page in rows if self._has(page))

    def keep(self, reader: Reader, page_ids: Collection[int]) -> set[int]:
        """Those of these pages that are inside."""
        return {
            page_id
            for page_id, (_, page, doc_id) in reader.pages.places(list(page_ids)).items()
            if (self.documents is None or doc_id in self.documents) and self._has(page)
        }

    def _has(self, page: int) -> bool:
        if not self.pages:
            return True
        before = bisect_right(self.pages, page, key=lambda span: span[0])
        return before > 0 and page <= self.pages[before - 1][1]


def pages_in(document: KnownDocument, ranges: Sequence[PageRange]) -> int:
    """How many pages of a document lie in these ranges."""
    if not ranges:
        return document.num_pages
    return sum(max(0, min(last, document.num_pages) - first + 1) for first, last in ranges)


def _below(known: Sequence[KnownDocument], place: str, folder: str) -> set[str]:
    """The documents with a file below a folder. A relative one that has none there means any folder of that name."""
    import os

    text = stored_text(place)
    whole = absolute(text, folder)

    # As it was typed, and where it leads if it is a link; then whatever the case of its letters.
    places = [at.rstrip("/") + "/" for at in dict.fromkeys([whole, os.path.realpath(whole)])] if whole else []
    ways: list[tuple[bool, Callable[[str], bool]]] = [
        *((False, partial(_begins, start)) for start in places),
        *((True, partial(_begins, fold(start))) for start in places),
    ]
    if not text.startswith(("/", "~", ".")):
        inside = f"/{fold(text).strip('/')}/"
        ways.append((True, lambda path: inside in path))
    for folded, test in ways:
        found = {d.doc_id for d in known if any(map(test, d.folded_paths if folded else d.paths))}
        if found:
            return found
    raise NothingFoundError(
        f"no document lies under {shown(whole or place)}",
        hint="see where they lie with: ctx list --json | jq -r '.documents[].source_path'",
    )


def _begins(start: str, path: str) -> bool:
    return path.startswith(start)


def _added(filters: Filters) -> str:
    since = f"since {filters.since}" if filters.since else ""
    until = f"until {filters.until}" if filters.until else ""
    return " ".join(filter(None, (since, until)))


def _in_time(known: Sequence[KnownDocument], filters: Filters) -> set[str]:
    from research.filters import read_time

    since, until = filters.times()
    times = {document.doc_id: read_time(document.timestamp) for document in known}
    found = {doc_id for doc_id, time in times.items() if time is not None and since <= time < until}
    if not found:
        dated = sorted(time for time in times.values() if time is not None)
        hint = f"they were added {dated[0]:%Y-%m-%d} to {dated[-1]:%Y-%m-%d}" if dated else "see: ctx list"
        raise NothingFoundError(f"no document was added {_added(filters)}", hint=hint)
    return found


class Names(Repository):
    """Which documents are meant, and which of their pages a question may be answered from."""

    def known(self) -> Sequence[KnownDocument]:
        """All documents by file name, remembered while nobody writes."""
        return self._db.cached(KnownDocument, self._read)

    def _read(self) -> list[KnownDocument]:
        paths = grouped(self._db.execute("SELECT doc_id, path FROM files ORDER BY path"))
        rows = self._db.execute(
            "SELECT doc_id, filename, title, num_pages, timestamp, source_path FROM documents ORDER BY 2, 1"
        )
        return [_known(row, paths.get(row["doc_id"]) or [row["source_path"]]) for row in rows]

    def find(self, wanted: str, folder: str = "", *, cautious: bool = False) -> list[KnownDocument]:
        """The documents that a name means, by file name. Raises NothingFoundError if none, and UsageError for the
        beginning of several ids.

        `folder`: what relative paths are relative to, first of all. `cautious`: neither by a title nor by less of an id
        than nobody would type by chance, for what cannot be undone."""
        text = stored_text(wanted)
        for way in self._ways(text, folder, cautious=cautious) if 0 < len(text) <= _LONGEST else ():
            found = way()
            if found:
                return found
        raise NothingFoundError(
            f"no document matches {shown(wanted)}", hint=self._meant(text, folder, cautious=cautious)
        )

    def select(self, names: Iterable[str], folder: str = "", *, cautious: bool = False) -> list[DocumentInfo]:
        """All that these names mean, each document once. Raises for one that means none."""
        chosen: dict[str, None] = {}
        for name in names:
            if not name.strip():
                raise UsageError("a document's name is empty", hint="see them all with: ctx list")
            chosen.update((found.doc_id, None) for found in self.find(name, folder, cautious=cautious))
        return self._db.documents.get_many(list(chosen))

    def select_one(self, name: str, folder: str = "") -> DocumentInfo:
        """The one document that is meant. Raises if several are."""
        found = self.select([name], folder)
        if len(found) > 1:
            raise ambiguous(name, found)
        return found[0]

    def _ways(self, text: str, folder: str, *, cautious: bool) -> Iterator[_Way]:
        """What a name can mean, the surest first."""
        known = self.known()
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
            found = found or with_ids(self._former_ids(beginning))
            if len(found) > 1:  # whoever types a part of an id means one document
                raise ambiguous(text, found)
            return found

        if match := _ID.fullmatch(lower):
            yield lambda: with_ids(self.current_ids([match["id"]]))
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
            yield lambda: with_ids(self._with_words(text))
        yield those(lambda d: bool(stem) and stem in d.name)
        if is_beginning:
            yield lambda: beginning_with(lower)

    def _with_words(self, text: str) -> list[str]:
        """The documents that have all of these words in their file name or title."""
        from research.store.analyzer import analyze_name

        words = sorted(set(analyze_name(text)))
        counted: dict[str, int] = {}
        query = "SELECT doc_id, COUNT(*) FROM name_words WHERE word IN"
        for doc_id, count in self._db.rows_in(query, words, "GROUP BY doc_id"):
            counted[doc_id] = counted.get(doc_id, 0) + count
        return [doc_id for doc_id, count in counted.items() if words and count == len(words)]

    def _meant(self, text: str, folder: str, *, cautious: bool) -> str:
        """The next thing to type, with the names that are most like this one."""
        everything = "see them all with: ctx list"
        if not 0 < len(text) <= _LONGEST:
            return everything
        if cautious:
            found: list[KnownDocument] = []
            with suppress(UsageError):  # a part of several ids
                found = next(filter(None, (way() for way in self._ways(text, folder, cautious=False))), [])
            if found:
                meant = ", ".join(document.filename for document in found[:_MOST_NAMED])
                return f"this means {meant} by title or a short id; use the file name or the whole id"
        known = self.known()
        last = text.rstrip("/").rpartition("/")[2]
        close = close_to(last, [document.filename for document in known]) or close_to(last, _parts_of_names(known))
        return f"did you mean {' or '.join(close)}? {everything}" if close else everything

    def current_ids(self, ids: Iterable[str]) -> list[str]:
        """The documents that ids (today's, lasting or former) mean now, each once; those that mean none are left
        out."""
        found: dict[str, None] = {}
        for wanted in ids:
            for query in (
                "SELECT doc_id FROM documents WHERE doc_id = ?",
                "SELECT doc_id FROM documents WHERE file_id = ?",
                "SELECT doc_id FROM former_ids WHERE former_id = ?",
            ):
                row = self._db.execute(query, (wanted,)).fetchone()
                if row is not None:
                    found[str(row[0])] = None
                    break
        return list(found)

    def _former_ids(self, beginning: str) -> list[str]:
        """The documents that former ids with this beginning (hex digits) mean now."""
        return self._db.column(
            "SELECT DISTINCT doc_id FROM former_ids WHERE former_id >= ? AND former_id < ? ORDER BY doc_id",
            (beginning, f"{beginning}g"),
        )

    def scope(self, filters: Sequence[Filters], folder: str = "") -> Scope:
        """What all of these leave; only the first has pages. Raises NothingFoundError, and names the filter, where that
        is nothing.

        `folder`: what relative paths and folders are relative to."""
        known = self.known()
        ranges = filters[0].pages_read()
        left = {document.doc_id: document for document in known}
        so_far: list[str] = []
        for what, chosen in (choice for each in filters for choice in self._choices(each, folder, known)):
            so_far.append(what)
            left = {doc_id: document for doc_id, document in left.items() if doc_id in chosen}
            if not left:
                raise NothingFoundError(
                    f"no document is left by {' and '.join(so_far)}", hint="ask without one of them; see: ctx list"
                )
        if ranges and not any(pages_in(document, ranges) for document in left.values()):
            longest = max(left.values(), key=lambda document: document.num_pages)
            of = f" of those left by {' and '.join(so_far)}" if so_far else ""
            raise NothingFoundError(
                f"no document{of} has pages {shown(filters[0].pages)}",
                hint=f"the longest, {longest.filename}, has {longest.num_pages}",
            )
        return Scope(None if len(left) == len(known) else frozenset(left), ranges)

    def _choices(
        self, filters: Filters, folder: str, known: Sequence[KnownDocument]
    ) -> Iterable[tuple[str, Collection[str]]]:
        """Each filter in words, and the documents it fits. One that fits none by itself raises."""
        if filters.documents:
            yield f"doc {' or '.join(map(shown, filters.documents))}", self._named(filters.documents, folder, "doc")
        if filters.not_documents:
            without = self._named(filters.not_documents, folder, "not_doc")
            yield (
                f"not_doc {' or '.join(map(shown, filters.not_documents))}",
                {document.doc_id for document in known} - without,
            )
        if filters.under:
            below = [_below(known, place, folder) for place in filters.under]
            yield f"under {' or '.join(map(shown, filters.under))}", set().union(*below)
        if filters.since or filters.until:
            yield _added(filters), _in_time(known, filters)
        for tag in filters.tags:
            yield f"tag {shown(tag)}", self._tagged(tag)

    def _named(self, names: Iterable[str], folder: str, key: str) -> set[str]:
        """The documents that any of the names means. Only a pattern of what to leave out may mean none: there may be no
        drafts today."""
        found: set[str] = set()
        for name in names:
            try:
                found.update(document.doc_id for document in self.find(name, folder))
            except NothingFoundError as error:
                if key == "doc" or not any(mark in name for mark in WILD):
                    raise NothingFoundError(f"{key}: {error.message}", hint=error.hint) from error
        return found

    def _tagged(self, tag: str) -> set[str]:

        tags = self._db.labels.all_tags()
        wanted = fold(tag.strip())
        found = {doc_id for known, doc_ids in tags.items() if fold(known) == wanted for doc_id in doc_ids}
        if not found:
            close = close_to(tag, tags)
            meant = f"did you mean {' or '.join(close)}? " if close else ""
            raise NothingFoundError(f"no document has the tag {shown(tag)}", hint=f"{meant}see the tags with: ctx tag")
        return found
