"""Documents and their files: adding, replacing, renaming, copies, removing, finding."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from index_making import Making

from research.errors import DocumentError
from research.records import Chunk, DocumentInfo, Page
from research.store.documents import FileStamp

TABLES = ("documents", "files", "pages", "chunks", "vectors", "ledger", "name_words", "page_words")


def _holding(making: Making, asked: list[str]) -> set[int]:
    """The pages full-text search finds."""
    return making.catalog.words.find(making.catalog.words.statistics(asked), limit=5)


def test_a_document_comes_back_as_it_was_added(making: Making) -> None:
    info = making.add("crisis.pdf", ["# Causes\n\nCredit grew.", "", "ﬁnance ☃ \x00 end"])
    assert making.catalog.documents.get(info.doc_id) == info
    assert making.catalog.documents.all() == [info]
    assert making.catalog.documents.of_hash(info.sha256) == (info, 1)
    assert making.catalog.pages.document_markdown(info.doc_id) == [
        (1, "# Causes\n\nCredit grew."),
        (2, ""),
        (3, "ﬁnance ☃ \x00 end"),
    ]
    assert making.catalog.pages.markdown(info.doc_id, 1) == "# Causes\n\nCredit grew."
    assert making.catalog.pages.markdown(info.doc_id, 4) is None
    assert making.catalog.pages.get(info.doc_id, 4) is None
    assert [number for number, _ in making.catalog.pages.section_paths(info.doc_id)] == [1, 2, 3]
    assert making.catalog.ledger.unfinished() == {"vectors": [info.doc_id]}
    assert making.catalog.documents.at_path("/docs/crisis.pdf") == (
        info.doc_id,
        FileStamp("/docs/crisis.pdf", 1, 1, 1, 1),
    )


def test_a_changed_file_replaces_its_old_self(making: Making) -> None:
    old = making.add("a.pdf", ["walrus"])
    making.embed()
    new = making.add("a.pdf", ["penguin", "penguin again"])
    assert [document.doc_id for document in making.catalog.documents.all()] == [new.doc_id]
    assert making.catalog.documents.get(old.doc_id) is None
    assert _holding(making, ["walrus"]) == set()
    assert len(_holding(making, ["penguin"])) == 2
    assert making.count("vectors") == 0
    assert making.count("page_words") == 2


def test_reading_the_same_content_again_keeps_the_id_and_leaves_no_rest(making: Making) -> None:
    first = making.add("a.pdf", ["walrus"])
    again = making.add("a.pdf", ["walrus"], version=2)
    assert first.doc_id == again.doc_id
    assert making.catalog.documents.of_hash(again.sha256) == (again, 2)
    assert {table: making.count(table) for table in ("documents", "files", "pages", "chunks", "page_words")} == {
        "documents": 1,
        "files": 1,
        "pages": 1,
        "chunks": 1,
        "page_words": 1,
    }


def test_a_renamed_document_keeps_its_id_and_is_found_by_its_new_name(making: Making) -> None:
    info = making.add("Old_Name.pdf", ["walrus"])
    making.embed()
    before = making.catalog.chunks.last_sequence()
    making.catalog.documents.rename(
        info.doc_id, info.source_path, FileStamp("/new/Fresh_Title.pdf", 1, 1, 1, 1), "Fresh_Title.pdf"
    )
    renamed = making.catalog.documents.get(info.doc_id)
    assert renamed is not None
    assert (renamed.filename, renamed.source_path) == ("Fresh_Title.pdf", "/new/Fresh_Title.pdf")
    assert making.catalog.documents.paths(info.doc_id) == ["/new/Fresh_Title.pdf"]
    assert set(making.catalog.words.name_matches(["fresh"])) == {info.doc_id}
    assert making.catalog.words.name_matches(["old"]) == {}
    assert making.count("vectors") == 1, "nothing is embedded again"
    assert making.catalog.chunks.last_sequence() > before, "and the collections will take the new name"


def test_a_file_renamed_over_another_takes_its_place(making: Making) -> None:
    kept = making.add("a.pdf", ["walrus"])
    gone = making.add("b.pdf", ["penguin"])
    making.catalog.documents.rename(kept.doc_id, kept.source_path, FileStamp(gone.source_path, 1, 1, 1, 1), "b.pdf")
    assert [(d.doc_id, d.filename) for d in making.catalog.documents.all()] == [(kept.doc_id, "b.pdf")]


def test_two_copies_are_one_document(making: Making) -> None:
    info = making.add("a.pdf", ["walrus"])
    making.catalog.documents.note_file(info.doc_id, FileStamp("/docs/copy.pdf", 1, 1, 1, 1))
    making.catalog.documents.note_file(info.doc_id, FileStamp("/docs/copy.pdf", 2, 2, 2, 2))
    assert len(making.catalog.documents.all()) == 1
    assert making.catalog.documents.paths(info.doc_id) == ["/docs/a.pdf", "/docs/copy.pdf"]


def test_a_copy_keeps_the_document_when_the_first_file_changes(making: Making) -> None:
    old = making.add("a.pdf", ["walrus"])
    making.embed()
    making.catalog.documents.note_file(old.doc_id, FileStamp("/docs/copy.pdf", 1, 1, 1, 1))
    making.add("a.pdf", ["penguin"])
    kept = making.catalog.documents.get(old.doc_id)
    assert kept is not None
    # A citation must name the file that still holds the text.
    assert (kept.filename, kept.source_path) == ("copy.pdf", "/docs/copy.pdf")
    assert set(making.catalog.words.name_matches(["copi"])) == {old.doc_id}
    assert making.catalog.documents.paths(old.doc_id) == ["/docs/copy.pdf"]


def test_a_changed_copy_leaves_the_document_its_name(making: Making) -> None:
    info = making.add("a.pdf", ["walrus"])
    making.catalog.documents.note_file(info.doc_id, FileStamp("/docs/copy.pdf", 1, 1, 1, 1))
    making.add("copy.pdf", ["penguin"])
    kept = making.catalog.documents.get(info.doc_id)
    assert kept is not None
    assert kept.filename == "a.pdf"


def test_a_removed_document_leaves_nothing(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", ""])
    making.embed()
    making.catalog.documents.remove(info.doc_id)
    making.catalog.documents.remove(info.doc_id)  # twice does no harm
    assert {table: making.count(table) for table in TABLES} == dict.fromkeys(TABLES, 0)
    assert making.catalog.pages.count() == 0


def test_a_document_that_breaks_half_way_leaves_the_old_one(making: Making) -> None:
    old = making.add("a.pdf", ["walrus"])
    making.embed()
    before = {table: making.count(table) for table in TABLES}

    def pages() -> Iterator[tuple[Page, list[Chunk]]]:
        yield Page(1, "penguin"), []
        raise RuntimeError("the reader died")

    new = DocumentInfo("f" * 16, "a.pdf", "pdf", "", 2, "", old.source_path, 1, "f" * 64)
    with pytest.raises(RuntimeError, match="died"):
        making.catalog.documents.add(new, FileStamp(old.source_path, 9, 9, 9, 9), pages(), reader_version=1)
    assert making.catalog.documents.all() == [old]
    assert {table: making.count(table) for table in TABLES} == before
    assert len(_holding(making, ["walrus"])) == 1
    assert _holding(making, ["penguin"]) == set()


@pytest.mark.parametrize("numbers", [[1], [1, 3], [2, 1], [1, 2, 3]])
def test_a_document_with_missing_or_shuffled_pages_is_refused(making: Making, numbers: list[int]) -> None:
    info = DocumentInfo("f" * 16, "a.pdf", "pdf", "", 2, "", "/docs/a.pdf", 1, "f" * 64)
    with pytest.raises(DocumentError) as caught:
        making.catalog.documents.add(
            info, FileStamp("/docs/a.pdf", 1, 1, 1, 1), [(Page(n, "x"), []) for n in numbers], reader_version=1
        )
    assert caught.value.code == "incomplete"
    assert {table: making.count(table) for table in TABLES} == dict.fromkeys(TABLES, 0)
