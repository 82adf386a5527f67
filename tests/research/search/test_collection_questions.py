"""Questions for documents: unmistakable ones are seen in every language, others never."""

from __future__ import annotations

import pytest

from research.search.collection import LANGUAGES, collection_question
from research.store import normalize


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("list the documents about elections", "elections"),
        ("List all documents about elections.", "elections"),
        ("which documents mention parental leave?", "parental leave"),
        ("what papers do I have on QACheck?", "QACheck"),  # as it is written
        ("Which of my papers deal with causal reasoning?", "causal reasoning"),
        ("In which documents is parental leave mentioned?", "parental leave"),
        ("documents about elections", "elections"),
        ("show me all reports that discuss climate change", "climate change"),
        ("Do I have any documents about coffee machines?", "coffee machines"),
        ("Which paper is about RAPTOR?", "RAPTOR"),
        ("Which files contain the word bridge?", "bridge"),
        ("tell me which documents mention “PPE”", "PPE"),
        ("welche Dokumente erwähnen Elternzeit?", "Elternzeit"),
        ("Welche Berichte habe ich über Wasser?", "Wasser"),
        ("Liste alle Dokumente auf, die Wahlen erwähnen", "Wahlen"),
        ("In welchen Dokumenten geht es um den Mühlsee?", "Mühlsee"),
        ("Quels documents parlent des élections ?", "élections"),
        ("Quels articles ai-je sur l'eau ?", "eau"),
        ("Dans quels documents est-il question d'élections ?", "élections"),
        ("¿Qué documentos hablan de elecciones?", "elecciones"),
        ("Lista los documentos que mencionan el agua", "agua"),
        ("Quali documenti parlano di elezioni?", "elezioni"),
        ("Che articoli ho sull'acqua?", "acqua"),
        ("Quais documentos falam de eleições?", "eleições"),
        ("Welke documenten gaan over verkiezingen?", "verkiezingen"),
        ("哪些文件提到选举?", "选举"),
        ("列出所有关于养蜂的论文", "养蜂"),
        ("棚田に関する論文はどれですか", "棚田"),
    ],
)
def test_the_topic_of_a_question_for_documents(question: str, topic: str) -> None:
    asked = collection_question(question)
    assert asked is not None
    assert asked.topic == topic


@pytest.mark.parametrize(
    "question",
    [
        "Which documents go to the supervisory authority after a breach?",
        "Which document must a new member sign?",
        "Which files does the G4 keep its settings in?",
        "What papers do suppliers get when the notice period ends?",
        "List the reports of near misses that the safety pair reads",
        "What does the report on elections say about turnout?",
        "What do my documents say about elections?",
        "list the reasons for the crisis",
        "How many documents mention parental leave?",
        "What documents must be submitted with the application?",
        "Welche Dokumente muss ich einreichen?",
        "show me the report on ferry timetables",
        "What is the document about?",
        "What sources of revenue does the company have?",
        "list the documents",
        "documents about",
        "which documents mention the?",  # nothing to look for
        "documents about " + "elections " * 50,  # a pasted text
        "",
    ],
)
def test_what_only_sounds_like_it(question: str) -> None:
    assert collection_question(question) is None


def test_to_mention_is_less_than_to_be_about() -> None:
    for question, mentions in (
        ("Which documents mention PPE?", True),
        ("Which documents contain the word mention?", True),
        ("documents about a mention in dispatches", False),  # the topic does not count
        ("welche Dokumente erwähnen Elternzeit?", True),
        ("Welche Dokumente gibt es zu Wahlen?", False),
        ("哪些文件提到选举?", True),
    ):
        asked = collection_question(question)
        assert asked is not None
        assert asked.mentions is mentions, question


@pytest.mark.parametrize("code", LANGUAGES)
def test_words_for_documents_are_plain_and_folded(code: str) -> None:
    """One of them must stand in a question before anything else is tried."""
    words = LANGUAGES[code].documents.split("|")
    assert all(word.isalpha() and normalize(word) == word for word in words)
    assert words == list(dict.fromkeys(words))
