"""Documents whose files are no longer where they were, and where a moved one is found.

Only the folders that documents came from are looked through, and not without end; a file is compared byte by byte only
if it has the right size.
"""

from __future__ import annotations

import os
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from research.checksums import sha256
from research.records import DocumentInfo
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import all_documents, paths_of
from research.store.catalog.reader import Reader

_MOST_ENTRIES = 20_000  # of folders, looked at by name
_DEEPEST = 3  # folders below one that a document came from
_MOST_READ = 50  # files of the right size
_SHOWN = 3
_FORGET = "ctx ingest FOLDER --prune"


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A document without its file; `moved_to` is a file with the same content, empty if none was found."""

    document: DocumentInfo
    moved_to: str = ""


def gone_documents(catalog: Catalog) -> tuple[int, list[GoneFile]]:
    """How many documents there are, and those of which no file is left at any place it was seen."""
    documents = all_documents(catalog)
    places = {document.doc_id: paths_of(catalog, document.doc_id) for document in documents}
    gone = [d for d in documents if not any(map(is_there, places[d.doc_id]))]
    folders = {os.path.dirname(path) for paths in places.values() for path in paths}  # noqa: PTH120  text, no path of ours
    moved = _moved(gone, folders) if gone else {}
    return len(documents), [GoneFile(document, moved.get(document.doc_id, "")) for document in gone]


def file_of(reader: Reader, doc_id: str) -> str | None:
    """A place where a document's file is now, as the system spells it; None if it is at none that it was seen at."""
    return next((found for path in paths_of(reader, doc_id) if (found := found_at(path)) is not None), None)


def describe_gone(gone: Sequence[GoneFile]) -> str:
    """`a.pdf (now /docs/old/a.pdf), b.pdf …`"""
    ordered = sorted(gone, key=lambda file: not file.moved_to)
    names = [f.document.filename + (f" (now {f.moved_to})" if f.moved_to else "") for f in ordered[:_SHOWN]]
    return ", ".join(names) + (" …" if len(gone) > _SHOWN else "")


def remedy_for_gone(gone: Sequence[GoneFile]) -> str:
    """The commands for files that moved, and for those that were deleted."""
    moved = [file.moved_to for file in gone if file.moved_to]
    if not moved:
        forget = f"ctx remove {gone[0].document.doc_id}" if len(gone) == 1 else _FORGET
        return f"moved? ctx ingest NEWPLACE (it keeps its id); deleted? {forget}"
    new = moved[0] if len(moved) == 1 else os.path.commonpath([os.path.dirname(path) for path in moved])  # noqa: PTH120
    rest = f"; the others moved? ctx ingest NEWPLACE; deleted? {_FORGET}" if len(moved) < len(gone) else ""
    return f"ctx ingest {shlex.quote(new)}{rest}"


def is_there(path: str) -> bool:
    """Whether a file is at a path as it is stored."""
    return found_at(path) is not None


def found_at(path: str) -> str | None:
    """The file at a path as it is stored; None if there is none. Where that cannot be told (a folder that may not be
    read, a server that does not answer) it counts as there: nothing is to be given up for that."""
    try:
        os.stat(path)  # noqa: PTH116  a stored text, and many of them
    except (FileNotFoundError, NotADirectoryError):
        # A name whose bytes are no valid text is kept with those escaped, be it a file's or a folder's.
        above, name = os.path.split(path)
        folder = found_at(above) if "\\x" in path else None
        if folder is None:
            return None
        names = [entry for entry in _names(folder) if _as_stored(entry) == name] if "\\x" in name else [name]
        places = [os.path.join(folder, entry) for entry in names]  # noqa: PTH118
        return next(filter(os.path.exists, places), None)
    except (OSError, ValueError):
        pass
    return path


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  names are all that is wanted
    except (OSError, ValueError):
        return []


def _as_stored(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _moved(gone: Sequence[DocumentInfo], folders: set[str]) -> dict[str, str]:
    """Document → a file with its content. Files of the same name are compared first."""
    sizes, names = {document.size_bytes for document in gone}, {document.filename for document in gone}
    candidates = [entry for entry in _files_below(folders) if _size_of(entry) in sizes]
    candidates.sort(key=lambda entry: entry.name not in names)
    wanted = {document.sha256: document.doc_id for document in gone}
    found: dict[str, str] = {}
    for entry in candidates[:_MOST_READ]:
        with suppress(OSError):
            doc_id = wanted.get(sha256(Path(entry)))
            if doc_id is not None:
                found.setdefault(doc_id, _as_stored(entry.path))
    return found


def _files_below(folders: set[str]) -> Iterator[os.DirEntry[str]]:
    """The files in these folders, the uppermost first. Links and hidden folders are left alone."""
    waiting = deque((folder, 0) for folder in sorted(folders))
    seen: set[str] = set()
    looked_at = 0
    while waiting and looked_at < _MOST_ENTRIES:
        folder, depth = waiting.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                looked_at += 1
                if entry.is_file(follow_symlinks=False):
                    yield entry
                elif depth < _DEEPEST and entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    waiting.append((entry.path, depth + 1))


def _size_of(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return -1
