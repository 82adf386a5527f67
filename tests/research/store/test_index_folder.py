"""Which folder may become an index, and that nothing of the user's in it is ever touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from research.errors import IndexUnusableError, UsageError
from research.store.catalog import Catalog
from research.store.paths import MARKER, IndexPaths, index_id, write_lock
from tests.conftest import MakePdf
from tests.in_process import Ran, run_in_process

Ctx = Callable[..., Ran]


@pytest.fixture
def ctx(tmp_path: Path) -> Ctx:
    """The real command, by default in `tmp_path`."""
    return partial(run_in_process, cwd=tmp_path)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _project(root: Path) -> Path:
    """A folder of somebody's work that happens to use names of ours."""
    for name in ("images/holiday/a.jpg", "images/0123456789abcdef/b.jpg", "spool/job1", "chroma/draft/d1",
                 "chroma/gen-000001/x", "restoring/y", "notes.txt"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")
    return root


@pytest.mark.slow
def test_a_folder_with_other_files_is_refused_and_untouched(make_pdf: MakePdf, tmp_path: Path, ctx: Ctx) -> None:
    project = _project(tmp_path / "project")
    make_pdf("a.pdf", ["The first page"], project / "docs")
    before = _files(project)
    for args in (["ingest", "docs"], ["ingest", "docs", "--no-images"], ["restore", "none.zip", "--force"]):
        done = ctx(*args, "--index", ".", cwd=project)
        assert done.code in {1, 2}, done.out
        assert _files(project) == before
    done = ctx("ingest", "docs", "--index", ".", cwd=project)
    assert done.code == 2
    assert "is no index" in done.err
    assert "ctx init" in done.err
    assert ctx("init", cwd=project).code == 0
    assert ctx("ingest", "docs", cwd=project).code == 0
    assert {name: data for name, data in _files(project).items() if not name.startswith(".ctx/")} == before


@pytest.mark.slow
def test_only_names_of_ours_are_removed_from_an_index(make_pdf: MakePdf, tmp_path: Path, ctx: Ctx) -> None:
    index = tmp_path / "index"
    make_pdf("a.pdf", ["The first page"], tmp_path / "docs")
    assert ctx("ingest", "docs", "--index", "index").code == 0
    assert ctx("backup", "b.zip", "--index", "index").code == 0
    for name in ("images/holiday/a.jpg", "spool/job1", "chroma/mine/x"):
        (index / name).parent.mkdir(parents=True, exist_ok=True)
        (index / name).write_text("mine")
    gone = index / "images" / "0123456789abcdef"
    gone.mkdir()
    make_pdf("b.pdf", ["Another"], tmp_path / "docs")
    for args in (["ingest", "docs"], ["doctor", "--fix"], ["doctor", "--reindex"], ["restore", "b.zip", "--force"]):
        done = ctx(*args, "--index", "index")
        assert done.code == 0, done.err
    for name in ("images/holiday/a.jpg", "spool/job1", "chroma/mine/x"):
        assert (index / name).read_text() == "mine"
    assert not gone.exists()
    assert ctx("remove", "a.pdf", "--yes", "--index", "index").code == 0


def test_a_new_folder_is_marked_first_and_keeps_its_id(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "deep" / "index")
    paths.create()
    assert {path.name for path in paths.root.iterdir()} == {MARKER, ".gitignore"}
    made = index_id(paths.root)
    paths.create()
    with write_lock(paths), Catalog(paths, writable=True):
        assert index_id(paths.root) == made
    assert json.loads((paths.root / MARKER).read_text())["schema"] == "ctx.index/1"


def test_an_empty_folder_becomes_an_index_without_a_gitignore(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path)
    paths.create()
    assert {path.name for path in tmp_path.iterdir()} == {MARKER}


def test_a_marker_that_a_kill_left_empty_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.paths._WRITING_SECONDS", 0.05)
    (tmp_path / MARKER).touch()
    IndexPaths(tmp_path).create()
    assert index_id(tmp_path)


@pytest.mark.parametrize("content", ["{", '{"schema": "ctx.index/1", "id": 7}', '{"schema": "other/1"}', "[" * 4000])
def test_a_marker_of_somebody_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / MARKER).write_text(content)
    with pytest.raises(IndexUnusableError, match="not a marker"):
        IndexPaths(tmp_path).create()
    assert {path.name for path in tmp_path.iterdir()} == {MARKER}


def test_many_processes_make_one_index(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from research.store.paths import IndexPaths\n"
        "from research.store.paths import index_id\n"
        "sys.stdin.readline(); paths = IndexPaths(Path(sys.argv[1])); paths.create(); print(index_id(paths.root))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "index")]
    makers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    for maker in makers:  # all of them wait for the word, so that they start at once
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    ids = {maker.communicate(timeout=60)[0].strip() for maker in makers}
    assert len(ids) == 1
    assert all(maker.returncode == 0 for maker in makers)


@pytest.mark.parametrize("names", [[".gitignore"], ["catalog.sqlite3"], ["write.lock", "a.txt"], ["images"]])
def test_names_of_ours_alone_make_no_index(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("*.log\n")
    with pytest.raises(UsageError, match="is no index"):
        IndexPaths(tmp_path).create()
    assert sorted(os.listdir(tmp_path)) == sorted(names)  # noqa: PTH208
