"""What filters leave of an index, and which of them is named where that is nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from index_making import Making, chunks_of, stamp

from research.errors import NothingFoundError
from research.filters import LAST_PAGE, Filters
from research.records import DocumentInfo, Page
from research.store.names import Scope

# id, path, pages, added
SHELF = [
    ("aaaa000000000001", "/home/me/papers/raptor.pdf", 5, "2026-03-01T10:00:00+00:00"),
    ("bbbb000000000002", "/home/me/papers/old/colbert.pdf", 2, "2026-04-30T23:59:59+00:00"),
    ("cccc000000000003", "/home/me/Reports/annual.pdf", 9, "2026-05-31T23:30:00+00:00"),
    ("dddd000000000004", "/home/me/reports/draft-annual.pdf", 1, "2025-12-31T23:59:59+00:00"),
    ("eeee000000000005", "/home/me/papers-2/other.pdf", 3, ""),
]
FOLDER = "/home/me"


@pytest.fixture
def shelf(making: Making) -> Making:
    for doc_id, path, pages, added in SHELF:
        name = path.rpartition("/")[2]
        info = DocumentInfo(doc_id, name, "pdf", "", pages, added, path, 1, doc_id * 4)
        read = [(Page(page, name), chunks_of(page, name)) for page in range(1, pages + 1)]
        making.catalog.documents.add(info, stamp(path), read, reader_version=1)
    making.catalog.labels.add_tags(["aaaa000000000001", "cccc000000000003"], ["Read"])
    making.catalog.labels.add_tags(["cccc000000000003"], ["tax 2026"])
    return making


def left(shelf: Making, *filters: Filters) -> str:
    """The first letters of the documents that are left."""
    documents = shelf.catalog.names.scope(filters, FOLDER).documents
    return "abcde" if documents is None else "".join(sorted(doc_id[0] for doc_id in documents))


@pytest.mark.parametrize(
    ("filters", "letters"),
    [
        (Filters(documents=("raptor", "annual.pdf")), "ac"),
        (Filters(not_documents=("papers/*",)), "cde"),
        (Filters(not_documents=("raptor", "colbert")), "cde"),
        (Filters(not_documents=("final*",)), "abcde"),
        (Filters(documents=("*",)), "abcde"),
        (Filters(documents=("*annual*",), not_documents=("draft*",)), "c"),
        (Filters(under=("papers",)), "ab"),
        (Filters(under=("./papers/",)), "ab"),
        (Filters(under=("/home/me/papers/old", "Reports")), "bc"),
        (Filters(under=("/home/me/reports",)), "d"),
        (Filters(under=("/HOME/ME/REPORTS",)), "cd"),
        (Filters(under=("old",)), "b"),
        (Filters(under=("/",)), "abcde"),
        (Filters(under=(".",)), "abcde"),
        (Filters(since="2026-04"), "bc"),
        (Filters(until="2026-04"), "abd"),
        (Filters(since="2026", until="2026-05"), "abc"),
        (Filters(since="2026-05-31T23:30:00"), "c"),
        (Filters(until="2025"), "d"),
        (Filters(tags=("read",)), "ac"),
        (Filters(tags=("READ", "tax 2026")), "c"),
        (Filters(under=("papers",), tags=("read",), since="2026"), "a"),
    ],
)
def test_what_is_left(shelf: Making, filters: Filters, letters: str) -> None:
    assert left(shelf, filters) == letters


def test_all_of_several_hold(shelf: Making) -> None:
    assert left(shelf, Filters(under=("papers",)), Filters(documents=("*r*",))) == "ab"
    assert left(shelf, Filters(), Filters(documents=("raptor",))) == "a"
    assert left(shelf, Filters(pages="4")) == "abcde"


def test_a_link_is_followed_to_where_files_lie(shelf: Making, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/home/me/papers")
    assert left(shelf, Filters(under=(str(tmp_path / "link"),))) == "ab"


def test_a_copy_below_a_folder_is_enough(shelf: Making) -> None:
    shelf.catalog.documents.note_file("cccc000000000003", stamp("/home/me/papers/copy.pdf"))
    assert left(shelf, Filters(under=("papers",))) == "abc"


@pytest.mark.parametrize(
    ("scope", "pages"),
    [
        (Scope(), 20),
        (Scope(frozenset(["aaaa000000000001"])), 5),
        (Scope(frozenset(["aaaa000000000001", "bbbb000000000002"]), ((2, 3),)), 3),
        (Scope(None, ((1, 1), (4, LAST_PAGE))), 5 + 2 + 6),
        (Scope(None, ((2, 2), (4, 4), (9, 9))), 4 + 2 + 1),
        (Scope(frozenset()), 0),
    ],
)
def test_pages_are_counted_listed_and_kept_alike(shelf: Making, scope: Scope, pages: int) -> None:
    everything = [int(row[0]) for row in shelf.catalog.execute("SELECT page_id FROM pages")]
    assert scope.count(shelf.catalog) == pages
    assert len(scope.keep(shelf.catalog, everything)) == pages
    if scope != Scope():  # of which all pages are asked for by nobody
        assert set(scope.page_ids(shelf.catalog)) == scope.keep(shelf.catalog, everything)
    assert scope.keep(shelf.catalog, [10_000]) == set()


def test_an_index_of_undated_documents(making: Making) -> None:
    info = making.add("a.pdf", ["one"])
    making.catalog.execute("UPDATE documents SET timestamp = 'some day'")
    with pytest.raises(NothingFoundError, match="no document was added since 2026") as caught:
        making.catalog.names.scope([Filters(since="2026")])
    assert caught.value.hint == "see: ctx list"
    assert making.catalog.names.scope([replace(Filters(), documents=(info.doc_id,))]) == Scope()
