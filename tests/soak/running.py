"""The real command, started in a process group of its own, watched and ended at chosen moments."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import median

from research.store import IndexPaths
from tests.network_guard import guarded

PATIENCE = 120.0  # seconds until a test says that something hangs; a loaded machine is slow


def start(*args: str, root: Path) -> subprocess.Popen[str]:
    """`ctx ARGS --index ROOT`, with its output kept."""
    return subprocess.Popen(
        guarded("-m", "cli.main", *args, "--index", str(root)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def run(*args: str, root: Path) -> tuple[int, str, str]:
    return finish(start(*args, root=root))


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> bool:
    """True as soon as something is so; False if the process ended first."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if reached():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    raise AssertionError("what was waited for did not come")


def writing(root: Path) -> bool:
    """Whether a writer has begun: it has noted its process id."""
    return IndexPaths(root).lock.with_suffix(".pid").exists()


def kill(process: subprocess.Popen[str], *, group: bool = True) -> None:
    """SIGKILL, and make sure that nothing it started lives on."""
    family = descendants(process.pid)
    with suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate(timeout=PATIENCE)
    assert_ended(family)


def assert_ended(family: dict[int, str]) -> None:
    deadline = time.monotonic() + 10.0
    while family and time.monotonic() < deadline:
        family = {pid: born for pid, born in family.items() if _born(pid) == born}
        time.sleep(0.01)
    assert not family, f"processes were left behind: {[_command(pid) for pid in family]}"


def descendants(pid: int) -> dict[int, str]:
    """Process id → time of birth of everything below a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, waiting = {}, [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            found[child] = _born(child)
            waiting.append(child)
    return {child: born for child, born in found.items() if born}  # one may have ended just now


def _born(pid: int) -> str:
    """Empty once it has ended, also while nobody has collected it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return str(pid)


def _counts(root: Path, query: str) -> bool:
    paths = IndexPaths(root)
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{paths.catalog}?mode=ro", uri=True)) as catalog:
        return bool(catalog.execute(query).fetchone()[0])
    return False


# Moments of a run as they show from outside.
STAGES: dict[str, Callable[[Path], bool]] = {
    "reading": lambda root: any(IndexPaths(root).spool.glob("*.jsonl")),
    "first document": lambda root: _counts(root, "SELECT COUNT(*) FROM documents"),
    "embedding": lambda root: _counts(root, "SELECT COUNT(*) FROM meta WHERE key = 'text_encoder'"),
    "first vectors": lambda root: _counts(root, "SELECT COUNT(*) FROM vectors"),
    "drawing": lambda root: any(IndexPaths(root).spool.glob("*.images")),
    "first image": lambda root: _counts(root, "SELECT COUNT(*) FROM pages WHERE image"),
    "OCR": lambda root: _counts(root, "SELECT COUNT(*) FROM pages WHERE ocr_engine <> ''"),
    "publishing": lambda root: (IndexPaths(root).chroma / "draft").exists(),
    "published": lambda root: any(IndexPaths(root).chroma.glob("gen-*")),
}


def growth(samples: Sequence[tuple[float, int, int]], since: float) -> tuple[float, float]:
    """Resident kB and descriptors: the median of the last quarter beyond that of the quarter after `since`."""
    later = [sample for sample in samples if sample[0] >= since]
    quarter = max(1, len(later) // 4)
    first, last = later[:quarter], later[-quarter:]
    return (
        median(kb for _, kb, _ in last) - median(kb for _, kb, _ in first),
        median(fds for *_, fds in last) - median(fds for *_, fds in first),
    )
