"""What pages say of each other: sentences that refer, sentences that only look so, and the one page that is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.graph.references import captions_of, references_in, targets_of
from research.models import OutlineEntry
from research.store import PageText

REFERRING = {
    "As Table 5 shows, rents rose.": [("table", "5")],
    "Rents rose (Table 5).": [("table", "5")],
    "see Figure 3": [("figure", "3")],
    "Results are in Figs. 3 and 4.": [("figure", "3"), ("figure", "4")],
    "Rents are given in Tables 5–7.": [("table", "5"), ("table", "6"), ("table", "7")],
    "The costs, Table 1-3, are high.": [("table", "1-3")],
    "as listed in\nTable 2": [("table", "2")],
    "Wie Tabelle 2 zeigt, steigen die Mieten.": [("tabelle", "2")],
    "siehe Abbildung 3": [("abbildung", "3")],
    "voir le tableau 3.": [("tableau", "3")],
    "см. рис. 2": [("рисунок", "2")],
    "The method is described in Section 4.2.": [("section", "4.2")],
    "Appendix B lists all sites.": [("section", "B")],
    "continued on page 14": [("page", "14")],
    "siehe Seite 7": [("page", "7")],
    "The map is on the next page.": [("step", "1")],
    "see the previous page": [("step", "-1")],
}
NOT_REFERRING = [
    "Table 5 people sat at the window.",
    "He sat at table 5 with friends.",
    "We table 5 motions today.",
    "a table 5 feet long",
    "the box 3 inches wide",
    "Table 5: Rents by city",
    "Figure 3. Rents by city",
    "Table 5 of the Ministry's report shows it.",
    "see Figure 3 in [12]",
    "Section 4.2 of the Clean Air Act applies.",
    "Page 3 of 10",
    "(Smith 2010, p. 12)",
    "Kants Kritik, § 12 BGB",
    "tables 5",
    "He was born in chapter houses.",
    "vegetable 5 is ripe",
    "Rents rose by 5 percent in 2010.",
    "next page please",
]


@pytest.mark.parametrize(("sentence", "expected"), REFERRING.items())
def test_what_refers(sentence: str, expected: list[tuple[str, str]]) -> None:
    assert [tuple(found) for found in references_in(sentence)] == expected


@pytest.mark.parametrize("sentence", NOT_REFERRING)
def test_what_does_not(sentence: str) -> None:
    assert references_in(sentence) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Table 5: Rents", [("table", "5")]),
        ("**Table 5** Rents by city", [("table", "5")]),
        ("some text\nFig. 3. The harbour", [("figure", "3")]),
        ("Abbildung 3: Der Hafen", [("abbildung", "3")]),
        ("Table 5 shows that rents rose", []),
        ("Table 5 (continued)", []),
        ("Figure 1: Harbour ..... 3\nFigure 2: Pier ..... 7\nFigure 3: Quay ..... 9", []),
    ],
)
def test_captions(text: str, expected: list[tuple[str, str]]) -> None:
    assert captions_of(text) == expected


def _pages(*texts: str, labels: tuple[str, ...] = ()) -> list[PageText]:
    named = dict(enumerate(labels, start=1))
    return [PageText(number, named.get(number, ""), "", text) for number, text in enumerate(texts, start=1)]


def _meant(sentence: str, *others: str, labels: tuple[str, ...] = (), outline: tuple[OutlineEntry, ...] = ()) -> object:
    pages = _pages(sentence, *others, labels=labels)
    targets = targets_of(pages, outline)
    return [targets.page(reference, 1) for reference in references_in(sentence)]


def test_the_page_with_the_caption_is_meant_if_it_is_one() -> None:
    assert _meant("see Table 5", "Table 4: Food", "Table 5: Rents") == [3]
    assert _meant("see Table 5", "Table 4: Food") == [None]
    assert _meant("see Table 5", "Table 5: Rents", "Table 5: Wages") == [None]
    assert _meant("see Table 5\nTable 5: Rents", "nothing") == [None], "it stands on the page itself"
    assert _meant("see Fig. 5", "Table 5: Rents") == [None]


def test_a_page_number_is_the_printed_one_where_there_are_any() -> None:
    assert _meant("see page 2", "b", "c") == [2]
    assert _meant("see page 2", "b", "c", labels=("i", "1", "2")) == [3]
    assert _meant("see page 9", "b", "c", labels=("i", "1", "2")) == [None]
    assert _meant("see page 1", "b", "c", labels=("i", "1", "1")) == [None], "two chapters begin at 1"
    assert _meant("on the next page", "b") == [2]
    assert _meant("see the previous page", "b") == [None]


def test_a_section_is_where_its_heading_is() -> None:
    outline = (OutlineEntry(1, "4 Method", 2), OutlineEntry(2, "4.2 Sites", 3), OutlineEntry(1, "B Tables", 3))
    assert _meant("see Section 4.2 and Appendix B", "b", "c", outline=outline) == [3, 3]
    assert _meant("see Section 4.3", "b", "c", outline=outline) == [None]


@given(st.text(alphabet=st.sampled_from("Ttable Figure 3.-–5,(see)\n§Section4[and]"), max_size=400))
def test_any_text_is_read(text: str) -> None:
    references_in(text)
    captions_of(text)


def test_no_text_takes_for_ever() -> None:
    """It ends: a pattern that tries again and again would not."""
    for piece in (
        "Tables 1, 2, ",
        "Table 5 ",
        "§ 4.4.4.4.",
        "see ",
        "(((",
        "1-1-1-",
        "_" * 50,
        "Figure\n",
        "pages iiii ",
    ):
        references_in(piece * (60_000 // len(piece)))
        captions_of(piece * (60_000 // len(piece)))
