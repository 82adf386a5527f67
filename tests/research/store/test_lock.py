"""One writer at a time, and the second is told who the first is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from research.errors import BusyError, IndexUnusableError
from research.store.paths import IndexPaths, holder, is_locked, write_lock

_HOLD = """
import sys
import threading
from pathlib import Path
from research.store.paths import write_lock
from research.store.paths import IndexPaths
with write_lock(IndexPaths(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.readline()
"""


def _holding(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    with _holding(paths.root) as other:
        try:
            with pytest.raises(BusyError, match=f"process {other.pid}") as caught, write_lock(paths):
                pass
            assert caught.value.pid == other.pid == holder(paths.lock)
            assert "wait" in caught.value.hint
        finally:
            other.communicate("done\n")
    with write_lock(paths):
        assert holder(paths.lock) == os.getpid()
    assert holder(paths.lock) is None


def test_a_writer_may_wait_for_the_other(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    with _holding(paths.root) as other:
        assert other.stdin is not None
        other.stdin.write("done\n")
        other.stdin.flush()
        with write_lock(paths, wait=60):
            assert holder(paths.lock) == os.getpid()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    with _holding(paths.root) as other:
        other.kill()
        other.wait()
        assert holder(paths.lock) == other.pid  # its note is still there, the lock is not
        with write_lock(paths):
            assert holder(paths.lock) == os.getpid()


def test_a_second_lock_in_the_same_process_is_refused(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    with write_lock(paths), pytest.raises(BusyError), write_lock(paths):
        pass


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    paths.create()
    paths.lock.mkdir()
    with pytest.raises(IndexUnusableError, match="cannot lock"), write_lock(paths):
        pass


def test_the_lock_itself_tells_whether_somebody_writes(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    assert not is_locked(paths)
    with write_lock(paths):
        assert is_locked(paths)
    assert not is_locked(paths)
    with _holding(paths.root) as other:
        assert is_locked(paths)
        other.kill()
        other.wait()
    paths.lock.with_suffix(".pid").write_text(str(os.getpid()))  # its number is another process's by now
    assert not is_locked(paths)


@pytest.mark.slow
def test_a_look_at_the_lock_keeps_no_writer_out(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    paths.create()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            is_locked(paths)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(300):
            with write_lock(paths):
                pass
    finally:
        stop.set()
        looking.join()
