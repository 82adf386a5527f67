"""An index that 0.1.0 made of two samples: it opens, is brought up to date, and answers as it did.

fixtures/index-0.1.0.tar.gz was written by commit b3c32e8 (`ctx ingest /samples --no-images`), and
fixtures/index-0.1.0.json holds what that commit listed and found in it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ingest import ingest
from ingest.pdf import READER_VERSION
from research.index import Index
from research.settings import Settings
from research.store.catalog import schema
from research.store.catalog.catalog import Catalog
from research.store.files.paths import IndexPaths
from research.store.upkeep import integrity
from tests.conftest import write_pdf

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = Path(__file__).parents[3] / "data" / "samples"
RECORDED: dict[str, Any] = json.loads((FIXTURES / "index-0.1.0.json").read_text())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("old") / "index"
    with tarfile.open(FIXTURES / "index-0.1.0.tar.gz") as packed:
        packed.extractall(root, filter="data")
    return root


@pytest.fixture
def old(unpacked: Path, tmp_path: Path) -> Path:
    root: Path = shutil.copytree(unpacked, tmp_path / "index")
    return root


def _version(root: Path) -> int:
    with closing(sqlite3.connect(IndexPaths(root).catalog)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _contents(root: Path) -> dict[str, list[Any]]:
    """Documents, pages, chunks and vectors with their numbers, which change if anything is read or embedded again."""
    with Catalog(IndexPaths(root)) as catalog:
        return {
            query: [tuple(row) for row in catalog.connection.execute(query)]
            for query in (
                "SELECT doc_id, sha256, title, num_pages, timestamp FROM documents ORDER BY doc_id",
                "SELECT page_id, doc_id, page, words, markdown FROM pages ORDER BY page_id",
                "SELECT chunk_id, page_id, text FROM chunks ORDER BY chunk_id",
                "SELECT chunk_id, vector FROM vectors ORDER BY chunk_id",
                "SELECT rowid, body, section FROM page_words ORDER BY rowid",
            )
        }


def test_it_answers_as_it_did(old: Path) -> None:
    assert _version(old) < schema.VERSION
    with Index.open(old) as index:
        assert _version(old) == schema.VERSION
        index.prepare()
        found = [[d.doc_id, d.filename, d.num_pages, d.title, d.sha256] for d in index.documents.list()]
        assert found == RECORDED["documents"]
        for question, by_mode in RECORDED["answers"].items():
            for mode, expected in by_mode.items():
                outcome = index.rank(question, 3, mode)
                answer = [[hit.page.filename, hit.page.page] for hit in outcome.found]
                assert answer == [[name, page] for name, page, _ in expected], (mode, question)
                # Words that few pages hold count more since, and a number in a file name no longer names a document.
                room, less = (0.0, 0.0) if mode == "dense" else (0.12, 0.08)
                for hit, (_, _, score) in zip(outcome.found, expected, strict=True):
                    assert score - less - 1e-3 <= hit.score <= score + room + 1e-3, (mode, question)
                assert outcome.coverage.notes == []


def test_it_is_sound_after_it_was_brought_up_to_date(old: Path) -> None:
    before = _contents(old)
    with Catalog(IndexPaths(old), writable=True) as catalog:
        assert [problem for check in integrity.FULL for problem in check(catalog)] == []
    assert _contents(old) == before


@pytest.mark.slow
def test_its_documents_get_lasting_ids(old: Path, tmp_path: Path) -> None:
    """And keep them, with the id that 0.1.0 gave them, when their file changes."""
    with Index.open(old) as index:
        first = index.documents.list()[0]
        assert {info.file_id for info in index.documents.list()} == {
            f"file-{entry[0]}" for entry in RECORDED["documents"]
        }
        assert index.documents.list(f"file-{first.doc_id}") == [first]
        index.documents.tag(first.doc_id, "old")
        folder = tmp_path / "docs"
        folder.mkdir()
        for _, filename, *_ in RECORDED["documents"]:
            shutil.copy(SAMPLES / filename, folder)
        settings = Settings(images=False)
        ingest(index, folder, settings=settings)
        write_pdf(folder / first.filename, ["Another text altogether."])
        ingest(index, folder, settings=settings)
        [changed] = index.documents.list(first.doc_id)
        assert changed.doc_id != first.doc_id
        assert (changed.filename, changed.file_id) == (first.filename, f"file-{first.doc_id}")
        assert index.documents.tags(first.doc_id) == ["old"]


@pytest.mark.slow
def test_ingesting_its_files_changes_nothing(old: Path, tmp_path: Path) -> None:
    for _, filename, *_ in RECORDED["documents"]:
        (tmp_path / "docs").mkdir(exist_ok=True)
        shutil.copy(SAMPLES / filename, tmp_path / "docs")
    before = _contents(old)
    settings = Settings(images=False)
    first = ingest(IndexPaths(old), [tmp_path / "docs"], settings=settings)
    settled = _contents(old)
    if READER_VERSION == 1:  # else they are read again, once
        assert [file.result for file in first.files] == ["renamed", "renamed"], "known by their content"
        assert settled == before
    again = ingest(IndexPaths(old), [tmp_path / "docs"], settings=settings)
    assert [file.result for file in again.files] == ["unchanged", "unchanged"]
    assert _contents(old) == settled
