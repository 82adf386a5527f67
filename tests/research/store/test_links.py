"""A link in the place of a name of ours is never followed: git carries links, and a folder may come from anywhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from index_making import sync_if_stale

from ingest import Observer, ingest
from research.errors import CtxError
from research.settings import Settings
from research.store.archive import backup
from research.store.catalog import Catalog
from research.store.doctor import reindex, repair
from research.store.nearest import ChromaClient
from research.store.paths import IndexPaths, write_lock
from research.store.publish import publish_in_subprocess
from research.store.restoring import restore
from tests.conftest import write_pdf

NAMES = [
    "images", "chroma", "spool", "uploads", "restoring", "write.pid", "write.lock", ".gitignore", "ctx-index.json",
    "catalog.sqlite3", "catalog.sqlite3-wal", "catalog.sqlite3-shm", "catalog.sqlite3-journal",
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents, their index and a backup of it."""
    folder = tmp_path_factory.mktemp("made")
    write_pdf(folder / "docs" / "a.pdf", ["A page about walruses", "Another about seals"])
    _ingest(folder)
    backup(IndexPaths(folder / "index"), folder / "backup.zip")
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy to plant something in, and a victim beside it."""
    folder = Path(shutil.copytree(made, tmp_path / "place"))
    victim = folder / "victim"
    for name in ("draft/x", "gen-000000/x", "holiday/x", "0123456789abcdef/x", "00001.jpg", "chroma.sqlite3"):
        (victim / name).parent.mkdir(parents=True, exist_ok=True)
        (victim / name).write_text("mine")
    write_pdf(folder / "docs" / "b.pdf", ["A new page about otters"])  # so that there is something to do
    return folder


def _ingest(folder: Path) -> None:
    summary = ingest(IndexPaths(folder / "index"), [folder / "docs"], settings=Settings(ocr="off"), observer=Observer())
    assert not summary.failed


def _remove(folder: Path) -> None:
    paths = IndexPaths(folder / "index")
    with write_lock(paths), Catalog(paths, writable=True) as catalog:
        for document in catalog.documents.all():
            catalog.documents.remove(document.doc_id)
        publish_in_subprocess(paths)


def _read(folder: Path) -> None:
    with ChromaClient(folder / "index") as client:
        client.generation()


WAYS: dict[str, Callable[[Path], object]] = {
    "ingest": _ingest,
    "remove": _remove,
    "read": _read,
    "catch up": lambda folder: sync_if_stale(IndexPaths(folder / "index")),
    "reindex": lambda folder: reindex(IndexPaths(folder / "index")),
    "doctor --fix": lambda folder: repair(IndexPaths(folder / "index")),
    "backup": lambda folder: backup(IndexPaths(folder / "index"), folder / "another.zip", force=True),
    "restore": lambda folder: restore(IndexPaths(folder / "index"), folder / "backup.zip", force=True),
}


def _content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _plant(link: Path, target: Path) -> None:
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@pytest.mark.parametrize("dangling", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "dangling"])
@pytest.mark.parametrize("name", NAMES)
def test_no_command_follows_a_link(place: Path, name: str, dangling: bool) -> None:
    """Each way of writing refuses, and what the link leads to is as it was."""
    victim = place / "victim"
    folder = name in {"images", "chroma", "spool", "uploads", "restoring"}
    target = victim / "new" if dangling else victim if folder else victim / "00001.jpg"
    _plant(place / "index" / name, target)
    before = _content(victim)
    for way, run in WAYS.items():
        try:
            repairs = run(place)
        except CtxError as error:
            assert "is a link" in error.message or "there is no index" in error.message, way
        else:
            assert way == "doctor --fix", way
            assert "is a link" in str(repairs)
        assert _content(victim) == before, way
        assert (place / "index" / name).is_symlink()


INSIDE = [
    "chroma/draft", "chroma/gen-000000", "chroma/{newest}", "chroma/{newest}/chroma.sqlite3",
    "images/fedcba9876543210", "images/{doc}/00001.jpg", "spool/{doc}.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("name", ["images/{doc}", *(pytest.param(name, marks=pytest.mark.slow) for name in INSIDE)])
def test_no_link_further_inside_is_followed(place: Path, name: str) -> None:
    index, victim = place / "index", place / "victim"
    newest = max((path.name for path in (index / "chroma").iterdir()), default="")
    doc = next(path.name for path in (index / "images").iterdir())
    link = index / name.format(newest=newest, doc=doc)
    link.parent.mkdir(exist_ok=True)
    _plant(link, victim / link.name if (victim / link.name).exists() else victim)
    before = _content(victim)
    for way, run in WAYS.items():
        try:
            run(place)
        except CtxError:
            assert _content(victim) == before, way  # refused, in whatever words
        assert _content(victim) == before, way


def test_a_restore_writes_through_no_link(place: Path) -> None:
    """By itself: a run before it would have put a folder in the link's place."""
    victim = place / "victim"
    _plant(next((place / "index" / "images").iterdir()), victim)
    before = _content(victim)
    with pytest.raises(CtxError, match="is a link"):
        WAYS["restore"](place)
    assert _content(victim) == before


def test_a_question_writes_through_no_link(place: Path) -> None:
    """With the collections gone, a question builds them again, and notes its process id."""
    index, victim = place / "index", place / "victim" / "00001.jpg"
    shutil.rmtree(index / "chroma")
    _plant(index / "write.pid", victim)
    command = [sys.executable, "-m", "cli.main", "ask", "walruses", "--index", str(index)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "is a link" in done.stderr
    assert victim.read_text() == "mine"
