"""Bringing the collections up to the catalog in a process of its own.

Chroma's compiled code neither hears Ctrl-C nor survives every damage. In a process apart it can be ended at any
moment: what it writes is a private draft until one rename publishes it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal, NoReturn

import research
from research.errors import CtxError, IndexUnusableError
from research.store.error_hints import FREE_SPACE, unusable
from research.store.files.paths import IndexPaths
from research.store.upkeep.staged_paths import StagedPaths
from research.store.vectors import generations
from research.telemetry import switch_off

Task = Literal["publish", "rebuild", "verify", "stage"]

AGAIN = "nothing is lost; try again with: ctx reindex"


def publish_apart(paths: IndexPaths, *, anew: bool = False) -> None:
    """Publish what the collections lack, or with `anew` all of it once more. The caller holds the write lock."""
    try:
        code, said = _run("rebuild" if anew else "publish", paths)
        if code < 0 and not anew:  # damage that no check saw before: start over from the catalog
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


def verify_apart(paths: IndexPaths) -> bool:
    """Whether the collections can be read and hold exactly what the catalog has."""
    return _run("verify", paths)[0] == 0


def _run(task: Task, paths: IndexPaths) -> tuple[int, str]:
    home = str(Path(research.__file__).parent.parent)
    arguments = [str(os.getpid()), task, os.fsencode(paths.root).hex()]
    process = subprocess.Popen(
        # -P as for reading processes: the folder the user stands in may hold anything, a json.py too.
        [sys.executable, "-P", "-m", "research.store.vectors.process", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": home},
        text=True,
    )
    with process:
        try:
            said, _ = process.communicate()
        except BaseException:
            process.kill()
            raise
    return process.returncode, said


def _raise(code: int, said: str) -> NoReturn:
    try:
        problem = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        raise IndexUnusableError(f"building the collections ended with code {code}", hint=AGAIN) from None
    raise IndexUnusableError(problem["error"], hint=problem["hint"])


def main() -> int:
    from research.store.orphans import die_with_parent

    switch_off()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and ends this process
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
