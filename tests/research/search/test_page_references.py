"""Which pages, figures and tables a question refers to."""

from __future__ import annotations

import pytest

from research.search.page_references import (
    LANGUAGES,
    LAST,
    Caption,
    PageReferences,
    references_in,
)

QUESTIONS = [
    ("What is on page 12?", (12,)),
    ("Compare slides 3 to 5.", (3, 4, 5)),
    ("What do pages 3-5 and 9 say?", (3, 4, 5, 9)),
    ("See p. 7 and pp. 9–10", (7, 9, 10)),
    ("page two", (2,)),
    ("the pictures on slides 30, 31 and 33", (30, 31, 33)),
    ("Who signed the last page?", (LAST,)),
    ("the second slide and the 12th page", (2, 12)),
    ("What court is named on the cover page?", (1,)),
    ("What does the front page of the report show?", (1,)),
    ("page no. 5, page #6, page number 7", (5, 6, 7)),
    ("What is on page 3 of 10?", (3,)),
    ("Was steht auf Seite 12?", (12,)),
    ("Was sagen die Seiten 3 bis 5 und 9?", (3, 4, 5, 9)),
    ("siehe S. 7 und 8", (7, 8)),
    ("Wer unterschreibt auf der letzten Seite?", (LAST,)),
    ("Was zeigt das Deckblatt?", (1,)),
    ("Que dit la page 3 à 5 ?", (3, 4, 5)),
    ("Que montre la première page ?", (1,)),
    ("¿Qué dice la página 4?", (4,)),
    ("las páginas 2 y 3, la última página", (2, 3, LAST)),
    ("Cosa dice a pag. 7?", (7,)),
    ("le pagine 2 e 4", (2, 4)),
    ("o que está na página 4 até 6", (4, 5, 6)),
    ("Wat staat er op blz. 12?", (12,)),
    ("pagina 3 t/m 5", (3, 4, 5)),
    ("Что на стр. 5?", (5,)),
    ("Что сказано на странице 7 и на последней странице?", (7, LAST)),
    ("pages 10 to 400", ()),
    ("How many pages does it have?", ()),
    ("At 8 p.m. in 2012", ()),
    ("List them like ['Page 2', 'Page 4'].", ()),
    ("homepage 5, one page, 3 pages", ()),
    ("Was it front page news in 1987?", ()),
    ("The U.S. 5 years ago", ()),
    ("as páginas dos capítulos", ()),
    ("no dia 3 de maio", ()),
    ("", ()),
]


def test_pages() -> None:
    for question, pages in QUESTIONS:
        assert references_in(question).pages == pages, question


@pytest.mark.parametrize(
    ("question", "captions"),
    [
        ("In Figure 4, which nodes are red?", (Caption("figure", "4"),)),
        ("Compare Fig. 2 with Table 3-1.", (Caption("fig", "2"), Caption("table", "3-1"))),
        ("What are the items in Table1-1?", (Caption("table", "1-1"),)),
        ("Was zeigt Abbildung 3, was Tab. 2?", (Caption("abbildung", "3"), Caption("tab", "2"))),
        ("Que montre le tableau 2 ?", (Caption("tableau", "2"),)),
        ("¿Qué muestra el gráfico 1?", (Caption("gráfico", "1"),)),
        ("Wat staat in tabel 2?", (Caption("tabel", "2"),)),
        ("Что показано на рисунке 3 и в табл. 1?", (Caption("рисунке", "3"), Caption("табл", "1"))),
        ("How many figures are in the table?", ()),
        ("a configuration of 4 and a stable 5", ()),
        ("How do I chart 3 patients?", ()),
        ("What does figure 2 show, according to table 3?", (Caption("figure", "2"), Caption("table", "3"))),
        ("When we figure 3 things out and look at table 2", (Caption("table", "2"),)),
        ("Does figure 10 million include tax?", ()),
        ("the figure 10% and the figure 3 Milliarden", ()),
    ],
)
def test_captions(question: str, captions: tuple[Caption, ...]) -> None:
    assert references_in(question).captions == captions


def test_referring_to_nothing_is_false() -> None:
    assert not references_in("What is a lighthouse?")
    assert PageReferences(pages=(1,))


def test_the_languages_promised_are_there() -> None:
    assert {"en", "de", "fr", "es", "it", "pt", "nl", "ru"} <= LANGUAGES.keys()
    for language in LANGUAGES.values():
        assert language.pages and language.kinds and language.to and language.also and language.ordinals


def test_a_pasted_book_is_read_quickly() -> None:
    references_in("page 1 and " * 50_000 + "page , , , , " * 10_000 + "figure 3.4.5." * 20_000)
