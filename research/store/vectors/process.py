"""Bringing the collections up to the catalog, in a process of its own: after every change, and when a question finds
them stale and nobody else is writing.

Chroma's compiled code neither hears Ctrl-C nor survives every damage. In a process apart it can be ended at any
moment: what it writes is a private draft until one rename publishes it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal, NoReturn

from research.errors import FREE_SPACE, CtxError, IndexUnusableError, unusable
from research.lazy import switch_off
from research.process import die_with_parent, start_helper
from research.store.files.paths import IndexPaths, StagedPaths, create_file, read_file, remove_file, write_lock
from research.store.vectors import generations
from research.store.vectors.generations import IndexState

Task = Literal["publish", "rebuild", "verify", "stage"]

AGAIN = "nothing is lost; try again with: ctx reindex"


def publish_in_subprocess(paths: IndexPaths, *, rebuild: bool = False) -> None:
    """Publish what the collections lack, or with `rebuild` all of it once more. The caller holds the write lock."""
    try:
        code, said = _run("rebuild" if rebuild else "publish", paths)
        if code < 0 and not rebuild:  # damage that no check saw before: start over from the catalog
            code, said = _run("rebuild", paths)
    finally:
        generations.drop_draft(paths.chroma)
    if code:
        _raise(code, said)


def publish_staged(staged: StagedPaths) -> None:
    """Build the collections of an index that is not in place yet."""
    code, said = _run("stage", staged)
    if code:
        _raise(code, said)


def verify_in_subprocess(paths: IndexPaths) -> bool:
    """Whether the collections can be read and hold exactly what the catalog has."""
    return _run("verify", paths)[0] == 0


def _run(task: Task, paths: IndexPaths) -> tuple[int, str]:
    process = start_helper(__name__, [task, os.fsencode(paths.root).hex()], hears_ctrl_c=False)
    with process:
        try:
            said, _ = process.communicate()
        except BaseException:
            process.kill()
            raise
    return process.returncode, said.decode()


def _raise(code: int, said: str) -> NoReturn:
    try:
        problem = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        raise IndexUnusableError(f"building the collections ended with code {code}", hint=AGAIN) from None
    raise IndexUnusableError(problem["error"], hint=problem["hint"])


def main() -> int:
    switch_off()
    parent, task, root = sys.argv[1:]
    die_with_parent(int(parent))
    try:
        return _work(task, Path(os.fsdecode(bytes.fromhex(root))))
    except CtxError as error:
        problem = error
    except OSError as error:
        problem = unusable("the collections cannot be written", error)
    except BaseException as error:  # noqa: BLE001  Chroma raises all kinds, a panic of its core is no Exception
        text = f"{type(error).__name__}: {error}"
        full = "disk is full" in text or "No space left" in text or "File too large" in text
        problem = IndexUnusableError(f"the collections cannot be built: {text}", hint=FREE_SPACE if full else AGAIN)
    sys.stdout.write("\n" + json.dumps({"error": problem.message, "hint": problem.hint}) + "\n")
    return 1


def _work(task: str, root: Path) -> int:
    from research.store.catalog.catalog import Catalog
    from research.store.vectors import writer

    with Catalog(StagedPaths(root) if task == "stage" else IndexPaths(root)) as catalog:
        if task == "verify":
            return 0 if writer.holds_everything(catalog) else 1
        if task in {"rebuild", "stage"}:
            writer.rebuild(catalog)
        else:
            writer.publish(catalog)
    return 0


if __name__ == "__main__":
    sys.exit(main())


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
