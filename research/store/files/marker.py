"""The marker of an index folder. Without it, nothing in a folder is ours to remove or to overwrite."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import time
import uuid
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from research.errors import IndexUnusableError, UsageError
from research.store.catalog import schema
from research.store.files.own_files import create_file, read_file

MARKER = "ctx-index.json"
FORMAT = "ctx.index/1"
_NOTE = "This folder is an index of ctx, which removes and rewrites files of its own in here."
_MOST = 4096
_ID = re.compile(r"[0-9a-f]{32}")
_WRITING_SECONDS = 1.0  # another process may just be writing the marker

_LOGS = ("catalog.sqlite3-wal", "catalog.sqlite3-shm", "catalog.sqlite3-journal")
# What 0.1.0 left in a folder before there was anything in its catalog.
_BEFORE_THE_CATALOG = {".gitignore", "write.lock", "write.pid", "catalog.sqlite3", *_LOGS}
_IGNORE_ALL = b"*\n"


def index_id(root: Path) -> str:
    """The lasting id of the index in this folder; empty if it carries no marker. Raises for a marker not of ours."""
    deadline = time.monotonic() + _WRITING_SECONDS
    while True:
        try:
            written = read_file(root / MARKER, _MOST)
        except FileNotFoundError:
            return ""
        except PermissionError:
            raise
        except OSError as error:
            raise _strange(root) from error
        if written or time.monotonic() > deadline:
            return _parse(root, written)
        time.sleep(0.01)


def mark(root: Path) -> None:
    """Make a folder ours: one that is empty, or an index of 0.1.0, which had no marker. Any other is refused."""
    if index_id(root):
        return
    names = set(os.listdir(root)) - {MARKER}  # noqa: PTH208  names are all that is wanted
    if names and not _is_older_index(root, names):
        raise UsageError(
            f"{root} holds other files and is no index of ctx; nothing in it was touched",
            hint=f"make one inside it with: ctx init {shlex.quote(str(root))}"
            " (and leave out --index), or name a new or empty folder",
        )
    document = {"schema": FORMAT, "id": uuid.uuid4().hex, "note": _NOTE}
    try:
        create_file(root / MARKER, json.dumps(document, indent=1).encode() + b"\n")
    except FileExistsError:
        if not index_id(root):  # another process was first; an empty one was left by a kill
            (root / MARKER).unlink(missing_ok=True)
            mark(root)


def ignore_for_git(root: Path) -> None:
    """Keep an index that ctx made out of the repository it stands in."""
    create_file(root / ".gitignore", _IGNORE_ALL)


def _parse(root: Path, written: bytes) -> str:
    if not written:
        return ""
    try:
        found = json.loads(written)
        name = str(found["id"]) if found["schema"] == FORMAT else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        name = ""
    if not _ID.fullmatch(name):
        raise _strange(root)
    return name


def _strange(root: Path) -> IndexUnusableError:
    return IndexUnusableError(
        f"{root / MARKER} is not a marker of ctx, or a damaged one",
        hint="name another index with --index DIR; if this folder is an index, remove that file",
    )


def _is_older_index(root: Path, names: set[str]) -> bool:
    catalog = root / "catalog.sqlite3"
    if catalog.name in names and catalog.stat().st_size:
        return _is_our_catalog(catalog)
    if not names <= _BEFORE_THE_CATALOG:
        return False
    return ".gitignore" not in names or read_file(root / ".gitignore", 16) == _IGNORE_ALL


def _is_our_catalog(path: Path) -> bool:
    """Whether this is a catalog of ctx, by its tables and the form of its id. One of a newer ctx raises."""
    # Where the folder cannot be written, a write-ahead log cannot be opened; the file alone tells enough.
    return any(_has_our_tables(f"file:{quote(os.fsencode(path))}?{how}") for how in ("mode=ro", "immutable=1"))


def _has_our_tables(uri: str) -> bool:
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            version = schema.version_of(connection)
            row = connection.execute("SELECT value FROM meta WHERE key = 'catalog_id'").fetchone()
            connection.execute("SELECT doc_id, sha256, source_path FROM documents LIMIT 1").fetchone()
    except sqlite3.Error:
        return False
    return version > 0 and row is not None and bool(_ID.fullmatch(str(row[0])))
