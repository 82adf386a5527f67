"""Hyphens at line ends: a cut word is put together, a compound keeps its own, as the document itself spells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pdf_tools import add_lines

from ingest.pdf.document import Vocabulary, join_lines
from ingest.pdf.lines import clean_text
from research.records import Page

Read = Callable[..., list[Page]]


def text_of(read: Read, *pages: list[str]) -> str:
    """The words of a document with these lines on its pages, drawn and read back."""

    def draw(document: Any) -> None:
        for lines in pages:
            add_lines(document.new_page(), 72, 90, lines)

    return " ".join(" ".join(page.markdown for page in read(draw)).split())


def joined(*lines: str, elsewhere: str = "") -> str:
    vocabulary = Vocabulary()
    vocabulary.add([*elsewhere.split("\n"), *lines])
    return join_lines(lines, vocabulary)


@pytest.mark.parametrize(
    "elsewhere", ["Send the information to us.", "He informs the board.", "An Information sheet.", ""]
)
def test_a_word_the_document_has_whole_is_put_together(read: Read, elsewhere: str) -> None:
    text = text_of(read, [elsewhere], ["You find the infor-", "mation on the board."])
    assert "the information on" in text


def test_a_document_that_cuts_no_words_keeps_every_hyphen(read: Read) -> None:
    """Set ragged and without hyphenation, as most letters and filings are: what stands at line ends are compounds."""
    page = [
        "Our long-term debt and the out-of-pocket cost are in-network ones.",
        "There is no debt that is more long-",
        "term than this, nor a cost that is more out-of-",
        "pocket or a plan that is more in-",
        "network. The screws are bone-",
        "anchored, the coasts are wind-",
        "blown and all of it is well-",
        "meant.",
    ]
    text = text_of(read, page)
    assert "are bone-anchored, the coasts are wind-blown and all of it is well-meant" in text


def test_a_document_that_cuts_words_has_them_whole_again(read: Read) -> None:
    page = [
        "The whole harbour was a wonderful and remarkable sight that evening.",
        "It was the most won-",
        "derful and remark-",
        "able of all. The har-",
        "bour shone in quix-",
        "otic splendour and the gril-",
        "lage held.",
    ]
    text = text_of(read, page)
    assert "The harbour shone in quixotic splendour and the grillage held" in text


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        (("a self-", "employed person"), "a self-employed person"),
        (("the long-", "term plan"), "the long-term plan"),
        (("an e-", "mail to us"), "an e-mail to us"),
        (("their well-", "being matters"), "their well-being matters"),
        (("an inter-", "national firm"), "an international firm"),
        (("public fi-", "nance law"), "public finance law"),
        (("we can-", "not say"), "we cannot say"),
        (("it was there-", "fore sold"), "it was therefore sold"),
        (("no infor\u2010", "mation"), "no information"),
        (("no infor\u00ad", "mation"), "no information"),
        (("state-of-the-", "art"), "state-of-the-art"),
        (("COVID-", "19"), "COVID-19"),
        (("Anglo-", "Saxon"), "Anglo-Saxon"),
        (("a range -", "wide"), "a range - wide"),
        (("日本", "語です。", "Next"), "日本語です。 Next"),
        (("도시로", "간 쥐"), "도시로 간 쥐"),
    ],
)
def test_common_english_without_any_help_from_the_document(lines: tuple[str, ...], whole: str) -> None:
    assert join_lines(map(clean_text, lines)) == whole


@pytest.mark.parametrize(
    ("lines", "elsewhere", "whole"),
    [
        (("die Kranken-", "versicherung zahlt"), "", "die Krankenversicherung zahlt"),
        (("alle Vor-", "und Nachteile"), "", "alle Vor- und Nachteile"),
        (("short-", "and long-term debt"), "", "short- and long-term debt"),
        (("court-", "ou long-terme"), "", "court- ou long-terme"),
        (("eine E-", "Mail kam"), "", "eine E-Mail kam"),
        (("il est peut-", "être parti"), "Il est peut-être là.", "il est peut-être parti"),
        (("c’est-", "à-dire rien"), "", "c’est-à-dire rien"),
        (("le gouverne-", "ment a dit"), "Voilà, le gouvernement est là.", "le gouvernement a dit"),
        (("a door-", "to-door sale"), "", "a door-to-door sale"),
        (("a fol-", "low-up call"), "We follow it.", "a follow-up call"),
        (("a day-to-", "day affair"), "It is today.", "a day-to-day affair"),
        (("THE INFOR-", "MATION DESK"), "All the information is here.", "THE INFORMATION DESK"),
        (("THE ANGLO-", "SAXON DESK"), "", "THE ANGLO-SAXON DESK"),
        (("the R-", "CNN model"), "The rcnn and the rcnn of it.", "the R-CNN model"),
        (("a blue plan-", "et turns"), "This planet is ours.", "a blue planet turns"),
        (("hold for part-", "timers as ever"), "The part-timers are paid.", "hold for part-timers as ever"),
        (("hold for part-", "timers as ever"), "A part-timer is paid.", "hold for part-timers as ever"),
        (("hold for part-", "timers as ever"), "Part-time staff are paid.", "hold for part-timers as ever"),
        (("all of us co-", "operate now"), "Cooperate here, cooperate and co-operate.", "all of us cooperate now"),
        (("all of us co-", "operate now"), "Co-operate here, co-operate and cooperate.", "all of us co-operate now"),
        (("all government-", "provided aid"), "Some government bodies provided it.", "all government-provided aid"),
    ],
)
def test_other_languages_and_longer_compounds(lines: tuple[str, str], elsewhere: str, whole: str) -> None:
    assert joined(*lines, elsewhere=elsewhere) == whole


def test_a_compound_cut_at_the_foot_of_a_column_is_one(read: Read) -> None:
    left = [f"Line {n} of the left column tells of the part-time staff here." for n in range(12)]
    left.append("as well as of part-")
    right = ["time staff of the other column, who work by the hour."] + [
        f"Line {n} of the right column goes on about the same thing." for n in range(12)
    ]

    def draw(document: Any) -> None:
        page = document.new_page()
        add_lines(page, 40, 90, left, size=8)
        add_lines(page, 320, 90, right, size=8)

    assert "as well as of part-time staff of the other column" in read(draw)[0].markdown


@given(st.lists(st.text(alphabet="abAB-\u2010 .日é1", max_size=12)))
def test_no_lines_break_it_and_no_letter_is_lost(lines: list[str]) -> None:
    cleaned = [clean_text(line) for line in lines]
    text = joined(*cleaned)
    assert [c for c in text if c.isalnum()] == [c for line in cleaned for c in line if c.isalnum()]
