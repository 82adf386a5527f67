"""A misspelt document name still finds its document, and nothing but names is corrected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_index import add, embed

from research.contract import SearchEngine
from research.encoders import TextEncoder
from research.models import Question
from research.search.legs import Ranked
from research.search.names import naming
from research.search.rewriters import Rewriters
from research.store import Catalog, ChromaClient
from research.store import publish as writer

FILMS = ["Net income of the year was 122 million.", "Streaming members grew, and content was bought."]
HEALTH = ["The health plan covers the dentist.", "Of health and of sport."]
DOCUMENTS = {
    "/x/NETFLIX_2015_10K.pdf": ["Netflix annual report 2015.", *FILMS],
    "/x/AMAZON_2015_10K.pdf": ["Annual report of a book seller.", *FILMS],
    "/x/ContosoHandbook.pdf": ["How we work together.", "Holidays and pay."],
    "/x/health-plan.pdf": HEALTH,
    "/x/other-plan.pdf": HEALTH,
    "/x/Meridian-Merivian.pdf": ["Two names."],
}


@pytest.fixture
def names(catalog: Catalog) -> Catalog:
    add(catalog, DOCUMENTS)
    return catalog


@pytest.mark.parametrize(
    ("question", "named", "words"),
    [
        ("What was the net income of Netflix in 2015?", {"/x/NETFLIX_2015_10K.pdf"}, {"netflix"}),
        ("Netflix net income", {"/x/NETFLIX_2015_10K.pdf"}, {"netflix"}),
        ("What does the Contoso Handbook say of pay?", {"/x/ContosoHandbook.pdf"}, {"contoso", "handbook"}),
        ("What was the net income in 2015?", set(), set()),  # a year names nothing
        ("Who pays for health?", set(), set()),
    ],
)
def test_a_name_chooses_its_document(names: Catalog, question: str, named: set[str], words: set[str]) -> None:
    found = naming(Question(question), names)
    paths = {str(row[1]): str(row[0]) for row in names.execute("SELECT source_path, doc_id FROM documents")}
    assert {paths[doc_id] for doc_id in found.documents} == named
    assert found.words == words


def test_inside_the_document_its_name_weighs_nothing(names: Catalog) -> None:
    """A page that says the name again and again is no better an answer."""
    add(names, {"/x/betmakers.pdf": ["BetMakers BetMakers BetMakers, the group.", "Total assets were 86 million."]})
    asked = "What were the total assets of BetMakers?"
    plain = [
        Ranked(page_id, doc_id, 0.5 if number == 1 else 0.3)
        for page_id, doc_id, number in names.execute(
            "SELECT page_id, doc_id, page FROM pages WHERE doc_id = (SELECT doc_id FROM documents WHERE filename = ?)",
            ("betmakers.pdf",),
        )
    ]
    [reranking] = Rewriters(["names"]).rerankings(Question(asked), [], names, plain)
    assert reranking.question == "What were the total assets of"
    other = [page._replace(score=0.1 if page.score == 0.5 else 0.9) for page in plain]
    merged = Rewriters().merge(plain, other, reranking)
    assert [page.page_id for page in merged] == [plain[1].page_id, plain[0].page_id]


def searched(catalog: Catalog, question: str) -> str:
    return Rewriters(["names"]).before(question, catalog)[0]


@pytest.mark.parametrize(
    ("question", "after"),
    [
        ("Neflix 2015", "Neflix netflix 2015"),
        ("What was neflix's net income?", "What was neflix netflix's net income?"),
        ("NETFLXI 2015", "NETFLXI netflix 2015"),
        ("Amazn net income", "Amazn amazon net income"),
        ("pay at Contosso", "pay at Contosso contoso"),
        ("the contosso handbok", "the contosso contoso handbok handbook"),
        ("what does the handbok say", "what does the handbok handbook say"),
    ],
)
def test_a_slip_in_a_name_is_corrected_beside_the_word(names: Catalog, question: str, after: str) -> None:
    assert searched(names, question) == after


@pytest.mark.parametrize(
    "question",
    [
        "Netflix 2015",  # right as it is
        "incme of the year",  # near a word of pages, not of names
        "Does the helth plan cover it?",  # a word that other documents use, too: no name
        "Neflox 20115",  # two slips in six letters
        "Betflix 2015",  # people get the first letter right
        "Nefli",  # further away than one slip
        "Amazing 2015",  # a word of the language
        "What about Meriwian?",  # one slip from two names
        "10KK 20155",  # never digits
        "",
    ],
)
def test_everything_else_stays(names: Catalog, question: str) -> None:
    assert searched(names, question) == question


def test_it_says_what_it_did(names: Catalog) -> None:
    _, [done] = Rewriters(["names"]).before("Neflix 2015", names)
    assert (done.name, done.before, done.after) == ("names", "Neflix 2015", "Neflix netflix 2015")
    assert "Neflix" in done.why
    assert "netflix" in done.why


def test_the_document_is_found(names: Catalog, encoder: TextEncoder, tmp_path: Path) -> None:
    embed(names, encoder)
    writer.publish(names)
    client = ChromaClient(tmp_path / "index")
    question = "What was the net income of Neflix in 2015?"
    found = [
        SearchEngine(client, encoder=encoder, rewriters=chosen).run(question, 1).found[0].page.filename
        for chosen in (["names"], [])
    ]
    assert found == ["NETFLIX_2015_10K.pdf", "AMAZON_2015_10K.pdf"]


def test_a_pasted_text_of_unknown_words_is_bounded(names: Catalog) -> None:
    pasted = " ".join(f"Neflix{letter * 9}" for letter in "abcdefghijklmnopqrstuvwxyz")
    assert searched(names, pasted + " Neflix") == pasted + " Neflix"


def test_known_words_load_next_to_nothing(names: Catalog) -> None:
    script = f"""
import sys
from pathlib import Path
from research.models import Question
from research.search.rewriters import Rewriters
from research.settings import REWRITERS
ALL = Rewriters(REWRITERS)
from research.store.catalog import Catalog
from research.store.paths import IndexPaths
catalog = Catalog(IndexPaths(Path({str(names.paths.root)!r})))
assert ALL.before("Who bought content in 2015?", catalog) == ("Who bought content in 2015?", [])
assert ALL.rerankings(Question("Who bought content in 2015?"), [], catalog, []) == []
assert not [name for name in sys.modules if name.startswith("rapidfuzz")]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
