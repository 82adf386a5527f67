"""Which places a question names."""

from __future__ import annotations

import pytest

from research.search.boosters.page_references import LAST, Caption, Places, places_in


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("What does the chart on page 14 show?", (14,)),
        ("See p. 3, pg 4 and pp. 7-9", (3, 4, 7, 8, 9)),
        ("What is written on Page fourteen?", (14,)),
        ("signatures on the page 15 and page 16", (15, 16)),
        ("How many figures are there from page 3 to page 6?", (3, 4, 5, 6)),
        ("the pictures on slides 30, 31 and 33", (30, 31, 33)),
        ("Who signed the last page?", (LAST,)),
        ("the second slide and the 12th page", (2, 12)),
        ("What court is named on the cover page?", (1,)),
        ("page no. 5, page #6, page number 7", (5, 6, 7)),
        ("pages 10 to 400", ()),
        ("How many pages does it have?", ()),
        ("At 8 p.m. in 2012", ()),
        ("List them like ['Page 2', 'Page 4'].", ()),
        ("homepage 5, one page, 3 pages", ()),
        ("", ()),
    ],
)
def test_pages(question: str, pages: tuple[int, ...]) -> None:
    assert places_in(question).pages == pages


@pytest.mark.parametrize(
    ("question", "captions"),
    [
        ("In Figure 4, which nodes are red?", (Caption("figure", "4"),)),
        ("Compare Fig. 2 with Table 3-1.", (Caption("fig", "2"), Caption("table", "3-1"))),
        ("What are the items in Table1-1?", (Caption("table", "1-1"),)),
        ("How many figures are in the table?", ()),
        ("a configuration of 4 and a stable 5", ()),
    ],
)
def test_captions(question: str, captions: tuple[Caption, ...]) -> None:
    assert places_in(question).captions == captions


def test_naming_nothing_is_false() -> None:
    assert not places_in("What is a lighthouse?")
    assert Places(pages=(1,))


def test_a_pasted_book_is_read_quickly() -> None:
    places_in("page 1 and " * 50_000 + "page , , , , " * 10_000)
