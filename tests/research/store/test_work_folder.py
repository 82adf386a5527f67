"""Folders of backups: cleared when their process was killed, left alone while it lives or when they are not ours."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from index_making import Making

from research.store.archive import backup

# Killed when the archive is written and not yet in place.
_KILLED_BACKUP = """
import os, signal, sys
from pathlib import Path
from research.store import archive as backup
from research.store.paths import IndexPaths
backup._put_in_place = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
backup.backup(IndexPaths(Path(sys.argv[1])), Path(sys.argv[2]))
"""


def _leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".ctx"))


@pytest.fixture
def folder(making: Making, tmp_path: Path) -> Path:
    """Where backups of an index with one document go."""
    making.add("walrus.pdf", ["walrus"])
    making.embed()
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups"


def test_what_killed_backups_left_is_cleared_by_the_next(making: Making, folder: Path) -> None:
    for count in (1, 1):  # the second clears what the first left, and is killed itself
        killed = subprocess.run(
            [sys.executable, "-c", _KILLED_BACKUP, str(making.paths.root), str(folder / "b.zip")],
            check=False,
            env={**os.environ},
        )
        assert killed.returncode == -9
        assert len(_leftovers(folder)) == count
    backup(making.paths, folder / "b.zip")
    assert [path.name for path in folder.iterdir()] == ["b.zip"]


def test_only_leftovers_of_our_own_are_cleared(making: Making, folder: Path) -> None:
    """The right name is not enough: a lock must be there, and nothing that a backup does not write."""
    theirs = {
        ".ctx-backup-abcdefgh": {"lock": "", "diary.txt": "mine"},
        ".ctx-backup-abcdefgi": {"archive": "mine"},
        ".ctx-backup-abcdefgj": {"lock/inner": "mine"},
        ".ctx-backup-long-name": {"lock": "", "archive": "mine"},
        "victim": {"lock": "", "archive": "mine"},
    }
    for name, files in theirs.items():
        for file, text in files.items():
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_text(text)
    (folder / ".ctx-backup-abcdefgk").symlink_to(folder / "victim")
    linked = folder / ".ctx-backup-abcdefgl"
    linked.mkdir()
    (linked / "lock").touch()
    (linked / "archive").symlink_to(folder / "victim" / "archive")
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    backup(making.paths, folder / "b.zip")
    assert sorted(path.relative_to(folder) for path in folder.rglob("*") if path.name != "b.zip") == before


@pytest.mark.slow
def test_backups_at_the_same_time_into_one_folder(making: Making, folder: Path) -> None:
    command = "import sys; from pathlib import Path; from research.store.archive import backup;"
    command += "from research.store.paths import IndexPaths;"
    command += "[backup(IndexPaths(Path(sys.argv[1])), Path(sys.argv[2] + str(n))) for n in range(8)]"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", command, str(making.paths.root), str(folder / name)], env={**os.environ}
        )
        for name in "abc"
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert _leftovers(folder) == []
    assert len(list(folder.iterdir())) == 24
    for file in folder.iterdir():
        with zipfile.ZipFile(file) as opened:
            assert opened.testzip() is None
