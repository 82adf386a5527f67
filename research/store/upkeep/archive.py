"""The form of a backup: a plain zip without compression, so that nothing in it can swell when it is opened.

images/DOC_ID/00001.jpg …   page images and thumbnails
catalog.sqlite3             everything else
ctx-backup.json             what it is and what is in it; written last
"""

from __future__ import annotations

import json
import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from research.errors import IndexUnusableError, NewerIndexError
from research.store.catalog import schema
from research.store.upkeep.strict_json import strict_json

FORMAT = "ctx.archive/1"
CATALOG = "catalog.sqlite3"
MANIFEST = "ctx-backup.json"

_IMAGE = re.compile(r"images/([0-9A-Za-z]{1,64})/(\d{5,9})\.(jpg|webp)")
_FORMATS = re.compile(r"ctx\.archive/\d{1,9}", re.ASCII)
_MOST_MANIFEST = 1 << 16
_MOST_IMAGE = 1 << 25  # bytes; ours have some hundred thousand
_MOST_COUNT = 1 << 53
_PART = 1 << 20
_ENCRYPTED = 0x1
# What zipfile raises for an entry that is not what the archive's list of contents says.
_BROKEN = (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError, struct.error)


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


def is_image(name: str, head: bytes, size: int) -> bool:
    """Whether a file that begins like this is of the kind its name says, and no larger than a page image may be."""
    if size > _MOST_IMAGE:
        return False
    if name.endswith(".jpg"):
        return head.startswith(b"\xff\xd8\xff")
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


HEAD = 12  # bytes that `is_image` looks at


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
        except _BROKEN as error:
            raise self.refusal("it is damaged") from error

    def extract_image(self, entry: zipfile.ZipInfo, target: Path) -> None:
        """The same for an image, which must be one."""
        try:
            with self._zip.open(entry) as source:
                head = source.read(HEAD)
        except _BROKEN as error:
            raise self.refusal("it is damaged") from error
        if not is_image(target.name, head, entry.file_size):
            raise self.refusal(f"it holds a file that is no image of a page: {entry.filename!r}")
        self.extract(entry, target)

    def _check_entries(self) -> None:
        names = [entry.filename for entry in self._entries]
        if MANIFEST not in names or CATALOG not in names:
            raise self.refusal("it is no backup of ctx, or not a whole one")
        if len(set(names)) != len(names):
            raise self.refusal("it holds a file twice")
        for entry in self._entries:
            if entry.filename not in {MANIFEST, CATALOG} and not _IMAGE.fullmatch(entry.filename):
                raise self.refusal(f"it holds a file that is not ctx's: {entry.filename[:80]!r}")
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in {0, stat.S_IFREG} or entry.is_dir():
                raise self.refusal(f"it holds something that is no file: {entry.filename!r}")
            # Nothing is stored packed, so nothing can be larger than the archive itself, alone or together.
            packed = entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size
            if packed or entry.flag_bits & _ENCRYPTED:
                raise self.refusal(f"it holds a packed file: {entry.filename!r}")
        if sum(entry.file_size for entry in self._entries) > self._path.stat().st_size:
            raise self.refusal("its files claim to be larger than it is")

    def _read_manifest(self) -> Manifest:
        if self._zip.getinfo(MANIFEST).file_size > _MOST_MANIFEST:
            raise self.refusal("its manifest is too large")
        try:
            manifest = _manifest(strict_json(self._zip.read(MANIFEST).decode()))
        except (*_BROKEN, ValueError) as error:
            raise self.refusal(f"its manifest cannot be read ({error})") from error
        if manifest.schema != FORMAT or manifest.catalog_version > schema.VERSION:
            raise NewerIndexError(str(self._path), manifest.catalog_version, schema.VERSION)
        return manifest

    def refusal(self, why: str) -> IndexUnusableError:
        return refusal(self._path, why)


def _manifest(found: Any) -> Manifest:
    """Raises ValueError for anything that `add_manifest` would not have written."""
    found = found if isinstance(found, dict) else {}
    for name in ("schema", "created"):
        if type(found.get(name)) is not str or len(found[name]) > 100:
            raise ValueError(f"{name} is no short text")
    if not _FORMATS.fullmatch(found["schema"]):
        raise ValueError("it is of another program")
    for name in ("catalog_version", "documents", "pages", "images"):
        if type(found.get(name)) is not int or not 0 <= found[name] <= _MOST_COUNT:
            raise ValueError(f"{name} is no count")
    return Manifest(**{name: found[name] for name in Manifest.__slots__})


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
