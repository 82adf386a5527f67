"""Killing the reading processes of a run, as the OOM killer or a person does, while the command itself goes on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from research.store import IndexPaths
from tests.soak.running import STAGES, descendants, finish, run, start, wait_until


@dataclass(frozen=True)
class Harm:
    """What a run with killed readers came to, and what the next run left of the harm."""

    killed: int
    code: int
    lacking: int  # pages without text after the run
    lacking_later: int  # and after the next one
    findings: list[str]  # of doctor, at the end


def kill_readers(
    docs: Path, root: Path, random: Random, *, kills: int, within: float, options: tuple[str, ...] = ()
) -> Harm:
    """One run, in which up to `kills` readers are killed, each at a random moment after reading began."""
    process = start("ingest", str(docs), "--quiet", *options, root=root)
    done = 0
    if wait_until(lambda: STAGES["reading"](root), process):
        for moment in sorted(random.uniform(0.0, within) for _ in range(kills)):
            until = time.monotonic() + moment / kills
            if not wait_until(lambda until=until: time.monotonic() >= until, process):  # type: ignore[misc]
                break
            readers = _readers(process.pid)
            if readers:
                with suppress(ProcessLookupError):
                    os.kill(random.choice(readers), signal.SIGKILL)
                    done += 1
    code, _, err = finish(process)
    assert code in (0, 4), err
    lacking = pages_lacking(root, docs)
    again, _, err = run("ingest", str(docs), "--quiet", *options, root=root)
    assert again == 0, err
    _, out, _ = run("doctor", "--json", root=root)
    found = [check["message"] for check in json.loads(out)["checks"] if check["severity"] != "ok"]
    return Harm(done, code, lacking, pages_lacking(root, docs), found)


def pages_lacking(root: Path, docs: Path) -> int:
    """Pages of the corpus that are not in the index with their text: every page of it has some."""
    import pymupdf

    expected = 0
    for path in docs.rglob("*.pdf"):
        with pymupdf.open(path) as document:
            expected += document.page_count
    with closing(sqlite3.connect(f"file:{IndexPaths(root).catalog}?mode=ro", uri=True)) as catalog:
        return expected - int(catalog.execute("SELECT COUNT(*) FROM pages WHERE words > 0").fetchone()[0])


def _readers(pid: int) -> list[int]:
    found = []
    for child in descendants(pid):
        with suppress(OSError):
            if b"ingest.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return sorted(found)
