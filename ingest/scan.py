"""The files of a run: finding them, telling whether they changed or are gone, and following folders.

A file that cannot be seen is not always gone. What cannot be looked at (a folder that may not be read, a server that
does not answer) counts as there, and so does what a link led to that now leads nowhere. A drive that is not mounted
leaves an empty folder behind: what was in one is told as gone, but never removed for that.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from research.errors import CtxError, DocumentError, NothingFoundError, UsageError
from research.store import CATALOG, MARKER, FileStamp, found_at, is_own_name

_SUFFIX = ".pdf"
_HASH_PART = 1 << 20

File = TypeVar("File")

Identity = tuple[int, int]
"""A folder itself, whatever is mounted on it: device and inode."""

_SETTLE_MS = 1_000  # files are copied in pieces: a run waits until nothing has happened for this long
_LONGEST_MS = 10_000  # and at most so long, where something happens all the time


@dataclass
class Scanned(Generic[File]):
    """The files of a run, PDFs or others, and what stood in the way of more."""

    files: list[File] = field(default_factory=list)
    unreadable: list[tuple[Path | str, str]] = field(default_factory=list)  # files and folders, and why
    external_links: list[Path | str] = field(default_factory=list)  # links out of a folder that were not followed
    dangling_links: list[Path | str] = field(default_factory=list)  # links that lead nowhere
    passed_over: Counter[str] = field(default_factory=Counter)  # other files in the folders, by ending or by reason

    @property
    def empty(self) -> bool:
        return not self.files and not self.unreadable


def scan(paths: Sequence[Path], *, follow_links: bool = False) -> Scanned[Path]:
    """Find the PDFs to ingest: files as given, folders searched to the bottom. Each file once, in a stable order.

    Links that leave the folder they stand in are followed only with `follow_links`; a link to a file that is there
    anyway adds nothing. Folders that cannot be read are told.
    """
    search = _Search(follow_links)
    for path in paths:
        search.add(path)
    return search.result()


def no_files(paths: Sequence[Path], found: Scanned[Path]) -> NothingFoundError:
    """Say what is wrong with paths that hold no PDF."""
    hint = "ctx reads files whose name ends in .pdf"
    if found.external_links:
        hint = "its links lead elsewhere; take them with --follow-links"
    elif found.dangling_links:
        hint = f"its links lead nowhere: {to_utf8(found.dangling_links[0])}"
    return NothingFoundError(f"no PDF files in {', '.join(map(to_utf8, paths))}", hint=hint)


class _Search:
    def __init__(self, follow_links: bool) -> None:
        self._follow = follow_links
        self._found = Scanned[Path]()
        self._candidates: list[tuple[Path, bool]] = []  # with whether it is a link
        self._folders: set[tuple[int, int]] = set()  # entered before; this is where loops end
        self._counted: set[tuple[int, int]] = set()  # entered from any of the paths given

    def add(self, path: Path) -> None:
        with suppress(OSError):
            if path.is_dir():
                self._folders.clear()  # a folder given twice, or inside another, is no loop
                self._walk(path.absolute(), path.resolve())
                return
            if path.is_file():
                self._candidates.append((path.absolute(), False))
                return
        raise path_problem(path) or UsageError(f"no such file or folder: {to_utf8(path)}")

    def result(self) -> Scanned[Path]:
        """Real files before links to them, so that a file goes by its own name."""
        own = {os.path.realpath(path) for path, is_link in self._candidates if not is_link}
        seen: set[str] = set()
        for path, is_link in self._candidates:
            real = os.path.realpath(path)
            if real not in seen and not (is_link and real in own):
                seen.add(real)
                self._found.files.append(path)
        return self._found

    def _walk(self, folder: Path, top: Path) -> None:
        """The folder and those below it. A list of what is left to do: folders can be nested deeper than calls."""
        waiting = [(folder, True)]
        while waiting:
            current, counts = waiting.pop()
            try:
                status = current.stat()
                identity = (status.st_dev, status.st_ino)
                if identity in self._folders:
                    continue
                self._folders.add(identity)
                with os.scandir(current) as entries:
                    # Hidden files and folders hold caches, version control and our own index, not documents.
                    shown = sorted((e for e in entries if not e.name.startswith(".")), key=lambda entry: entry.name)
            except OSError as error:
                self._found.unreadable.append((current, f"the folder {os_reason(error)}"))
                continue
            counts = counts and identity not in self._counted
            self._counted.add(identity)
            is_index = any(entry.name in (MARKER, CATALOG) for entry in shown)
            # What an index keeps in its folder is its own: also the files that were uploaded into it.
            others = [entry for entry in shown if not (is_index and is_own_name(entry.name))]
            folders = [(Path(entry), counts) for entry in others if self._look_at(entry, top, counted=counts)]
            waiting += reversed(folders)

    def _look_at(self, entry: os.DirEntry[str], top: Path, *, counted: bool) -> bool:
        """Note a file; say whether the entry is a folder to enter. `counted`: a file of another kind is passed over,
        and told."""
        path = Path(entry)
        try:
            is_folder, is_link = entry.is_dir(), entry.is_symlink()
            # Never devices, pipes or sockets: opening them can block. Links that lead nowhere are no files either.
            if not is_folder and not (entry.name.lower().endswith(_SUFFIX) and entry.is_file()):
                if is_link and entry.name.lower().endswith(_SUFFIX) and not path.exists():
                    self._found.dangling_links.append(path)
                elif counted and entry.is_file():
                    self._found.passed_over[path.suffix.lower()] += 1
                return False
            if is_link and not self._follow:
                if not path.resolve().is_relative_to(top):
                    self._found.external_links.append(path)
                    return False
                if is_folder:
                    return False  # what it leads to is found by its own name
        except OSError as error:
            self._found.unreadable.append((path, os_reason(error)))
            return False
        if not is_folder:
            self._candidates.append((path, is_link))
        return is_folder


def path_problem(path: Path) -> UsageError | None:
    """Say what is wrong with a path that was given, if it is neither a file nor a folder."""
    try:
        if path.is_dir() or path.is_file():
            return None
        problem = "neither a file nor a folder" if path.exists() else "no such file or folder"
        if path.is_symlink() and not path.exists():
            problem = "the link leads nowhere"
    except OSError as error:
        problem = f"cannot be reached ({error.strerror})"
    return UsageError(f"{problem}: {to_utf8(path)}", hint="check the spelling of the path")


def stamp_of(path: Path) -> FileStamp:
    """Take a file's identity as it is now. Raises `DocumentError` if it cannot be reached."""
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(error) from error
    name = to_utf8(os.path.normpath(path))
    return FileStamp(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def hash_of(path: Path) -> str:
    """Return the SHA-256 of the content."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise DocumentError("it is no longer a file", code="unreadable")
            while part := file.read(_HASH_PART):
                digest.update(part)
    except OSError as error:
        raise _unreadable(error) from error
    return digest.hexdigest()


def to_utf8(path: Path | str) -> str:
    """Write a path as text that a database and a terminal can hold, even where its bytes are no valid text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _open_without_waiting(path: str, flags: int) -> int:
    """A pipe put in the file's place since it was found must not hold us up."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def os_reason(error: OSError) -> str:
    return f"cannot be read: {(error.strerror or str(error)).lower()}"


def _unreadable(error: OSError) -> DocumentError:
    return DocumentError(f"cannot be read: {error.strerror or error}", code="unreadable")


def folders_of(files: Iterable[str]) -> dict[str, Identity]:
    """Return the folders above files, as they are now."""
    folders = {str(folder) for file in files for folder in Path(file).parents}
    found = {folder: _identity(folder) for folder in folders}
    return {folder: identity for folder, identity in found.items() if identity is not None}


def folder_above(path: str) -> str:
    """Find the nearest folder above a lost file that is there; empty if a link stands in between that leads nowhere."""
    at = path
    while found_at(at) is None:
        if os.path.islink(at):  # noqa: PTH114  a stored text
            return ""
        at = os.path.dirname(at)  # noqa: PTH120
    return at


def removable(lost: Iterable[str], known: Mapping[str, Identity]) -> tuple[list[str], list[str]]:
    """Tell of lost files those that may be removed, and the folders that keep the others: they look unmounted."""
    above = {path: folder_above(path) for path in lost}
    empty = {folder for folder in above.values() if _looks_unmounted(folder, known)}
    return [path for path, folder in above.items() if folder not in empty], sorted(empty)


def _looks_unmounted(folder: str, known: Mapping[str, Identity]) -> bool:
    """Whether a folder holds nothing at all, and is not known to have held something itself."""
    real = found_at(folder) or folder
    try:
        with os.scandir(real) as entries:
            empty = next(entries, None) is None
    except NotADirectoryError:  # a file has taken its name
        return False
    except OSError:  # nobody knows what is in it
        return True
    return empty and (folder not in known or known[folder] != _identity(real))


def _identity(folder: str) -> Identity | None:
    try:
        status = os.stat(folder)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


class PdfFilter:
    """Which changes concern the index: PDFs, and folders that came or went with what is in them. Hidden files do not,
    and neither does what is written into the index itself."""

    def __init__(self, tops: Sequence[Path], index: Path) -> None:
        self._tops = [top.absolute() for top in tops]
        self._index = index.absolute()
        self.folders: dict[str, Identity] = {}

    def remember(self, files: Iterable[str]) -> None:
        """The folders of these files: one that is deleted leaves no other sign of what it was. Those of before stay,
        for what was lost with one may still be in the index."""
        self.folders |= folders_of(files)

    def __call__(self, change: object, path: str) -> bool:
        place = Path(path).absolute()
        if place.is_relative_to(self._index) or self._is_hidden(place):
            return False
        if place in self._tops:  # of its own changes only its end concerns us
            return not place.is_dir()
        return place.suffix.lower() == ".pdf" or str(place) in self.folders or place.is_dir()

    def _is_hidden(self, path: Path) -> bool:
        top = next((top for top in self._tops if path.is_relative_to(top)), None)
        below = path.relative_to(top).parts if top else path.parts
        return any(part.startswith(".") for part in below)


def changes(folders: Sequence[Path], wanted: PdfFilter, *, poll: bool = False) -> Iterator[None]:
    """Yield as soon as the folders are watched, for what happened before; then one whenever something has changed
    and come to rest. Ends never; Ctrl-C is the caller's.

    `poll` looks every few hundred milliseconds instead of being told by the system: for network drives.
    """
    from watchfiles import watch

    begun = False
    try:
        for changed in watch(
            *(folder.absolute() for folder in folders),
            watch_filter=wanted,
            debounce=_LONGEST_MS,
            step=_SETTLE_MS,
            rust_timeout=_SETTLE_MS,
            yield_on_timeout=True,
            force_polling=poll or None,
        ):
            if changed or not begun:
                begun = True
                yield
    except OSError as error:
        raise CtxError(
            f"the folder can no longer be watched: {error.strerror or error}",
            hint="--poll works without the system's help, also on network drives",
        ) from error
