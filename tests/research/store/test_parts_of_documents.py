"""What the store tells of a document's parts: names, first pages, headings and lists."""

from __future__ import annotations

import pytest
from index_making import Making

from research.store.lookups import FRONT, count_entries, count_years


def the(making: Making, name: str) -> str:
    return next(each.doc_id for each in making.catalog.documents.all() if each.filename == name)


def numbers(making: Making, page_ids: object) -> list[int]:
    return [page.page for page in making.catalog.pages.get_many(list(page_ids)).values()]  # type: ignore[call-overload]


def test_names_and_first_pages(making: Making) -> None:
    making.add("night-harbour.pdf", ["cover", "walrus " * 200, "seal", "orca"])
    making.add("gardens.pdf", ["walrus"])
    doc_id = the(making, "night-harbour.pdf")
    assert making.catalog.lookups.named_words(["night", "harbour", "orca"]) == {doc_id: {"night", "harbour"}}
    fronts = making.catalog.lookups.front_pages([doc_id])[doc_id]
    assert [front.page for front in fronts] == [1, 2, 3] == list(range(1, FRONT + 1))
    assert [front.has_text for front in fronts] == [False, True, False]
    held = making.catalog.lookups.words_on([front.page_id for front in fronts], ["walrus", "seal", "orca"])
    assert held == {fronts[1].page_id: {"walrus"}, fronts[2].page_id: {"seal"}}
    assert making.catalog.lookups.documents_with("orca", most=2) == [doc_id]
    assert len(making.catalog.lookups.documents_with("walrus", most=2)) == 2
    assert making.catalog.lookups.documents_with('no "such', most=2) == []
    assert making.catalog.lookups.front_pages([]) == {}


def test_headings(making: Making) -> None:
    making.add(
        "a.pdf",
        [
            "# 1 Introduction\n\nThe conclusion comes later, after a sentence that is far too long for any heading.",
            "## 2.1 Rooms\n\nChapter 3: Method\n\nAbstract. Libraries overheat in early summer, when they are needed"
            " for examinations of all kinds.\n\nConclusion . . . . . 12\n\n**CONCLUSION**\n\nB Drivers | References",
        ],
    )
    doc_id = the(making, "a.pdf")
    found = [(each.page, each.level, each.number, each.title) for each in making.catalog.lookups.all_headings(doc_id)]
    assert (1, 1, "1", "introduction") in found
    assert (2, 2, "2.1", "rooms") in found
    assert (2, 7, "3", "method") in found
    assert (2, 7, "", "abstract") in found, "a heading may run into its text"
    assert (2, 7, "", "conclusion") in found
    assert {(2, 7, "b", "drivers"), (2, 7, "", "references")} <= set(found), "two columns may share a line"
    assert not any("12" in title for *_, title in found), "an entry of a table of contents is no heading"
    only = making.catalog.lookups.headings(doc_id, ["rooms"])
    assert {each.page for each in only} == {2}
    assert making.catalog.lookups.headings(doc_id, ["glossary"]) == []


def test_headings_of_hostile_pages_are_bounded(making: Making) -> None:
    making.add("a.pdf", ["# x\n" * 100_000] * 3)
    assert len(making.catalog.lookups.all_headings(the(making, "a.pdf"))) <= 3 * 2_000


def test_following_pages(making: Making) -> None:
    making.add("a.pdf", ["one", "two", "three", "four"])
    [first] = [
        page_id for page_id in making.catalog.pages.ids_of([the(making, "a.pdf")]) if numbers(making, [page_id]) == [2]
    ]
    assert [text for _, _, text in making.catalog.lookups.following_pages(first, 1)] == ["two", "three"]
    assert [text for _, _, text in making.catalog.lookups.following_pages(first, 9)] == ["two", "three", "four"]


@pytest.mark.parametrize(
    ("text", "entries", "lines"),
    [
        ("1 Pay . . . . 3\n2 Leave . . . . 4\nplain words here", 2, 3),
        ("1 Pay ... 3 2 Leave ... 4 Glossary ... 9", 3, 3),  # on one line, as many readers give it
        ("| Pay | 3 |\n| Leave | iv |", 2, 2),
        ("Nothing of the kind.\n\nNot here either.", 0, 2),
        ("", 0, 0),
    ],
)
def test_entries_of_a_table_of_contents(text: str, entries: int, lines: int) -> None:
    assert count_entries(text) == (entries, lines)


def test_years() -> None:
    assert count_years("Quill (2011), Iwu 2017b, 1955-1978; not 3011, 20111 or 201") == 4


def test_pages_with_all_words_of_a_topic(making: Making) -> None:
    making.add("a.pdf", ["walrus", "walrus and penguin", "walrus penguin walrus penguin", "filler"])
    making.add("b.pdf", ["penguin", "the penguin met a walrus by the sea on a cold day in the north"])
    making.add("c.pdf", ["walrus", "penguin"])
    found = making.catalog.lookups.pages_with_all("the walrus and the penguin")
    assert list(found) == [the(making, "a.pdf"), the(making, "b.pdf")], "on one page, the best first"
    assert numbers(making, found.values()) == [3, 2]
    assert making.catalog.lookups.pages_with_all("the") == {}
    assert making.catalog.lookups.pages_with_all('AND "OR NOT') == {}
    assert making.catalog.lookups.pages_with_all(" ".join(f"word{n}" for n in range(30))) == {}
