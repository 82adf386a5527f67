"""Files of secrets: made for their owner alone, and not used if they could be anybody else's."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from research import files
from research.errors import BusyError, CtxError, UntrustedError
from research.files import Followed, create_private, locked, read_private, replace_private


def test_a_new_file_is_whole_and_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    create_private(path, b"content")
    assert read_private(path) == b"content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_nlink == 1
    assert os.listdir(path.parent) == ["file"], "nothing is left beside it"  # noqa: PTH208
    with pytest.raises(FileExistsError):
        create_private(path, b"other")
    assert read_private(path) == b"content"
    replace_private(path, b"other")
    assert read_private(path) == b"other"
    assert os.listdir(path.parent) == ["file"]  # noqa: PTH208


def test_whatever_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_private(tmp_path / "serve" / "file", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "serve" / "file").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "serve").stat().st_mode) == 0o700


def _link(path: Path) -> None:
    path.with_name("real").write_bytes(b"x")
    path.with_name("real").chmod(0o600)
    path.symlink_to("real")


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _mode(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(b"x")
        path.chmod(mode)

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_link, "is a link"),
        (_dangling, "is a link"),
        (_mode(0o640), "may be read or written by others"),
        (_mode(0o604), "may be read or written by others"),
        (_mode(0o620), "may be read or written by others"),
        (_mode(0o602), "may be read or written by others"),
        (Path.mkdir, "is no file"),
        (os.mkfifo, "is no file"),
    ],
)
def test_what_is_not_safe_is_not_read(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(UntrustedError, match=words) as raised:
        read_private(path)
    assert raised.value.hint
    with pytest.raises(FileExistsError):
        create_private(path, b"y")


def test_a_file_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    create_private(path, b"x")
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(UntrustedError, match="belongs to another user"):
        read_private(path)


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "file").symlink_to("precious")
    replace_private(tmp_path / "file", b"new")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "file").is_symlink()


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(CtxError, match="cannot make the folder") as raised:
        create_private(tmp_path / "taken" / "file", b"x")
    assert raised.value.hint


def test_a_lock_that_is_held_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.05)
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(tmp_path / "file"):
            held.set()
            over.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    try:
        with pytest.raises(BusyError, match="another process is changing"), locked(tmp_path / "file"):
            pass
    finally:
        over.set()
        thread.join()


class TestFollowed:
    """What a file says, as it is now."""

    def followed(self, path: Path) -> Followed[str]:
        self.loads = 0

        def load() -> str:
            self.loads += 1
            return read_private(path).decode()

        return Followed(path, load, "")

    def test_changes_are_seen_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        followed = self.followed(path)
        assert followed.value() == ""
        create_private(path, b"one")
        assert followed.value() == "one"
        for number in range(50):  # quicker than the clock of any file system ticks, and of the same size
            replace_private(path, b"%03d" % number)
            assert followed.value() == f"{number:03d}"
        path.unlink()
        assert followed.value() == ""

    def test_one_that_rests_is_read_once(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        create_private(path, b"one")
        os.utime(path, (1, 1))
        followed = self.followed(path)
        assert [followed.value() for _ in range(5)] == ["one"] * 5
        assert self.loads == 1

    def test_one_that_is_not_safe_says_nothing_and_is_logged_once(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "file"
        create_private(path, b"top secret")
        followed = self.followed(path)
        assert followed.value() == "top secret"
        path.chmod(0o644)
        with caplog.at_level(logging.INFO, "ctx"):
            assert [followed.value() for _ in range(5)] == [""] * 5
        assert [record.getMessage() for record in caplog.records] == ["file is not used: UntrustedError"]
        path.chmod(0o600)
        assert followed.value() == "top secret"
