"""The form of a backup: a plain zip without compression, so that nothing in it can swell when it is opened.

images/DOC_ID/00001.jpg …   page images and thumbnails
catalog.sqlite3             everything else
ctx-backup.json             what it is and what is in it; written last
"""

from __future__ import annotations

import json
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from research.errors import IndexUnusableError, NewerIndexError
from research.store import schema

FORMAT = "ctx.archive/1"
CATALOG = "catalog.sqlite3"
MANIFEST = "ctx-backup.json"

_IMAGE = re.compile(r"images/([0-9A-Za-z]{1,64})/(\d{5,9})\.(jpg|webp)")
_MOST_MANIFEST = 1 << 16
_PART = 1 << 20
_ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself."""

    schema: str
    catalog_version: int
    created: str
    documents: int
    pages: int
    images: int  # files


def add(archive: zipfile.ZipFile, name: str, source: IO[bytes]) -> None:
    """Append one file, uncompressed and readable by its owner only."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFREG | 0o600) << 16
    with archive.open(entry, "w", force_zip64=True) as target:
        while part := source.read(_PART):
            target.write(part)


def add_manifest(archive: zipfile.ZipFile, manifest: Manifest) -> None:
    entry = zipfile.ZipInfo(MANIFEST)
    entry.external_attr = (stat.S_IFREG | 0o600) << 16
    archive.writestr(entry, json.dumps(asdict(manifest), indent=1) + "\n")


class Archive:
    """A backup opened for reading and found to be one: every name is a name of ours, nothing is larger than it is."""

    def __init__(self, opened: zipfile.ZipFile, path: Path) -> None:
        self._zip = opened
        self._path = path
        self._entries = opened.infolist()
        self._check_entries()
        self.manifest = self._read_manifest()

    def images(self) -> Iterator[tuple[str, str, zipfile.ZipInfo]]:
        """doc_id, file name and entry of every image."""
        for entry in self._entries:
            match = _IMAGE.fullmatch(entry.filename)
            if match:
                yield match.group(1), f"{match.group(2)}.{match.group(3)}", entry

    def extract(self, entry: zipfile.ZipInfo | str, target: Path) -> None:
        """Write one entry to a new private file; its checksum is compared on the way."""
        try:
            with self._zip.open(entry) as source, target.open("xb") as file:
                target.chmod(0o600)
                while part := source.read(_PART):
                    file.write(part)
        except zipfile.BadZipFile as error:
            raise self._refusal("it is damaged") from error

    def _check_entries(self) -> None:
        names = [entry.filename for entry in self._entries]
        if MANIFEST not in names or CATALOG not in names:
            raise self._refusal("it is no backup of ctx, or not a whole one")
        if len(set(names)) != len(names):
            raise self._refusal("it holds a file twice")
        for entry in self._entries:
            if entry.filename not in {MANIFEST, CATALOG} and not _IMAGE.fullmatch(entry.filename):
                raise self._refusal(f"it holds a file that is not ctx's: {entry.filename[:80]!r}")
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in {0, stat.S_IFREG} or entry.is_dir():
                raise self._refusal(f"it holds something that is no file: {entry.filename!r}")
            # Nothing is stored packed, so nothing can be larger than the archive itself, alone or together.
            packed = entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size
            if packed or entry.flag_bits & _ENCRYPTED:
                raise self._refusal(f"it holds a packed file: {entry.filename!r}")
        if sum(entry.file_size for entry in self._entries) > self._path.stat().st_size:
            raise self._refusal("its files claim to be larger than it is")

    def _read_manifest(self) -> Manifest:
        if self._zip.getinfo(MANIFEST).file_size > _MOST_MANIFEST:
            raise self._refusal("its manifest is too large")
        try:
            found = json.loads(self._zip.read(MANIFEST))
            manifest = Manifest(**{name: found[name] for name in Manifest.__slots__})
            version = int(manifest.catalog_version)
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError) as error:
            raise self._refusal("its manifest cannot be read") from error
        if manifest.schema != FORMAT or version > schema.VERSION:
            raise NewerIndexError(str(self._path), version, schema.VERSION)
        return manifest

    def _refusal(self, why: str) -> IndexUnusableError:
        return refusal(self._path, why)


def refusal(path: Path, why: str) -> IndexUnusableError:
    return IndexUnusableError(f"{path} cannot be restored: {why}", hint="nothing was changed; try another backup")


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Raises `IndexUnusableError` for anything that is not a sound backup."""
    try:
        opened = zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise IndexUnusableError(f"there is no file {path}", hint="make one with: ctx backup FILE") from error
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise refusal(path, f"it is no backup of ctx, or not a whole one ({error})") from error
    with opened:
        yield Archive(opened, path)
