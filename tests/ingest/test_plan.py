"""What a file needs: nothing, a name, or to be read. Its ordinary life is in test_ingest_run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.pdf import READER_VERSION
from ingest.report import FileOutcome
from ingest.run import ToRead, plan
from research.records import DocumentInfo, Page
from research.store import Catalog, IndexPaths


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(IndexPaths(tmp_path / "index"), writable=True) as catalog:
        yield catalog


def _file(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def _add(catalog: Catalog, path: Path) -> str:
    """What a run does with a file to read, without the reading."""
    step = plan(catalog, path)
    assert isinstance(step, ToRead)
    info = DocumentInfo(step.doc_id, path.name, "pdf", "", 1, "", step.stamp.path, step.stamp.size, step.sha256)
    catalog.documents.add(info, step.stamp, [(Page(1, path.read_text()), [])], reader_version=READER_VERSION)
    return step.doc_id


def _outcome(catalog: Catalog, path: Path) -> FileOutcome:
    outcome = plan(catalog, path)
    assert isinstance(outcome, FileOutcome)
    return outcome


def test_a_file_that_vanished_since_it_was_seen_fails_alone(catalog: Catalog, tmp_path: Path) -> None:
    outcome = _outcome(catalog, tmp_path / "gone.pdf")
    assert (outcome.result, outcome.code) == ("failed", "unreadable")


def test_a_file_that_became_another_known_one(catalog: Catalog, tmp_path: Path) -> None:
    first, second = _file(tmp_path / "a.pdf", "walrus"), _file(tmp_path / "b.pdf", "penguin")
    _add(catalog, first)
    kept = _add(catalog, second)
    _file(first, "penguin")
    assert _outcome(catalog, first).result == "copy"
    assert [document.doc_id for document in catalog.documents.all()] == [kept], "the walrus is nowhere any more"


def test_a_moved_file_that_is_read_again_leaves_no_copy_behind(catalog: Catalog, tmp_path: Path) -> None:
    """Else its ids would stay with the place it left when it changes."""
    before = _file(tmp_path / "a.pdf", "text")
    doc_id = _add(catalog, before)
    catalog.execute("UPDATE documents SET reader_version = 0")
    after = before.rename(tmp_path / "b.pdf")
    assert _add(catalog, after) == doc_id
    assert catalog.documents.paths(doc_id) == [str(after)]
    copy = _file(tmp_path / "copy.pdf", "text")
    catalog.execute("UPDATE documents SET reader_version = 0")
    assert _add(catalog, copy) == doc_id
    assert catalog.documents.paths(doc_id) == [str(after), str(copy)], "a copy stays one"
