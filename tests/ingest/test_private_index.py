"""The index is its owner's: nobody else can read a file or enter a folder of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from bounded import ingest


def _open_to_others(index: Path) -> list[str]:
    return [
        f"{path.relative_to(index)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in sorted(index.rglob("*"))
        if path.lstat().st_mode & 0o077
    ]


@pytest.mark.parametrize("existing", [None, 0o755])
def test_everything_a_run_leaves_is_private(make_pdf, tmp_path: Path, existing: int | None) -> None:
    docs, index = tmp_path / "docs", tmp_path / "index"
    make_pdf("a.pdf", ["The first page", "The second"], docs)
    make_pdf("b.pdf", ["Another"], docs)
    if existing is not None:
        index.mkdir(mode=existing)
    before = os.umask(0o000)
    try:
        assert ingest(docs, index).code == 0
        command = [sys.executable, "-m", "cli.main", "remove", "b.pdf", "--yes", "--index", str(index)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    finally:
        os.umask(before)
    assert _open_to_others(index) == []
    assert len(list(index.rglob("*"))) > 8
    mode = stat.S_IMODE(index.stat().st_mode)
    assert mode == (0o700 if existing is None else existing), "a folder that was there keeps what its owner gave it"
