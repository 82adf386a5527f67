"""The index is its owner's: nobody else can read a file or enter a folder of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from bounded import ingest

from ingest import ingest as run
from research.settings import Settings
from research.store import IndexPaths, backup, check_index, plan_removal, remove, restore, write_lock


def _open_to_others(index: Path) -> list[str]:
    return [
        f"{path.relative_to(index)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in sorted(index.rglob("*"))
        if path.lstat().st_mode & 0o077
    ]


@pytest.mark.slow
def test_everything_a_run_leaves_is_private(make_pdf, tmp_path: Path) -> None:
    """In a folder that everybody may enter, by a user whose files everybody may read."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    make_pdf("a.pdf", ["The first page", "The second"], docs)
    make_pdf("b.pdf", ["Another"], docs)
    index.mkdir(mode=0o755)
    before = os.umask(0o000)
    try:
        assert ingest(docs, index).code == 0
        command = [sys.executable, "-m", "cli.main", "remove", "b.pdf", "--yes", "--index", str(index)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    finally:
        os.umask(before)
    assert _open_to_others(index) == []
    assert len(list(index.rglob("*"))) > 8
    assert stat.S_IMODE(index.stat().st_mode) == 0o755, "a folder that was there keeps what its owner gave it"


@pytest.mark.slow
def test_a_library_users_process_is_left_as_it_is(make_pdf, tmp_path: Path) -> None:
    """Files are private by their own rights: what other threads make meanwhile is none of our business."""
    docs, index, restored = tmp_path / "docs", IndexPaths(tmp_path / "index"), IndexPaths(tmp_path / "restored")
    make_pdf("a.pdf", ["The first page", "The second"], docs)
    make_pdf("b.pdf", ["Another"], docs)
    restored.root.mkdir(mode=0o755)
    before = os.umask(0o022)
    try:
        run(index, [docs], settings=Settings(ocr="off"))
        with write_lock(index):
            (tmp_path / "mine").write_text("of another thread")
        remove(index, plan_removal(index, ["b.pdf"]).documents)
        backup(index, tmp_path / "b.zip")
        restore(restored, tmp_path / "b.zip")
        assert not check_index(index)[-1].remedy
    finally:
        assert os.umask(before) == 0o022
    assert stat.S_IMODE(index.root.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "b.zip").stat().st_mode) == 0o600
    for made in (index.root, restored.root):
        assert _open_to_others(made) == []
        assert {path.name for path in made.iterdir()} >= {"catalog.sqlite3", "chroma", "images", "write.lock"}
