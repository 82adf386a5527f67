"""Which files a run takes, and how it tells a changed one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ingest.scan import hash_of, no_files, scan, stamp_of, to_utf8
from research.errors import DocumentError, UsageError


def _touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"%PDF-1.7")
    return path


def _names(paths: list[Path], folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in paths]


def test_folders_are_searched_to_the_bottom_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b.pdf", "a.PDF", "deep/er/c.Pdf", "notes.txt", "pdf", "x.pdf.zip", "folder.pdf/d.pdf"):
        _touch(tmp_path / name)
    for name in (".b.pdf", ".git/c.pdf", ".ctx/d.pdf", "x/.cache/e.pdf"):
        _touch(tmp_path / name)
    assert _names(scan([tmp_path]).files, tmp_path) == ["a.PDF", "b.pdf", "deep/er/c.Pdf", "folder.pdf/d.pdf"]
    for named in (".git/c.pdf", ".b.pdf", "x.pdf.zip"):
        assert _names(scan([tmp_path / named]).files, tmp_path) == [named], "hidden or not, whatever its ending"
    assert _names(scan([tmp_path / ".git"]).files, tmp_path) == [".git/c.pdf"]


def test_files_of_other_kinds_are_counted(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for name in ("a.pdf", "b.docx", "deep/c.DOCX", "d.md", "Makefile", ".hidden.md", ".git/e.md"):
        _touch(docs / name)
    (docs / "link.txt").symlink_to(tmp_path / "nothing")
    found = scan([docs, docs / "deep", docs])
    assert found.passed_over == {".docx": 2, ".md": 1, "": 1}
    assert scan([docs / "a.pdf"]).passed_over == {}


def test_what_an_index_keeps_is_not_counted(tmp_path: Path) -> None:
    _touch(tmp_path / "a.pdf")
    index = tmp_path / "index"
    for name in ("ctx-index.json", "catalog.sqlite3", "images/0/1.jpg", "chroma/x.bin"):
        _touch(index / name)
    assert scan([tmp_path]).passed_over == {}
    _touch(index / "mine.jpg")
    _touch(tmp_path / "images" / "b.jpg")
    assert scan([tmp_path]).passed_over == {".jpg": 2}, "what others put there is"


def test_each_file_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _touch(tmp_path / "sub" / "a.pdf")
    monkeypatch.chdir(tmp_path)
    assert len(scan([file, tmp_path, Path("sub"), Path("sub/../sub/a.pdf"), tmp_path / "sub"]).files) == 1


def test_links_stay_inside_and_loops_end(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    outside = _touch(tmp_path / "outside.pdf")
    inside = _touch(folder / "inside.pdf")
    (folder / "loop").symlink_to(folder)
    (folder / "sub").mkdir()
    (folder / "sub" / "up").symlink_to(folder, target_is_directory=True)
    (folder / "leaving.pdf").symlink_to(outside)
    (folder / "leaving").symlink_to(tmp_path)
    (folder / "staying.pdf").symlink_to(inside)
    (folder / "dangling.pdf").symlink_to(tmp_path / "nothing.pdf")
    (folder / "self.pdf").symlink_to(folder / "self.pdf")
    (folder / "ping.pdf").symlink_to(folder / "pong.pdf")
    (folder / "pong.pdf").symlink_to(folder / "ping.pdf")
    assert _names(scan([folder]).files, folder) == ["inside.pdf"]


def test_a_linked_folder_may_be_named(tmp_path: Path) -> None:
    _touch(tmp_path / "docs" / "a.pdf")
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    assert _names(scan([tmp_path / "link"]).files, tmp_path) == ["link/a.pdf"]


def test_pipes_sockets_and_devices_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "device.pdf").symlink_to("/dev/zero")
    _touch(tmp_path / "a.pdf")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.pdf"))
        assert _names(scan([tmp_path], follow_links=True).files, tmp_path) == ["a.pdf"]
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        scan([tmp_path / "pipe.pdf"])
    with pytest.raises(DocumentError, match="no longer a file"):
        hash_of(tmp_path / "pipe.pdf")


def test_nothing_to_take_is_told(tmp_path: Path) -> None:
    found = scan([tmp_path])
    assert found.empty
    assert str(no_files([tmp_path], found)).startswith(f"no PDF files in {tmp_path}")


@pytest.mark.parametrize("name", ["nothing", "a.pdf/b.pdf", "x" * 5000])
def test_a_path_that_leads_nowhere_is_told(tmp_path: Path, name: str) -> None:
    _touch(tmp_path / "a.pdf")
    with pytest.raises(UsageError):
        scan([tmp_path / "a.pdf", tmp_path / name])


def test_a_stamp_changes_with_the_file(tmp_path: Path) -> None:
    file = _touch(tmp_path / "a.pdf")
    before = stamp_of(file)
    assert stamp_of(tmp_path / "." / "a.pdf") == before
    file.write_bytes(b"%PDF-1.8")
    os.utime(file, ns=(before.mtime_ns, before.mtime_ns))  # set back by hand
    assert stamp_of(file) != before, "the time of the change of the file itself cannot be set back"


def test_content_is_what_is_hashed(tmp_path: Path) -> None:
    assert hash_of(_touch(tmp_path / "a.pdf")) == hash_of(_touch(tmp_path / "b.pdf"))
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 " + bytes(3 << 20))
    assert hash_of(tmp_path / "a.pdf") != hash_of(tmp_path / "b.pdf")


def test_a_file_that_vanished_is_told(tmp_path: Path) -> None:
    for look in (stamp_of, hash_of):
        with pytest.raises(DocumentError) as caught:
            look(tmp_path / "gone.pdf")
        assert caught.value.code == "unreadable"


def test_any_path_can_be_kept_as_text() -> None:
    assert to_utf8(Path("/a/b.pdf")) == "/a/b.pdf"
    assert to_utf8(os.fsdecode(b"/a/\xff\xfe.pdf")) == "/a/\\xff\\xfe.pdf"
    to_utf8(os.fsdecode(b"/a/\xff.pdf")).encode("utf-8")


def test_links_that_leave_are_named_and_followed_on_request(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "docs", tmp_path / "elsewhere"
    _touch(folder / "inside.pdf")
    _touch(elsewhere / "outside.pdf")
    _touch(elsewhere / "deep" / "below.pdf")
    (elsewhere / "back").symlink_to(folder)
    (folder / "again.pdf").symlink_to(folder / "inside.pdf")
    (folder / "file.pdf").symlink_to(elsewhere / "outside.pdf")
    (folder / "folder").symlink_to(elsewhere)
    (folder / "loop").symlink_to(folder)
    stayed = scan([folder])
    assert _names(stayed.files, folder) == ["inside.pdf"]
    assert _names(stayed.external_links, folder) == ["file.pdf", "folder"]
    followed = scan([folder], follow_links=True)
    assert _names(followed.files, folder) == ["inside.pdf", "folder/outside.pdf", "folder/deep/below.pdf"]
    assert followed.external_links == []
    (folder / "inside.pdf").unlink()
    alone = scan([folder])
    assert alone.empty
    assert "--follow-links" in no_files([folder], alone).hint


def test_a_link_to_a_hidden_store_is_a_file(tmp_path: Path) -> None:
    """As git-annex and many caches keep them: the link is the only name a person sees."""
    _touch(tmp_path / ".store" / "0001.pdf")
    (tmp_path / "report.pdf").symlink_to(tmp_path / ".store" / "0001.pdf")
    (tmp_path / "same.pdf").symlink_to(tmp_path / ".store" / "0001.pdf")
    assert _names(scan([tmp_path]).files, tmp_path) == ["report.pdf"]


def test_links_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").touch()
    for name in ("gone.pdf", "gone.txt"):
        (tmp_path / name).symlink_to(tmp_path / "nothing")
    found = scan([tmp_path])
    assert (found.files, found.external_links) == ([tmp_path / "a.pdf"], [])
    assert found.dangling_links == [tmp_path / "gone.pdf"]
    (tmp_path / "a.pdf").unlink()
    assert no_files([tmp_path], scan([tmp_path])).hint == f"its links lead nowhere: {tmp_path}/gone.pdf"
    with pytest.raises(UsageError, match="the link leads nowhere"):
        scan([tmp_path / "gone.pdf"])


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper than a path may be long: even the superuser cannot list it."""
    _touch(tmp_path / "a.pdf")
    monkeypatch.chdir(tmp_path)
    for _ in range(20):
        os.mkdir("d" * 250)  # noqa: PTH102 (paths this long work only from inside)
        monkeypatch.chdir("d" * 250)
    monkeypatch.chdir(tmp_path)
    found = scan([tmp_path])
    assert _names(found.files, tmp_path) == ["a.pdf"]
    [(folder, reason)] = found.unreadable
    assert folder.name == "d" * 250
    assert "too long" in reason
