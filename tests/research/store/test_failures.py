"""What was given up: remembered, named, tried again when that can help, and gone with its document."""

from __future__ import annotations

from pathlib import Path

import pytest
from index_making import Making

from research.store.catalog import ledger
from research.store.catalog.document_writes import give_up_ocr, mark_drawn, needs_no_ocr, remove_document
from research.store.catalog.ledger import WHOLE, FailedFile, FailedPage, GivenUp, ask_for_images, unfinished


def _note(made: Making, doc_id: str, *failed: FailedPage) -> None:
    with made.catalog.transaction() as connection:
        ledger.record(connection, doc_id, failed)


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
    assert ledger.given_up(making.catalog) == [GivenUp("/docs/a.pdf", 2, "read", code, "because", waits)]
    assert ledger.to_read_again(making.catalog, waiting=False) == (set() if waits else {document.doc_id})
    assert ledger.to_read_again(making.catalog, waiting=True) == {document.doc_id}


def test_it_goes_with_its_document(making: Making) -> None:
    document = making.add("a.pdf", ["walrus"])
    _note(making, document.doc_id, FailedPage(1, "ocr", "killed", "because"))
    remove_document(making.catalog, document.doc_id)
    assert ledger.given_up(making.catalog) == []
    _note(making, document.doc_id, FailedPage(1, "ocr", "killed", "because"))
    assert making.count("failed_pages") == 0, "nothing is noted of what is gone"


def test_pages_that_ocr_gave_up_are_put_back(making: Making) -> None:
    document = making.add("a.pdf", ["walrus", "seal", "orca"])
    failed = [FailedPage(1, "ocr", "killed", "k"), FailedPage(2, "ocr", "timeout", "t", 2)]
    give_up_ocr(making.catalog, document.doc_id, failed)
    ledger.reopen(making.catalog)
    assert _needing_ocr(making) == [1]
    assert unfinished(making.catalog)["ocr"] == [document.doc_id]
    give_up_ocr(making.catalog, document.doc_id, failed[:1])
    assert [page.tries for page in ledger.failures_of(making.catalog, document.doc_id)] == [2, 2]
    ledger.reopen(making.catalog, waiting_of=[document.doc_id])
    assert _needing_ocr(making) == [1, 2]
    needs_no_ocr(making.catalog, document.doc_id, [1, 2])
    assert (ledger.given_up(making.catalog), _needing_ocr(making)) == ([], [])
    assert "ocr" not in unfinished(making.catalog)


def _needing_ocr(made: Making) -> list[int]:
    return [row[0] for row in made.catalog.connection.execute("SELECT page FROM pages WHERE needs_ocr ORDER BY page")]


def test_a_document_that_cannot_be_drawn_is_not_drawn_in_every_run(making: Making) -> None:
    document = making.add("a.pdf", ["walrus"])
    ask_for_images(making.catalog)
    assert unfinished(making.catalog)["images"] == [document.doc_id]
    whole = FailedPage(WHOLE, "images", "timeout", "t", 2)
    mark_drawn(making.catalog, document.doc_id, [], published=0, failed=[whole])
    ask_for_images(making.catalog)
    ledger.reopen(making.catalog)
    assert "images" not in unfinished(making.catalog)
    ledger.reopen(making.catalog, waiting_of=[document.doc_id])
    assert unfinished(making.catalog)["images"] == [document.doc_id]
    mark_drawn(making.catalog, document.doc_id, [1], published=0)
    assert ledger.given_up(making.catalog) == []


def test_a_file_is_forgotten_when_it_is_gone_or_read(making: Making, tmp_path: Path) -> None:
    here = tmp_path / "here.pdf"
    here.touch()
    for path in (str(here), "/gone/b.pdf", "/docs/a.pdf"):
        ledger.record_file(making.catalog, FailedFile(path, "ab" * 32, 1, "timeout", "t", 2))
    making.add("a.pdf", ["walrus"])
    ledger.forget_files_gone(making.catalog)
    assert ledger.given_up(making.catalog) == [GivenUp(str(here), 0, "read", "timeout", "t", waits=True)]
