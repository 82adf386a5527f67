"""What is in an index and how it stands; documents whose files are gone or moved; and taking documents out. Their files
are never touched, but for those that were uploaded into it.

Only the folders that documents came from are looked through, and not without end; a file is compared byte by byte only
if it has the right size.
"""

from __future__ import annotations

import os
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from research.errors import IndexUnusableError, NothingFoundError
from research.files import sha256
from research.records import DocumentInfo
from research.reports import Removal, Status
from research.store import generations
from research.store.catalog import Catalog
from research.store.generations import IndexState
from research.store.ledger import STAGE_OCR
from research.store.names import ambiguous, is_pattern
from research.store.paths import IndexPaths, holder, is_locked, write_lock
from research.store.publish import publish_in_subprocess
from research.store.reader import Reader
from research.store.vectors import REGIONS


def status_of(paths: IndexPaths, named_encoders: Sequence[str] = (), reader: Reader | None = None) -> Status:
    """Look without changing anything. `named_encoders` are those the user allows; `reader`: of what may be seen, where
    that is not all. How large the folder is tells of the rest, too."""
    writing = is_locked(paths)
    writer = holder(paths.lock) if writing else None
    if not paths.exists:
        return Status(str(paths.root), writing=writing, writer_pid=writer)
    with Catalog(paths) if reader is None else nullcontext(reader) as catalog:
        state = generations.state_of(catalog) if reader is None else IndexState(None, missing=0, surplus=0)
        waiting, counted = catalog.ledger.unfinished(), catalog.pages.totals()
        memories, unseen = catalog.memories.count()
        sessions, turns = catalog.sessions.count()
        return Status(
            index=str(paths.root),
            exists=True,
            documents=counted.documents,
            pages=counted.pages,
            pages_without_text=counted.pages_without_text,
            chunks=catalog.chunks.count(),
            pending_chunks=catalog.ledger.count_pending(),
            unfinished_documents=len({doc for stage, ids in waiting.items() if stage != STAGE_OCR for doc in ids}),
            pages_for_ocr=catalog.ledger.count_for_ocr(),
            given_up=tuple(catalog.ledger.given_up()),
            size_bytes=size_of(paths.root) if reader is None else 0,
            text_encoder=catalog.chunks.encoder(),
            visual_encoder=catalog.visual.encoder(),
            encoders_not_allowed=_not_allowed(catalog, named_encoders),
            pages_without_visual=catalog.visual.count_unseen(),
            collections_behind=state.due and (state.generation is not None or state.missing > 0),
            collections_missing=state.missing,
            collections_surplus=state.surplus,
            memories=memories,
            memories_without_vectors=unseen,
            sessions=sessions,
            turns=turns,
            items=_count_items(catalog),
            items_without_vectors=catalog.items.count_without_vectors(),
            writing=writing,
            writer_pid=writer,
        )


def size_of(folder: Path) -> int:
    """Bytes of all files below; those that vanish meanwhile count nothing."""
    total = 0
    for current, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(current, name)).st_size  # noqa: PTH118  a hot loop over bare names
            except OSError:
                continue
    return total


def _not_allowed(catalog: Reader, named: Sequence[str]) -> tuple[str, ...]:
    from research.encoders import check_allowed
    from research.errors import EncoderNotAllowed

    found = []
    for name in (catalog.chunks.encoder(), catalog.visual.encoder()):
        try:
            check_allowed(name, named)
        except EncoderNotAllowed:
            found.append(name.removeprefix(f"{REGIONS}:"))
    return tuple(dict.fromkeys(found))


def _count_items(catalog: Reader) -> dict[str, int]:
    """Kind → how many. Of experiences themselves, and not of the axes that each is found by; also of open ones."""
    experiences = catalog.items.count_parents("experience")
    return catalog.items.count() | ({"experience": experiences} if experiences else {})


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
    documents = catalog.documents.all()
    places = {document.doc_id: catalog.documents.paths(document.doc_id) for document in documents}
    gone = [d for d in documents if not any(map(is_there, places[d.doc_id]))]
    folders = {os.path.dirname(path) for paths in places.values() for path in paths}  # noqa: PTH120  text, no path of ours
    moved = _moved(gone, folders) if gone else {}
    return len(documents), [GoneFile(document, moved.get(document.doc_id, "")) for document in gone]


def file_of(reader: Reader, doc_id: str) -> str | None:
    """A place where a document's file is now, as the system spells it; None if it is at none that it was seen at."""
    return next((found for path in reader.documents.paths(doc_id) if (found := found_at(path)) is not None), None)


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


def plan_removal(paths: IndexPaths, names: Sequence[str], folder: str = "") -> Removal:
    """What these names, paths, patterns and ids mean. Only a pattern may mean several: a short name takes no shelf with
    it; and a title means none, for anybody may write one into a file."""
    chosen: dict[str, DocumentInfo] = {}
    wide = ""
    with Catalog(paths) as catalog:
        for name in names:
            found = catalog.names.select([name], folder, cautious=True)
            if len(found) > 1:
                if not is_pattern(name, found):
                    raise ambiguous(name, found)
                wide = wide or name
            chosen.update((document.doc_id, document) for document in found)
    return Removal(tuple(chosen.values()), wide)


def remove(paths: IndexPaths, documents: Sequence[DocumentInfo], *, wait: float = 0.0) -> Removal:
    """Remove these documents from the catalog, and then from the collections."""
    with write_lock(paths, wait=wait), Catalog(paths, writable=True) as catalog:
        gone = [d.filename for d in documents if catalog.documents.get(d.doc_id) is None]
        if gone:  # another process was quicker
            raise NothingFoundError(f"{', '.join(gone)} is no longer in the index", hint="see: ctx list")
        for document in documents:
            catalog.documents.remove(document.doc_id)
        return Removal(tuple(documents), published=_publish(catalog))


def _publish(catalog: Catalog) -> bool:
    # Collections that were never built have nothing to forget.
    if generations.state_of(catalog).generation is None:
        return True
    try:
        publish_in_subprocess(catalog.paths)
    except IndexUnusableError:  # no room for another copy, perhaps; no answer comes from what the catalog lacks
        return False
    return True
