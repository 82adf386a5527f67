"""The marker of an index folder.

Without it, nothing in a folder is ours to remove or to overwrite.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
import uuid
from pathlib import Path

from research.errors import IndexUnusableError, OlderIndexError, UsageError
from research.store.files.paths import CATALOG, MARKER, create_file, read_file

FORMAT = "ctx.index/1"
_NOTE = "This folder is an index of ctx, which removes and rewrites files of its own in here."
_MOST = 4096
_ID = re.compile(r"[0-9a-f]{32}")
_WRITING_SECONDS = 1.0  # another process may just be writing the marker

_LAST_UNMARKED = 13  # number of a schema
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
    """Make an empty folder ours. Any other is refused."""
    if index_id(root):
        return
    names = set(os.listdir(root)) - {MARKER}  # noqa: PTH208  names are all that is wanted
    if names:
        _refuse_older(root)
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


def _refuse_older(root: Path) -> None:
    """Raise if this folder is an index of an older ctx: the first had no marker."""
    try:
        with (root / CATALOG).open("rb") as file:
            head = file.read(64)
    except OSError:
        return
    version = int.from_bytes(head[60:64], "big")  # what SQLite calls user_version
    if head.startswith(b"SQLite format 3\0") and 0 < version <= _LAST_UNMARKED:
        raise OlderIndexError.of(f"the index {root}")


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
