"""One writer at a time, and the second is told who the first is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from research.errors import BusyError, IndexUnusableError
from research.store.lock import holder, write_lock

_HOLD = """
import sys
from pathlib import Path
from research.store.lock import write_lock
with write_lock(Path(sys.argv[1])):
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
    path = tmp_path / "write.lock"
    with _holding(path) as other:
        try:
            with pytest.raises(BusyError, match=f"process {other.pid}") as caught, write_lock(path):
                pass
            assert caught.value.pid == other.pid == holder(path)
            assert "wait" in caught.value.hint
        finally:
            other.communicate("done\n")
    with write_lock(path):
        assert holder(path) == os.getpid()
    assert holder(path) is None


def test_a_writer_may_wait_for_the_other(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    with _holding(path) as other:
        assert other.stdin is not None
        other.stdin.write("done\n")
        other.stdin.flush()
        with write_lock(path, wait=60):
            assert holder(path) == os.getpid()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    with _holding(path) as other:
        other.kill()
        other.wait()
        assert holder(path) == other.pid  # its note is still there, the lock is not
        with write_lock(path):
            assert holder(path) == os.getpid()


def test_a_second_lock_in_the_same_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    with write_lock(path), pytest.raises(BusyError), write_lock(path):
        pass


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IndexUnusableError, match="cannot lock"), write_lock(tmp_path / "file" / "write.lock"):
        pass


def test_the_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    with pytest.raises(ZeroDivisionError), write_lock(path):
        raise ZeroDivisionError
    with write_lock(path):
        pass
