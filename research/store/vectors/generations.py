"""Generations of the Chroma folder: finished copies that are read and never written again.

Chroma rewrites its neighbour files in place, so a killed writer or a second process leaves them torn. Here a
writer works on a private copy and publishes it by one rename; readers open only what was published. A generation
says up to which vector of the catalog it goes, so whatever came later can be searched beside it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

from research.store.files.own_files import make_folder, own_entries, read_file, refuse_link, remove_tree, sync

_NAME = re.compile(r"gen-[0-9]{6,18}")
_MANIFEST = "generation.json"
_DRAFT = "draft"
_MOST_MANIFEST = 1 << 24
# Chroma's own database changes when it is merely read, so no stamp can guard it; `_database_opens` does.
_UNSTAMPED = "chroma.sqlite3"


@dataclass(frozen=True, slots=True)
class Stamp:
    """One file of a generation as it was published."""

    name: str
    size: int
    mtime_ns: int
    crc: int


@dataclass(frozen=True, slots=True)
class Generation:
    """A published copy of the collections."""

    path: Path
    number: int
    catalog_id: str
    upto: int  # the last vector of the catalog that is in it
    text_records: int
    visual_records: int
    visual_upto: int = 0  # the last of the visual encoder's pages that is in it
    revision: int = 0  # of the catalog's metadata, see store.revision


def newest(folder: Path, catalog_id: str) -> Generation | None:
    """The newest generation of this catalog whose files are as they were published."""
    for number, path in reversed(_numbered(folder)):
        generation = _read(path, number)
        if generation is not None and generation.catalog_id == catalog_id:
            return generation
    return None


def start_draft(folder: Path, base: Generation | None) -> Path:
    """An empty private folder, or a copy of `base`, to write into."""
    draft = folder / _DRAFT
    make_folder(folder)
    drop_draft(folder)
    refuse_link(draft)
    if base is None:
        draft.mkdir(mode=0o700)
    else:
        shutil.copytree(base.path, draft)
        (draft / _MANIFEST).unlink(missing_ok=True)  # a reader may have condemned it meanwhile
    return draft


def publish_draft(
    folder: Path,
    draft: Path,
    *,
    catalog_id: str,
    upto: int,
    text_records: int,
    visual_records: int,
    visual_upto: int = 0,
    revision: int = 0,
) -> Generation:
    """Make the draft the newest generation. Older ones go, except the one readers may be opening now."""
    number = max((n for n, _ in _numbered(folder)), default=0) + 1
    stamps = [_stamp(path, draft) for path in _data_files(draft)]
    for path in draft.rglob("*"):
        sync(path)
    manifest = {
        "catalog_id": catalog_id,
        "upto": upto,
        "text_records": text_records,
        "visual_records": visual_records,
        "visual_upto": visual_upto,
        "revision": revision,
        "files": [asdict(stamp) for stamp in stamps],
    }
    (draft / _MANIFEST).write_text(json.dumps(manifest, indent=1))
    sync(draft / _MANIFEST)
    target = folder / f"gen-{number:06d}"
    draft.rename(target)
    sync(folder)
    drop_older(folder, number)
    return Generation(target, number, catalog_id, upto, text_records, visual_records, visual_upto, revision)


def adopt(folder: Path, generation: Generation) -> Generation:
    """Make a generation that was published elsewhere the newest here. Readers of another catalog pass it by."""
    make_folder(folder)
    number = max((n for n, _ in _numbered(folder)), default=0) + 1
    target = folder / f"gen-{number:06d}"
    generation.path.rename(target)
    sync(folder)
    return replace(generation, path=target, number=number)


def drop_older(folder: Path, number: int) -> None:
    """Remove what came before a generation, except the last one, which readers may be opening now."""
    for older, path in _numbered(folder):
        if older < number - 1:
            remove_tree(path)


def has_draft(folder: Path) -> bool:
    return (folder / _DRAFT).exists()


def drop_draft(folder: Path) -> None:
    """Remove what a stopped writer left. Only for the holder of the write lock."""
    if not folder.is_symlink():
        remove_tree(folder / _DRAFT)


def intact(generation: Generation) -> bool:
    """Every file compared byte by byte, by its checksum, with what was published."""
    try:
        manifest = json.loads((generation.path / _MANIFEST).read_text())
        return all(_crc(generation.path / entry["name"]) == entry["crc"] for entry in manifest["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def condemn(generation: Generation) -> None:
    """Mark a generation that could not be read, so that nobody opens it again and the next repair builds anew."""
    with suppress(OSError):  # in a read-only folder it stays, and every reader goes without it
        (generation.path / _MANIFEST).unlink()


def _read(path: Path, number: int) -> Generation | None:
    try:
        manifest = json.loads(read_file(path / _MANIFEST, _MOST_MANIFEST))
        generation = Generation(
            path,
            number,
            str(manifest["catalog_id"]),
            int(manifest["upto"]),
            int(manifest["text_records"]),
            int(manifest["visual_records"]),
            int(manifest.get("visual_upto", 0)),
            int(manifest.get("revision", 0)),
        )
        stamps = [Stamp(**entry) for entry in manifest["files"]]
        whole = {stamp.name for stamp in stamps} <= set(_plain_files(path))
        sound = whole and all(_unchanged(path, stamp) for stamp in stamps) and _database_opens(path / _UNSTAMPED)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, sqlite3.Error):
        return None
    return generation if sound else None


def _plain_files(folder: Path, below: str = "") -> Iterator[str]:
    """The names of the files in a generation. `OSError` for anything but files and folders: we write no links, and
    Chroma would write through one."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _plain_files(Path(entry), f"{below}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield below + entry.name
            else:
                raise OSError(f"{entry.name} is no file")


def _unchanged(path: Path, stamp: Stamp) -> bool:
    # A torn neighbour file can crash the process that opens it, so it is checked before, not after.
    found = (path / stamp.name).stat()
    if found.st_size != stamp.size:
        return False
    return found.st_mtime_ns == stamp.mtime_ns or _crc(path / stamp.name) == stamp.crc


def _database_opens(path: Path) -> bool:
    """Whether Chroma's database is one and knows its collections: quick, and enough against a torn or empty file."""
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
        count = database.execute("SELECT COUNT(*) FROM segments JOIN collections c ON collection = c.id")
        return bool(count.fetchone()[0])


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    found = [path for path in own_entries(folder, _NAME) if not path.is_symlink()]
    return sorted((int(path.name.removeprefix("gen-")), path) for path in found)


def _data_files(draft: Path) -> list[Path]:
    return sorted(p for p in draft.rglob("*") if p.is_file() and not p.name.startswith(_UNSTAMPED))


def _stamp(path: Path, draft: Path) -> Stamp:
    stat = path.stat()
    return Stamp(path.relative_to(draft).as_posix(), stat.st_size, stat.st_mtime_ns, _crc(path))


def _crc(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            value = zlib.crc32(part, value)
    return value
