"""Documents and their files: adding, replacing, renaming, copies, removing, finding."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from index_making import Making

from research.errors import DocumentError, NothingFoundError
from research.records import Chunk, DocumentInfo, Page
from research.store.catalog import chunk_vectors
from research.store.catalog.document_names import find_documents
from research.store.catalog.document_writes import add_document, note_file, remove_document, rename_document
from research.store.catalog.documents import (
    FileStamp,
    all_documents,
    document_at_path,
    document_of_hash,
    get_document,
    paths_of,
)
from research.store.catalog.ledger import unfinished
from research.store.catalog.pages import count_pages, document_markdown, get_page, page_markdown, pages_of
from research.store.fulltext.search import find_words, name_matches, term_statistics

TABLES = ("documents", "files", "pages", "chunks", "vectors", "ledger", "name_words", "page_words")


def _holding(making: Making, asked: list[str]) -> set[int]:
    """The pages full-text search finds."""
    return find_words(making.catalog, term_statistics(making.catalog, asked), limit=5)


def test_a_document_comes_back_as_it_was_added(making: Making) -> None:
    info = making.add("crisis.pdf", ["# Causes\n\nCredit grew.", "", "ﬁnance ☃ \x00 end"])
    assert get_document(making.catalog, info.doc_id) == info
    assert all_documents(making.catalog) == [info]
    assert document_of_hash(making.catalog, info.sha256) == (info, 1)
    assert document_markdown(making.catalog, info.doc_id) == [
        (1, "# Causes\n\nCredit grew."),
        (2, ""),
        (3, "ﬁnance ☃ \x00 end"),
    ]
    assert page_markdown(making.catalog, info.doc_id, 1) == "# Causes\n\nCredit grew."
    assert page_markdown(making.catalog, info.doc_id, 4) is None
    assert get_page(making.catalog, info.doc_id, 4) is None
    assert [page.page for page in pages_of(making.catalog, [info.doc_id])] == [1, 2, 3]
    assert unfinished(making.catalog) == {"vectors": [info.doc_id]}
    assert document_at_path(making.catalog, "/docs/crisis.pdf") == (
        info.doc_id,
        FileStamp("/docs/crisis.pdf", 1, 1, 1, 1),
    )


def test_a_changed_file_replaces_its_old_self(making: Making) -> None:
    old = making.add("a.pdf", ["walrus"])
    making.embed()
    new = making.add("a.pdf", ["penguin", "penguin again"])
    assert [document.doc_id for document in all_documents(making.catalog)] == [new.doc_id]
    assert get_document(making.catalog, old.doc_id) is None
    assert _holding(making, ["walrus"]) == set()
    assert len(_holding(making, ["penguin"])) == 2
    assert making.count("vectors") == 0
    assert making.count("page_words") == 2


def test_reading_the_same_content_again_keeps_the_id_and_leaves_no_rest(making: Making) -> None:
    first = making.add("a.pdf", ["walrus"])
    again = making.add("a.pdf", ["walrus"], version=2)
    assert first.doc_id == again.doc_id
    assert document_of_hash(making.catalog, again.sha256) == (again, 2)
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
    before = chunk_vectors.last_sequence(making.catalog)
    rename_document(
        making.catalog, info.doc_id, info.source_path, FileStamp("/new/Fresh_Title.pdf", 1, 1, 1, 1), "Fresh_Title.pdf"
    )
    renamed = get_document(making.catalog, info.doc_id)
    assert renamed is not None
    assert (renamed.filename, renamed.source_path) == ("Fresh_Title.pdf", "/new/Fresh_Title.pdf")
    assert paths_of(making.catalog, info.doc_id) == ["/new/Fresh_Title.pdf"]
    assert set(name_matches(making.catalog, ["fresh"])) == {info.doc_id}
    assert name_matches(making.catalog, ["old"]) == {}
    assert making.count("vectors") == 1, "nothing is embedded again"
    assert chunk_vectors.last_sequence(making.catalog) > before, "and the collections will take the new name"


def test_a_file_renamed_over_another_takes_its_place(making: Making) -> None:
    kept = making.add("a.pdf", ["walrus"])
    gone = making.add("b.pdf", ["penguin"])
    rename_document(making.catalog, kept.doc_id, kept.source_path, FileStamp(gone.source_path, 1, 1, 1, 1), "b.pdf")
    assert [(d.doc_id, d.filename) for d in all_documents(making.catalog)] == [(kept.doc_id, "b.pdf")]


def test_two_copies_are_one_document(making: Making) -> None:
    info = making.add("a.pdf", ["walrus"])
    note_file(making.catalog, info.doc_id, FileStamp("/docs/copy.pdf", 1, 1, 1, 1))
    note_file(making.catalog, info.doc_id, FileStamp("/docs/copy.pdf", 2, 2, 2, 2))
    assert len(all_documents(making.catalog)) == 1
    assert paths_of(making.catalog, info.doc_id) == ["/docs/a.pdf", "/docs/copy.pdf"]


def test_a_copy_keeps_the_document_when_the_first_file_changes(making: Making) -> None:
    old = making.add("a.pdf", ["walrus"])
    making.embed()
    note_file(making.catalog, old.doc_id, FileStamp("/docs/copy.pdf", 1, 1, 1, 1))
    making.add("a.pdf", ["penguin"])
    kept = get_document(making.catalog, old.doc_id)
    assert kept is not None
    # A citation must name the file that still holds the text.
    assert (kept.filename, kept.source_path) == ("copy.pdf", "/docs/copy.pdf")
    assert set(name_matches(making.catalog, ["copi"])) == {old.doc_id}
    assert paths_of(making.catalog, old.doc_id) == ["/docs/copy.pdf"]


def test_a_changed_copy_leaves_the_document_its_name(making: Making) -> None:
    info = making.add("a.pdf", ["walrus"])
    note_file(making.catalog, info.doc_id, FileStamp("/docs/copy.pdf", 1, 1, 1, 1))
    making.add("copy.pdf", ["penguin"])
    kept = get_document(making.catalog, info.doc_id)
    assert kept is not None
    assert kept.filename == "a.pdf"


def test_a_removed_document_leaves_nothing(making: Making) -> None:
    info = making.add("a.pdf", ["walrus", ""])
    making.embed()
    remove_document(making.catalog, info.doc_id)
    remove_document(making.catalog, info.doc_id)  # twice does no harm
    assert {table: making.count(table) for table in TABLES} == dict.fromkeys(TABLES, 0)
    assert count_pages(making.catalog) == 0


def test_a_document_that_breaks_half_way_leaves_the_old_one(making: Making) -> None:
    old = making.add("a.pdf", ["walrus"])
    making.embed()
    before = {table: making.count(table) for table in TABLES}

    def pages() -> Iterator[tuple[Page, list[Chunk]]]:
        yield Page(1, "penguin"), []
        raise RuntimeError("the reader died")

    new = DocumentInfo("f" * 16, "a.pdf", "pdf", "", 2, "", old.source_path, 1, "f" * 64)
    with pytest.raises(RuntimeError, match="died"):
        add_document(making.catalog, new, FileStamp(old.source_path, 9, 9, 9, 9), pages(), reader_version=1)
    assert all_documents(making.catalog) == [old]
    assert {table: making.count(table) for table in TABLES} == before
    assert len(_holding(making, ["walrus"])) == 1
    assert _holding(making, ["penguin"]) == set()


@pytest.mark.parametrize("numbers", [[1], [1, 3], [2, 1], [1, 2, 3]])
def test_a_document_with_missing_or_shuffled_pages_is_refused(making: Making, numbers: list[int]) -> None:
    info = DocumentInfo("f" * 16, "a.pdf", "pdf", "", 2, "", "/docs/a.pdf", 1, "f" * 64)
    with pytest.raises(DocumentError) as caught:
        add_document(
            making.catalog,
            info,
            FileStamp("/docs/a.pdf", 1, 1, 1, 1),
            [(Page(n, "x"), []) for n in numbers],
            reader_version=1,
        )
    assert caught.value.code == "incomplete"
    assert {table: making.count(table) for table in TABLES} == dict.fromkeys(TABLES, 0)


@pytest.fixture
def library(making: Making) -> dict[str, str]:
    names = ["Annual Report 2023.pdf", "annual report 2024.PDF", "notes.pdf", "notes-old.pdf", "weird[1].pdf"]
    return {name: making.add(name, [f"text of {name}"]).doc_id for name in names}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("notes.pdf", ["notes.pdf"]),
        ("NOTES", ["notes.pdf"]),
        ("/docs/notes-old.pdf", ["notes-old.pdf"]),
        ("annual report 2024", ["annual report 2024.PDF"]),
        ("annual*", ["Annual Report 2023.pdf", "annual report 2024.PDF"]),
        ("weird[1].pdf", ["weird[1].pdf"]),
        ("weird[1]", ["weird[1].pdf"]),
        ("report", ["Annual Report 2023.pdf", "annual report 2024.PDF"]),
        ("*", ["Annual Report 2023.pdf", "annual report 2024.PDF", "notes-old.pdf", "notes.pdf", "weird[1].pdf"]),
    ],
)
def test_documents_are_found_by_name(making: Making, library: dict[str, str], wanted: str, found: list[str]) -> None:
    assert [document.filename for document in find_documents(making.catalog, wanted)] == found


def test_documents_are_found_by_id(making: Making, library: dict[str, str]) -> None:
    doc_id = library["notes.pdf"]
    for wanted in (doc_id, doc_id.upper(), doc_id[:6]):
        assert [document.doc_id for document in find_documents(making.catalog, wanted)] == [doc_id]


@pytest.mark.parametrize("wanted", ["", "nothing like it", "[x", "../x"])
def test_an_unknown_document_is_told(making: Making, library: dict[str, str], wanted: str) -> None:
    with pytest.raises(NothingFoundError):
        find_documents(making.catalog, wanted)


def test_a_slip_of_the_pen_gets_a_suggestion(making: Making, library: dict[str, str]) -> None:
    with pytest.raises(NothingFoundError) as caught:
        find_documents(making.catalog, "ntoes.pdf")
    assert "did you mean notes.pdf?" in caught.value.hint
