"""Files that are gone: documents were read from them, and nothing is there any more.

A file that cannot be seen is not always gone. What cannot be looked at (a folder that may not be read, a server that
does not answer) counts as there, and so does what a link led to that now leads nowhere. A drive that is not mounted
leaves an empty folder behind: what was in one is told as gone, but never removed for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ingest.scan import to_utf8
from ingest.stages import Work
from research.store.catalog.catalog import Catalog
from research.store.catalog.document_writes import forget_path
from research.store.catalog.documents import paths_below
from research.store.upkeep.gone_files import found_at

Identity = tuple[int, int]
"""A folder itself, whatever is mounted on it: device and inode."""


def find_gone(catalog: Catalog, paths: Sequence[Path]) -> list[str]:
    """The places below the folders among `paths` where documents were. A file that moved within them is not gone."""
    folders = [to_utf8(os.path.normpath(path.absolute())) for path in paths if path.is_dir()]
    known = {path for folder in folders for path in paths_below(catalog, folder)}
    return sorted(path for path in known if found_at(path) is None and folder_above(path))


def tell_gone(
    work: Work, paths: Sequence[Path], *, prune: bool, known_folders: Mapping[str, Identity] | None = None
) -> None:
    """Note in the summary what is gone; with `prune` the index forgets it. A document that lies at another place, too,
    stays and goes by that one. `known_folders`: those that held files a while ago, and what they were then; an empty
    one that is still the same has been emptied."""
    summary = work.summary
    summary.gone = find_gone(work.catalog, paths)
    if not prune:
        return
    above = {path: folder_above(path) for path in summary.gone}
    empty = {folder for folder in above.values() if looks_unmounted(folder, known_folders or {})}
    summary.empty_folders = sorted(empty)
    for path in (path for path, folder in above.items() if folder not in empty):
        removed = forget_path(work.catalog, path)
        if removed is not None:
            summary.removed.append(removed)


def folders_of(files: Iterable[str]) -> dict[str, Identity]:
    """The folders above these files, as they are now."""
    folders = {str(folder) for file in files for folder in Path(file).parents}
    found = {folder: _identity(folder) for folder in folders}
    return {folder: identity for folder, identity in found.items() if identity is not None}


def folder_above(path: str) -> str:
    """The nearest folder above a lost file that is there; empty if a link stands in between that leads nowhere."""
    at = path
    while found_at(at) is None:
        if os.path.islink(at):  # noqa: PTH114  a stored text
            return ""
        at = os.path.dirname(at)  # noqa: PTH120
    return at


def looks_unmounted(folder: str, known: Mapping[str, Identity]) -> bool:
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
