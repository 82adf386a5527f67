"""Files beside the catalog: page images, put in place and removed with their documents; and uploads.

Uploads were sent to a server and lie nowhere else: they are inside the index, durable before they are acknowledged.

    uploads/.incoming-<32 hex>/<name>.pdf   being received; whoever writes it holds its lock
    uploads/<document's id>/<name>.pdf      received whole: one folder a content, which the id is made of
                            waiting         there until an ingest is through with it
                            failed.json     why it could not be read

A folder comes into its place in one rename, with `waiting` in it: a server that is killed finds at its next start what
it had accepted. The file of a document that is removed goes with it, for it is the index's own. One that took too long
or met a mistake of ours stays, with the reason, until somebody sends or ingests it again or takes it away: `ctx doctor`
tells of it. One that nobody can read does not stay.
A backup holds none of them: the text and the pictures of their pages are in it, the originals are not.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from research.store.paths import (
    IndexPaths,
    create_file,
    make_folder,
    own_entries,
    read_file,
    refuse_link,
    remove_file,
    remove_tree,
    sync,
)

DOC_ID = re.compile(r"[0-9a-f]{16}")


def adopt_images(paths: IndexPaths, doc_id: str, drawn: Path) -> None:
    """Put a freshly drawn folder in the document's place."""
    remove_images(paths, doc_id)
    if drawn.is_dir():
        make_folder(paths.images)
        drawn.rename(paths.image_folder(doc_id))


def remove_images(paths: IndexPaths, doc_id: str) -> None:
    """Remove a document's images. An id that is none of ours names no folder of ours."""
    if DOC_ID.fullmatch(doc_id) and not paths.images.is_symlink():
        remove_tree(paths.image_folder(doc_id))
        remove_file(paths.image_folder(doc_id))  # a link in its place, which the line before leaves alone


def sweep_images(paths: IndexPaths, known: set[str]) -> None:
    """Remove folders of documents that are gone, and what a stopped run left half drawn."""
    for folder in strange_images(paths, known):
        remove_images(paths, folder.name)


def strange_images(paths: IndexPaths, known: set[str]) -> list[Path]:
    """Folders of documents that are gone. What has no name of ours is not ours to judge."""
    return [folder for folder in own_entries(paths.images, DOC_ID) if folder.name not in known]


_WAITING, _FAILED = "waiting", "failed.json"
_PASSING = re.compile(r"\.(incoming|removed)-[0-9a-f]{32}")
_SUFFIX = ".pdf"
_TRIES = 10
_OLD_SECONDS = 3600.0  # a folder of `Incoming` without a file in it: its process ended between two lines
_MOST = 1 << 16
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was received. `fresh`: it was not there before."""

    path: Path
    doc_id: str
    size: int
    fresh: bool = False

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def folder(self) -> Path:
        return self.path.parent


@dataclass(frozen=True, slots=True)
class LeftUpload:
    """One that is in no document. `reason`: why it could not be read; empty if it waits, or was left by a restore."""

    upload: Upload
    waiting: bool
    reason: str = ""


class Incoming:
    """A file on its way in. `keep` or `drop` ends it; raises `OSError`, as for a full disk."""

    def __init__(self, paths: IndexPaths, name: str) -> None:
        """`name`: a plain file name that ends in .pdf; whoever calls has made it safe."""
        paths.create()
        make_folder(paths.uploads)
        self._paths = paths
        self._name = name
        self._digest = hashlib.sha256()
        self.size = 0
        self._folder, self._file = _open_new(paths.uploads, name)

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)

    def keep(self) -> Upload:
        """From here on it survives whatever happens to this process or the machine. The same content twice is one file,
        with the name it came by first. If that fails, nothing is left of it."""
        try:
            return self._keep()
        except BaseException:
            self.drop()
            raise

    def _keep(self) -> Upload:
        self._file.flush()
        os.fsync(self._file.fileno())
        create_file(self._folder / _WAITING, b"0")
        sync(self._folder / _WAITING)
        sync(self._folder)
        sync(self._paths.root)  # the folder of all uploads may be new
        doc_id = self._digest.hexdigest()[:16]
        target = self._paths.uploads / doc_id
        for _ in range(_TRIES):
            refuse_link(target)
            try:
                self._folder.rename(target)
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
            else:
                sync(self._paths.uploads)
                self._file.close()
                return Upload(target / self._name, doc_id, self.size, fresh=True)
            there = _join(target, doc_id, self.size)
            if there is not None:
                self.drop()
                return there
        raise OSError(f"no room can be made for {doc_id}")

    def drop(self) -> None:
        with suppress(OSError):
            self._file.close()
        remove_tree(self._folder)


def waiting_uploads(paths: IndexPaths) -> list[Upload]:
    """Those that no ingest is through with, by id; of an index that is not there none."""
    return [upload for upload in all_uploads(paths) if (upload.folder / _WAITING).exists()]


def all_uploads(paths: IndexPaths) -> list[Upload]:
    folders = sorted(own_entries(paths.uploads, DOC_ID))
    return [upload for folder in folders if (upload := _upload_in(folder)) is not None]


def settle(upload: Upload) -> None:
    """An ingest is through with it."""
    remove_file(upload.folder / _FAILED)
    remove_file(upload.folder / _WAITING)


def fail(upload: Upload, code: str, reason: str) -> None:
    """It could not be read, and is not tried again by itself."""
    with suppress(OSError):  # the folder was removed, or the disk is full: then it waits, and is tried once more
        _write(upload.folder / _FAILED, json.dumps({"code": code, "reason": reason}).encode())
        remove_file(upload.folder / _WAITING)


def remove(paths: IndexPaths, doc_id: str) -> None:
    """Remove the file of a document, in one step for whoever looks. Files elsewhere are not ours."""
    if not DOC_ID.fullmatch(doc_id) or paths.uploads.is_symlink():
        return
    folder = paths.uploads / doc_id
    aside = paths.uploads / f".removed-{uuid.uuid4().hex}"
    with suppress(OSError):
        folder.rename(aside)  # of a link only the link
        remove_tree(aside)
        remove_file(aside)


def left_uploads(paths: IndexPaths, known: set[str]) -> list[LeftUpload]:
    """Those that are in no document: failed, waiting, or left by a restore. `known`: the ids of all documents."""
    strangers = [upload for upload in all_uploads(paths) if upload.doc_id not in known]
    return [LeftUpload(each, (each.folder / _WAITING).exists(), _reason(each)) for each in strangers]


def dead_passings(paths: IndexPaths) -> list[Path]:
    """What processes left that ended while they received or removed a file."""
    return [folder for folder in own_entries(paths.uploads, _PASSING) if _is_dead(folder)]


def sweep(paths: IndexPaths) -> None:
    for folder in dead_passings(paths):
        remove_tree(folder)


def _open_new(uploads: Path, name: str) -> tuple[Path, BinaryIO]:
    """A new folder and the locked file in it. A sweep may take it for a dead one until it is locked: then a next."""
    for _ in range(_TRIES):
        folder = uploads / f".incoming-{uuid.uuid4().hex}"
        folder.mkdir(mode=0o700)
        path = folder / name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            continue
        except BaseException:
            remove_tree(folder)
            raise
        with suppress(OSError):  # a file system without locks: then only age tells
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file = os.fdopen(descriptor, "wb")
        if path.exists():
            return folder, file
        file.close()
    raise OSError(f"no folder can be kept in {uploads}")


def _is_dead(folder: Path) -> bool:
    if folder.name.startswith(".removed-"):
        return True
    try:
        files = [path for path in folder.iterdir() if path.suffix == _SUFFIX]
        if not files:
            return time.time() - folder.stat().st_mtime > _OLD_SECONDS
        descriptor = os.open(files[0], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _join(target: Path, doc_id: str, size: int) -> Upload | None:
    """The same content that was there before; it waits once more. None if it was removed meanwhile, or is not whole,
    and then there is room."""
    there = _upload_in(target)
    if there is None or there.size != size:
        if target.exists():
            remove_tree(target)
        return None
    try:
        remove_file(target / _FAILED)
        _write(target / _WAITING, b"0")
        sync(target)
    except FileNotFoundError:
        return None
    return Upload(there.path, doc_id, size)


def _upload_in(folder: Path) -> Upload | None:
    if folder.is_symlink():
        return None
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            found = path.lstat()
            if path.suffix == _SUFFIX and stat.S_ISREG(found.st_mode):
                return Upload(path, folder.name, found.st_size)
    return None


def _write(path: Path, data: bytes) -> None:
    """A small file of ours, whole or as it was."""
    passing = path.with_name(f"{path.name}-{uuid.uuid4().hex}")
    try:
        create_file(passing, data)
        sync(passing)
        passing.replace(path)
    except BaseException:
        remove_file(passing)
        raise


def _reason(upload: Upload) -> str:
    with suppress(OSError, ValueError):
        found = json.loads(read_file(upload.folder / _FAILED, _MOST))
        return str(found.get("reason", "")) if isinstance(found, dict) else ""
    return ""
