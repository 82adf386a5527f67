"""Tags: what people call a document; and short writes beside a long ingest."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from index_making import Making, stamp

from research.errors import BusyError, NothingFoundError
from research.store.catalog import Catalog
from tests.conftest import MakePdf


def test_a_document_that_is_not_there_has_none(making: Making) -> None:
    for write in (making.catalog.labels.add_tags, making.catalog.labels.remove_tags):
        with pytest.raises(NothingFoundError, match="no document has the id"):
            write(["0" * 16], ["tax"])


def test_tags_stay_when_a_document_is_read_again_and_when_its_file_changes(making: Making) -> None:
    info = making.add("a.pdf", ["one"])
    making.catalog.labels.add_tags([info.doc_id], ["tax"])
    making.add("a.pdf", ["one"], version=2)
    assert making.catalog.labels.tags(info.doc_id) == ["tax"]
    changed = making.add("a.pdf", ["another text"])
    assert making.catalog.labels.tags(changed.doc_id) == ["tax"]
    assert making.catalog.labels.tags(info.doc_id) == [], "it is gone"


def test_tags_stay_with_the_copy_that_keeps_the_text(making: Making) -> None:
    info = making.add("a.pdf", ["one"])
    making.catalog.documents.note_file(info.doc_id, stamp("/docs/copy.pdf"))
    making.catalog.labels.add_tags([info.doc_id], ["tax"])
    changed = making.add("a.pdf", ["another text"])
    assert making.catalog.labels.tags(info.doc_id) == ["tax"]
    assert making.catalog.labels.tags(changed.doc_id) == []


def test_a_transaction_that_does_not_end_is_not_waited_for(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 0.05)
    info = making.add("a.pdf", ["one"])
    busy = pytest.raises(BusyError, match="is being written")
    with Catalog(making.paths) as reader, making.catalog.transaction(), busy:
        reader.labels.add_tags([info.doc_id], ["tax"])
    assert making.catalog.labels.tags(info.doc_id) == []


@pytest.mark.slow
def test_tags_are_accepted_while_an_ingest_runs(making: Making, make_pdf: MakePdf) -> None:
    """Each within a second, or it raises: the busy timeout of a short write is that."""
    info = making.add("a.pdf", ["one"])
    making.catalog.close()
    folder = make_pdf("b.pdf", [f"Page {page} tells of the walrus and the seal." for page in range(20)]).parent
    arguments = ["ingest", str(folder), "--index", str(making.paths.root), "--no-images", "--visual", "off"]
    given = 0
    with subprocess.Popen([sys.executable, "-m", "cli.main", *arguments]) as run, Catalog(making.paths) as reader:
        while run.poll() is None:
            reader.labels.add_tags([info.doc_id], [f"tag {given}"])
            given += 1
            time.sleep(0.02)
        assert run.returncode == 0
        assert len(reader.labels.tags(info.doc_id)) == given > 5
        assert [document.filename for document in reader.documents.all()] == ["a.pdf", "b.pdf"]
