"""Bringing the collections up to the catalog when a question finds them stale and nobody else is writing."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

from research.errors import FREE_SPACE, CtxError, IndexUnusableError
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths, create_file, read_file, remove_file
from research.store.vectors.generations import IndexState
from research.store.vectors.process import publish_in_subprocess

FAILED_NOTE = "publish-failed.json"
_RETRY_SECONDS = 3600.0


def publish_if_possible(paths: IndexPaths, state: IndexState) -> bool:
    """Publish what the collections lack. True if that was done; a busy or read-only index is left alone, because a
    search compares the missing vectors one by one anyway.

    What failed once (a Chroma of another make) is not tried again by every question, but when the catalog or Chroma has
    changed, or an hour later.
    """
    note = paths.chroma / FAILED_NOTE
    attempt = _attempt(state)
    if _failed_before(note, attempt):
        return False
    try:
        with write_lock(paths):
            try:
                publish_in_subprocess(paths)
            except IndexUnusableError as error:
                if error.hint != FREE_SPACE:
                    _remember(note, attempt, error.message)
                return False
            remove_file(note)
    except (CtxError, OSError):
        return False
    return True


def failure_of(folder: Path) -> str:
    """Why the last try of a question failed; empty if none did since the last publication."""
    try:
        return str(json.loads(read_file(folder / FAILED_NOTE, 1 << 16))["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _attempt(state: IndexState) -> list[object]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        chroma = version("chromadb")
    except PackageNotFoundError:
        chroma = ""
    number = state.generation.number if state.generation else 0
    return [chroma, number, state.missing, state.surplus, state.outdated]


def _failed_before(note: Path, attempt: list[object]) -> bool:
    try:
        recent = abs(time.time() - note.lstat().st_mtime) < _RETRY_SECONDS
        return recent and bool(json.loads(read_file(note, 1 << 16))["attempt"] == attempt)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _remember(note: Path, attempt: list[object], error: str) -> None:
    remove_file(note)
    with suppress(OSError):
        create_file(note, json.dumps({"attempt": attempt, "error": error}).encode())
