"""What a question for a part of a document asks for, and which words are left to name the document."""

from __future__ import annotations

import pytest

from research.search import document_parts
from research.search.document_parts import AskedPart, name_question, part_question
from research.store import normalize

PHRASES = sorted(
    {
        (phrase, part.everyday)
        for part in document_parts.PARTS.values()
        for phrase in [*(part.headings or ((),))[0], *part.asked]
    }
)


def kinds(question: str) -> list[str]:
    asked = part_question(question)
    return [] if asked is None else [part.kind for part in asked.parts]


def test_every_phrase_asks_for_a_part() -> None:
    """In every language, whatever it is called; everyday words only where a document is spoken of."""
    assert len(PHRASES) > 500
    for phrase, everyday in PHRASES:
        question = f"{phrase} of the Vermeulen paper" if phrase.isascii() else f"Vermeulen论文{phrase}"
        asked = part_question(question)
        assert asked is not None, phrase
        assert asked.rest == ("vermeulen",), phrase
        assert asked.document, phrase
        if phrase.isascii():
            bare = part_question(f"{phrase} Vermeulen")
            assert (bare is None) == everyday, f"alone it must be asked for by its own words: {phrase}"


def test_words_are_as_the_analyzer_leaves_them() -> None:
    """Otherwise no question has them."""
    phrases = [name for part in document_parts.PARTS.values() for name in (*part.names, *part.asked)]
    words = [*document_parts.DOCUMENTS, *document_parts.SECTIONS, *document_parts.KINDS_OF_KINDS, *document_parts.SMALL]
    frames = [word for frame in document_parts.FRAMES for word in frame]
    for word in (*phrases, *words, *frames):
        assert normalize(word) == word, word


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Summarise the RAPTOR paper", ["summary"]),
        ("What is RAPTOR about?", ["summary"]),
        ("who wrote it?", ["authors"]),
        ("Give me the title and authors of RAPTOR", ["title", "authors"]),
        ("What do the authors of RAPTOR name as limitations?", ["limitations", "authors"]),
        ("Wer hat den RAPTOR-Artikel geschrieben?", ["authors"]),
        ("Wann wurde der Bericht geschrieben?", ["date"]),
        ("Fasse das Handbuch zusammen", ["summary"]),
        ("How is the handbook structured?", ["contents"]),
        ("Quelle est la conclusion de l'étude ?", ["conclusion"]),
        ("¿De qué trata la guía?", ["summary"]),
        ("Di cosa parla la relazione?", ["summary"]),
        ("RAPTOR论文的作者是谁?", ["authors"]),
        ("RAPTOR論文の要約", ["summary"]),
        ("the warranty section of the manual", ["named section"]),
        ("What were the results of Boeing?", []),
        ("methods of the RAPTOR paper", ["methods"]),
        ("How fast does the current run?", []),
        ("", []),
    ],
)
def test_what_is_asked_for(question: str, expected: list[str]) -> None:
    assert kinds(question) == expected


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("section 3.2 of RAPTOR", AskedPart("section", "3.2")),
        ("Abschnitt 4 des Berichts", AskedPart("section", "4")),
        ("chapter IV of the book", AskedPart("section", "iv")),
        ("Appendix B of RAPTOR", AskedPart("appendix", "b", "appendix")),
        ("attachment 2 of the contract", AskedPart("appendix", "2", "attachment")),
        ("the appendix of RAPTOR", AskedPart("appendix", "", "appendix")),
    ],
)
def test_numbers_of_sections_and_appendices(question: str, part: AskedPart) -> None:
    asked = part_question(question)
    assert asked is not None
    assert asked.parts == (part,)


def test_words_that_go_with_asking_name_nothing() -> None:
    asked = part_question("Which institutions are the authors of CLadder affiliated with?")
    assert asked is not None
    assert asked.rest == ("cladder",)
    asked = part_question("highlights of the Harrow annual report")
    assert asked is not None
    assert (asked.rest, asked.document) == (("harrow",), ("annual", "report"))


def test_what_else_is_asked_is_left() -> None:
    """Whoever looks for the document must find these words in its name."""
    asked = part_question("What conclusion did the inspector draw about the bridge?")
    assert asked is not None
    assert asked.rest == ("inspector", "bridge")


def test_a_pasted_text_asks_for_no_part() -> None:
    assert part_question("conclusion " * 100) is None
    assert name_question("the RAPTOR paper").rest == ("raptor",)
