"""Finding the files of a run and telling whether they changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from research.errors import DocumentError, NothingFoundError, UsageError
from research.store.documents import FileStamp

_SUFFIX = ".pdf"
_HASH_PART = 1 << 20


def scan(paths: Sequence[Path]) -> list[Path]:
    """The PDFs to ingest: files as given, folders searched to the bottom. Each file once, in a stable order."""
    found: dict[str, Path] = {}
    for path in paths:
        for file in _files_at(path):
            found.setdefault(os.path.normpath(file), file)
    if not found:
        where = ", ".join(storable(path) for path in paths)
        raise NothingFoundError(f"no PDF files in {where}", hint="ctx reads files whose name ends in .pdf")
    return list(found.values())


def _files_at(path: Path) -> Iterable[Path]:
    try:
        if path.is_dir():
            return _walk(path.absolute())
        if path.is_file():
            return [path.absolute()]
        problem = "neither a file nor a folder" if path.exists() else "no such file or folder"
    except OSError as error:
        problem = f"cannot be reached ({error.strerror})"
    raise UsageError(f"{problem}: {storable(path)}", hint="check the spelling of the path")


def stamp_of(path: Path) -> FileStamp:
    """The file's identity now. Raises `DocumentError` if it cannot be reached."""
    try:
        stat = path.stat()
    except OSError as error:
        raise _unreadable(error) from error
    return FileStamp(storable(os.path.normpath(path)), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def hash_of(path: Path) -> str:
    """SHA-256 of the content."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(_HASH_PART):
                digest.update(part)
    except OSError as error:
        raise _unreadable(error) from error
    return digest.hexdigest()


def storable(path: Path | str) -> str:
    """A path as text that a database and a terminal can hold, even where its bytes are no valid text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _walk(folder: Path) -> Iterator[Path]:
    # Hidden folders hold caches, version control and our own index, not documents.
    for current, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(current, name)
            if name.lower().endswith(_SUFFIX) and not name.startswith(".") and _belongs(path, folder):
                yield path


def _belongs(path: Path, folder: Path) -> bool:
    """Real files, and links that stay inside the folder; never devices or pipes, which would block."""
    if path.is_symlink():
        # A link that leads back to itself is no file; resolving it would raise.
        return path.is_file() and path.resolve().is_relative_to(folder.resolve())
    return path.is_file()


def _unreadable(error: OSError) -> DocumentError:
    return DocumentError("unreadable", f"cannot be read: {error.strerror or error}")
