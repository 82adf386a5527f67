"""Which documents are meant: the surest way decides, and what means none or too many says so."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from index_making import Making, chunks_of, stamp

from research.errors import NothingFoundError, UsageError
from research.records import DocumentInfo, Page
from research.store import names as document_names
from research.store.names import is_pattern, matcher, page_of_ref

# id, path, title
SHELF = [
    ("192fab0000000001", "/home/me/papers/raptor.pdf", "RAPTOR: Recursive Abstractive Processing"),
    ("192fcd0000000002", "/home/me/papers/colbert/ColBERT v2.pdf", "Effective and Efficient Retrieval"),
    ("aaaa000000000003", "/home/me/reports/2024/annual.pdf", "Annual Report 2024"),
    ("bbbb000000000004", "/home/me/reports/2025/annual.pdf", "Annual Report 2025"),
    ("cccc000000000005", "/home/me/notes [1].pdf", "Notes"),
    ("face000000000006", "/home/me/Bescha\u0308ftigung.PDF", "raptor.pdf"),
    ("dddd000000000007", "/home/me/surface.pdf", ""),
]
FOLDER = "/home/me"


@pytest.fixture
def shelf(making: Making) -> Making:
    for doc_id, path, title in SHELF:
        name = path.rpartition("/")[2]
        info = DocumentInfo(doc_id, name, "pdf", title, 1, "2026-01-01T00:00:00+00:00", path, 1, doc_id * 4)
        making.catalog.documents.add(info, stamp(path), [(Page(1, name), chunks_of(1, name))], reader_version=1)
    return making


def meant(shelf: Making, name: str, folder: str = FOLDER, *, cautious: bool = False) -> list[str]:
    return sorted(found.doc_id[:4] for found in shelf.catalog.names.find(name, folder, cautious=cautious))


NAMED = [
    # the file's name, whatever anybody wrote into a title
    ("raptor.pdf", ["192f"]),
    ("RAPTOR.PDF", ["192f"]),
    ("raptor", ["192f"]),
    ("annual.pdf", ["aaaa", "bbbb"]),
    ("notes [1].pdf", ["cccc"]),
    ("Beschäftigung", ["face"]),
    ("BESCHÄFTIGUNG.pdf", ["face"]),
    # paths: whole, relative to the folder, or their ends
    ("/home/me/reports/2024/annual.pdf", ["aaaa"]),
    ("reports/2024/annual.pdf", ["aaaa"]),
    ("./reports/2024/annual", ["aaaa"]),
    ("papers/../reports/2025/annual.pdf", ["bbbb"]),
    ("2025/annual.pdf", ["bbbb"]),
    ("2025/annual", ["bbbb"]),
    ("colbert/colbert V2.pdf", ["192f"]),
    # patterns of names and of paths
    ("*.pdf", ["192f", "192f", "aaaa", "bbbb", "cccc", "dddd", "face"]),
    ("annual*", ["aaaa", "bbbb"]),
    ("papers/*", ["192f", "192f"]),
    ("./papers/*", ["192f", "192f"]),
    ("/home/me/reports/*", ["aaaa", "bbbb"]),
    ("20??/annual.pdf", ["aaaa", "bbbb"]),
    ("r[ae]ptor.pdf", ["192f"]),
    ("notes [[]1].pdf", ["cccc"]),
    # titles, whole and by their words
    ("Annual Report 2024", ["aaaa"]),
    ("annual  report 2024", ["aaaa"]),
    ("report 2025", ["bbbb"]),
    ("abstractive", ["192f"]),
    # parts of names
    ("surf", ["dddd"]),
    ("face", ["dddd"]),
    # ids, refs and their beginnings
    ("aaaa000000000003", ["aaaa"]),
    ("AAAA000000000003", ["aaaa"]),
    ("page:aaaa000000000003#7", ["aaaa"]),
    ("page:aaaa000000000003", ["aaaa"]),
    ("file-bbbb000000000004", ["bbbb"]),
    ("192fab", ["192f"]),
    ("bbbb", ["bbbb"]),
    ("cccc0", ["cccc"]),
]


def test_the_surest_way_decides(shelf: Making) -> None:
    for name, found in NAMED:
        assert meant(shelf, name) == found, name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nowhere.pdf", "see them all with: ctx list"),
        ("raptr.pdf", "did you mean raptor.pdf?"),
        ("papers/raptr.pdf", "did you mean raptor.pdf?"),
        ("abstractiv", "did you mean Abstractive?"),
        ("aaaa00000000000f", "ctx list"),
        ("page:aaaa00000000000f#7", "ctx list"),
        ("zzz*", "ctx list"),
        ("nowhere/*", "ctx list"),
        ("../papers/*", "ctx list"),
        ("x" * 10_000, "ctx list"),
        ("", "ctx list"),
        ("..", "ctx list"),
        ("a\0b", "ctx list"),
        ("~\0", "ctx list"),
        ("\ud800", "ctx list"),
        ("[[", "ctx list"),
        ("%", "ctx list"),
    ],
)
def test_what_means_none_says_so(shelf: Making, name: str, hint: str) -> None:
    with pytest.raises(NothingFoundError, match="no document matches") as caught:
        meant(shelf, name)
    assert hint in caught.value.hint
    assert len(caught.value.message) < 200


def test_the_beginning_of_several_ids_is_no_choice(shelf: Making) -> None:
    for name in ("192f", "192F"):
        with pytest.raises(UsageError, match=re.escape("matches 2 documents: ColBERT v2.pdf (192fcd0000000002)")):
            meant(shelf, name)
    for cautious in (False, True):
        with pytest.raises((UsageError, NothingFoundError)):
            meant(shelf, "192f", cautious=cautious)


def test_what_cannot_be_undone_goes_by_no_title_and_no_short_id(shelf: Making) -> None:
    for name in ("abstractive", "bbbb", "Annual Report 2024"):
        with pytest.raises(NothingFoundError) as caught:
            meant(shelf, name, cautious=True)
        assert "by title or a short id" in caught.value.hint
    assert meant(shelf, "bbbb00", cautious=True) == ["bbbb"]
    assert meant(shelf, "surf", cautious=True) == ["dddd"]
    assert meant(shelf, "annual*", cautious=True) == ["aaaa", "bbbb"]


def test_without_a_folder_nothing_is_relative(shelf: Making) -> None:
    assert meant(shelf, "papers/raptor.pdf", "") == ["192f"], "as the end of a path"
    assert meant(shelf, "./papers/*", "") == ["192f", "192f"]
    with pytest.raises(NothingFoundError):
        meant(shelf, "papers/../reports/2025/annual.pdf", "")
    # A folder whose name looks like a pattern is none.
    assert document_names.absolute("a/../b", "/x[1]") == "/x[1]/b"


def test_a_copy_is_found_by_each_of_its_paths(shelf: Making) -> None:
    shelf.catalog.documents.note_file("aaaa000000000003", stamp("/elsewhere/copy of it.pdf"))
    assert meant(shelf, "/elsewhere/copy of it.pdf") == ["aaaa"]
    assert meant(shelf, "elsewhere/*") == ["aaaa"]
    assert meant(shelf, "2024/annual") == ["aaaa"]


def test_what_was_read_is_forgotten_when_somebody_writes(shelf: Making) -> None:
    assert meant(shelf, "*")
    shelf.add("newest.pdf", ["new"])
    assert meant(shelf, "newest")


def test_several_names_each_document_once(shelf: Making) -> None:
    found = shelf.catalog.names.select(["raptor", "papers/*", "192fab"], FOLDER)
    assert [info.doc_id[:6] for info in found] == ["192fab", "192fcd"]
    with pytest.raises(UsageError, match="name is empty"):
        shelf.catalog.names.select(["raptor", " "], FOLDER)
    with pytest.raises(UsageError, match="matches 2 documents") as caught:
        shelf.catalog.names.select_one("annual.pdf", FOLDER)
    assert "by its id" in caught.value.hint
    assert shelf.catalog.names.select_one("2024/annual.pdf", FOLDER).doc_id == "aaaa000000000003"


def test_many_matches_are_not_all_named(making: Making) -> None:
    infos = [making.add(f"same-{number:02}.pdf", [f"text {number}"]) for number in range(12)]
    error = document_names.ambiguous("same", infos)
    assert error.message.startswith("'same' matches 12 documents: same-00.pdf")
    assert error.message.endswith(" …")
    assert "same-10" not in error.message


def test_a_pattern_is_told_from_a_name_with_brackets(shelf: Making) -> None:
    [info] = shelf.catalog.names.select(["notes [1].pdf"], FOLDER)
    assert not is_pattern("notes [1].pdf", [info])
    assert is_pattern("notes*", [info])
    assert not is_pattern("notes", [info])
    assert not is_pattern("x", [replace(info, filename="x")])


def test_a_pattern_takes_no_time() -> None:
    """Without backtracking: this would take years."""
    hard = matcher("*a" * 60 + "b")
    assert not hard("a" * 2_000)
    assert not matcher("[" * 20_000)("x")
    assert matcher("*/a/*.pdf")("/x/a/y/z.pdf")


def test_refs_name_a_page() -> None:
    assert page_of_ref("page:aaaa000000000003#7") == 7
    assert page_of_ref("file-aaaa000000000003-2#0") == 0
    for text in ("page:aaaa000000000003", "page:aaaa000000000003#", "raptor.pdf#7", "page:x#7", ""):
        assert page_of_ref(text) is None
