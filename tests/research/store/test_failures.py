"""What was given up: remembered, named, tried again when that can help, and gone with its document."""

from __future__ import annotations

from pathlib import Path

import pytest
from index_making import Making

from research.store import ledger
from research.store.ledger import WHOLE, FailedFile, FailedPage, GivenUp


def _note(made: Making, doc_id: str, *failed: FailedPage) -> None:
    with made.catalog.transaction() as connection:
        connection.ledger.record(doc_id, failed)


@pytest.mark.parametrize(
    ("code", "tries", "waits"),
    [
        ("killed", 9, False),
        ("crashed", 2, False),
        ("crashed", 4, True),
        ("timeout", 2, True),
        ("internal", 1, True),
        ("ocr_failed", 1, True),
    ],
)
def test_what_can_help_is_tried_again(making: Making, code: str, tries: int, waits: bool) -> None:
    document = making.add("a.pdf", ["walrus", "seal"])
    failed = FailedPage(2, "read", code, "because", tries)
    _note(making, document.doc_id, failed)
    assert ledger.waits(failed) == waits
    assert making.catalog.ledger.given_up() == [GivenUp("/docs/a.pdf", 2, "read", code, "because", waits)]
    assert making.catalog.ledger.to_read_again(waiting=False) == (set() if waits else {document.doc_id})
    assert making.catalog.ledger.to_read_again(waiting=True) == {document.doc_id}


def test_it_goes_with_its_document(making: Making) -> None:
    document = making.add("a.pdf", ["walrus"])
    _note(making, document.doc_id, FailedPage(1, "ocr", "killed", "because"))
    making.catalog.documents.remove(document.doc_id)
    assert making.catalog.ledger.given_up() == []
    _note(making, document.doc_id, FailedPage(1, "ocr", "killed", "because"))
    assert making.count("failed_pages") == 0, "nothing is noted of what is gone"


def test_pages_that_ocr_gave_up_are_put_back(making: Making) -> None:
    document = making.add("a.pdf", ["walrus", "seal", "orca"])
    failed = [FailedPage(1, "ocr", "killed", "k"), FailedPage(2, "ocr", "timeout", "t", 2)]
    making.catalog.documents.give_up_ocr(document.doc_id, failed)
    making.catalog.ledger.reopen()
    assert _needing_ocr(making) == [1]
    assert making.catalog.ledger.unfinished()["ocr"] == [document.doc_id]
    making.catalog.documents.give_up_ocr(document.doc_id, failed[:1])
    assert [page.tries for page in making.catalog.ledger.failures(document.doc_id)] == [2, 2]
    making.catalog.ledger.reopen(waiting_of=[document.doc_id])
    assert _needing_ocr(making) == [1, 2]
    making.catalog.documents.needs_no_ocr(document.doc_id, [1, 2])
    assert (making.catalog.ledger.given_up(), _needing_ocr(making)) == ([], [])
    assert "ocr" not in making.catalog.ledger.unfinished()


def _needing_ocr(made: Making) -> list[int]:
    return [row[0] for row in made.catalog.execute("SELECT page FROM pages WHERE needs_ocr ORDER BY page")]


def test_a_document_that_cannot_be_drawn_is_not_drawn_in_every_run(making: Making) -> None:
    document = making.add("a.pdf", ["walrus"])
    making.catalog.ledger.ask_for_images()
    assert making.catalog.ledger.unfinished()["images"] == [document.doc_id]
    whole = FailedPage(WHOLE, "images", "timeout", "t", 2)
    making.catalog.documents.mark_drawn(document.doc_id, [], published=0, failed=[whole])
    making.catalog.ledger.ask_for_images()
    making.catalog.ledger.reopen()
    assert "images" not in making.catalog.ledger.unfinished()
    making.catalog.ledger.reopen(waiting_of=[document.doc_id])
    assert making.catalog.ledger.unfinished()["images"] == [document.doc_id]
    making.catalog.documents.mark_drawn(document.doc_id, [1], published=0)
    assert making.catalog.ledger.given_up() == []


def test_a_file_is_forgotten_when_it_is_gone_or_read(making: Making, tmp_path: Path) -> None:
    here = tmp_path / "here.pdf"
    here.touch()
    for path in (str(here), "/gone/b.pdf", "/docs/a.pdf"):
        making.catalog.ledger.record_file(FailedFile(path, "ab" * 32, 1, "timeout", "t", 2))
    making.add("a.pdf", ["walrus"])
    making.catalog.ledger.forget_missing_files()
    assert making.catalog.ledger.given_up() == [GivenUp(str(here), 0, "read", "timeout", "t", waits=True)]
