"""A document's table of contents, from the headings on its pages and the sections they stand in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.context import document_outline, outline_of
from research.records import DocumentInfo
from research.store import PageText

INFO = DocumentInfo("a" * 16, "a.pdf", "pdf", "A title", 3, "", "/d/a.pdf", 1, "a" * 64)


def outline(*pages: str, paths: tuple[str, ...] = ()) -> list[tuple[int, int, str]]:
    """(level, page, title) of pages given by their markdown."""
    read = [
        PageText(number, "", paths[number - 1] if paths else "", text) for number, text in enumerate(pages, start=1)
    ]
    return [(entry.level, entry.page, entry.title) for entry in outline_of(read)]


def test_levels_are_those_of_nesting() -> None:
    """Marks say how large a heading is, not how deep it stands."""
    assert outline("### Part one\n\ntext\n\n###### A thing", "###### Another\n\n### Part two\n\n#### Below") == [
        (1, 1, "Part one"),
        (2, 1, "A thing"),
        (2, 2, "Another"),
        (1, 2, "Part two"),
        (2, 2, "Below"),
    ]


def test_a_running_header_counts_once() -> None:
    pages = ["# Safety\n\ntext", "# Safety\n\n## Mains", "# Safety\n\nmore", "# Care\n\ntext", "# Safety\n\nagain"]
    assert outline(*pages) == [(1, 1, "Safety"), (2, 2, "Mains"), (1, 4, "Care"), (1, 5, "Safety")]


def test_a_bookmark_without_a_heading_is_known_from_its_path() -> None:
    pages = ["text", "# 2 METHODS\n\ntext", "text", "text"]
    paths = ("Introduction", "Methods", "Methods", "Methods > Rooms")
    assert outline(*pages, paths=paths) == [(1, 1, "Introduction"), (1, 2, "2 METHODS"), (2, 4, "Rooms")]


def test_code_is_no_heading() -> None:
    page = "# Settings\n\n```\n# degrees Celsius\nday = 23\n```\n\n#hashtag\n\n## Rules\n\n####### seven"
    assert outline(page) == [(1, 1, "Settings"), (2, 1, "Rules")]


def test_hostile_pages_are_bounded() -> None:
    assert len(outline(*["\n".join(f"# heading {n}" for n in range(50_000))] * 2)) <= 400
    [(_, _, title)] = outline("# " + "long " * 100_000)
    assert len(title) <= 200


def test_a_document_without_headings_is_told_by_its_pages() -> None:
    pages = [
        PageText(1, "i", "", "The\nfirst  page | of it"),
        PageText(2, "", "", "word " * 100),
        PageText(3, "", "", ""),
    ]
    found = document_outline(INFO, pages)
    assert found.entries == []
    assert [(page.page, page.text[:17]) for page in found.pages] == [
        (1, "The first page of"),
        (2, "word word word wo"),
        (3, ""),
    ]
    assert found.pages[1].text.endswith("…")
    assert found.down_to(1).pages == found.pages


def test_the_depth_can_be_limited() -> None:
    found = document_outline(INFO, [PageText(1, "i", "", "# One\n\n## Two\n\n### Three")])
    assert [entry.title for entry in found.down_to(2).entries] == ["One", "Two"]
    assert found.down_to(None) == found
    document = found.down_to(1).to_dict()
    [entry] = document["entries"]
    assert (entry["ref"], entry["link"]) == ("page:" + "a" * 16 + "#1", "file:///d/a.pdf#page=1")
    assert document["pages"] == []


@given(st.lists(st.text(alphabet="#a b\n`>|"), max_size=6))
def test_any_text_gives_an_outline(pages: list[str]) -> None:
    found = outline(*pages, paths=tuple(pages))
    assert [page for _, page, _ in found] == sorted(page for _, page, _ in found)
    assert all(level >= 1 and title for level, _, title in found)
    before = 0
    for level, _, _ in found:
        assert level <= before + 1, "nothing stands deeper than one below what it stands in"
        before = level
