"""A question that names a page, a figure or a table is answered by looking there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_index import add, embed, open_catalog

from research.contract import SearchEngine
from research.encoders import TextEncoder
from research.store import ChromaClient
from research.store import publish as writer

BEES = [
    "Keeping bees for beginners, a short guide to the hive.",
    "Figure 2 shows a hive. A hive stands in the sun. Bees fly from the hive all day long.",
    "",
    "Figure 2: A queen among her workers.\n\nFigure 12: A smoker.",
    "Table 2. What bees need in winter.",
    "The end of the book on keeping bees.",
]
SHIPS = [f"Ships of the harbour, part {n}: masts, sails and hulls." for n in range(1, 7)]


@pytest.fixture(scope="module")
def engine(encoder: TextEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchEngine]:
    root = tmp_path_factory.mktemp("referred") / "index"
    with open_catalog(root) as catalog:
        add(catalog, {"/x/bees.pdf": BEES, "/x/ships.pdf": SHIPS})
        embed(catalog, encoder)
        writer.publish(catalog)
    with ChromaClient(root) as client:
        yield SearchEngine(client, encoder=encoder)


def first(engine: SearchEngine, question: str, mode: str = "hybrid") -> tuple[str, int]:
    found = engine.run(question, 5, mode).found[0]
    return found.page.filename, found.page.page


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("What is on page 3 of the guide to keeping bees in a hive?", 3),  # without any text
        ("What is on the last page about keeping bees?", 6),
        ("What does Figure 2 show about bees and the hive?", 4),  # the caption, not the mention
        ("What does Fig. 12 about bees and the hive show?", 4),
        ("In table 2, what do bees need from a hive?", 5),
        ("Was steht auf der letzten Seite über keeping bees?", 6),
        ("Was zeigt Fig. 12 about bees and the hive?", 4),
    ],
)
def test_the_named_page_stands_first(engine: SearchEngine, question: str, page: int) -> None:
    assert first(engine, question) == ("bees.pdf", page)


def test_the_document_is_still_chosen_by_the_legs(engine: SearchEngine) -> None:
    assert first(engine, "Which masts and sails are on page 3?") == ("ships.pdf", 3)


def test_a_leg_alone_shows_what_it_finds_by_itself(engine: SearchEngine) -> None:
    assert first(engine, "What is on page 3 of the guide to keeping bees in a hive?", "lexical") != ("bees.pdf", 3)


def test_it_can_be_switched_off(engine: SearchEngine) -> None:
    plain = SearchEngine(engine.client, boosters=())
    assert first(plain, "What is on page 3 of the guide to keeping bees in a hive?") != ("bees.pdf", 3)


# Each was taken for a reference by 0.1.0, or looks like one; no caption of the documents is meant.
@pytest.mark.parametrize(
    "question",
    [
        "How do I chart 3 hives of bees?",
        "Does figure 2 million include bees in the hive?",
        "Is table 9 for dinner near the harbour?",
        "Were bees in the hive front page news?",
    ],
)
def test_what_only_looks_like_a_reference_changes_nothing(engine: SearchEngine, question: str) -> None:
    plain = SearchEngine(engine.client, boosters=())
    found, wanted = ([(page.page.page_id, page.score) for page in e.run(question, 12).found] for e in (engine, plain))
    assert found == wanted


def test_scores_explain_themselves(engine: SearchEngine) -> None:
    found = engine.run("What is on page 3 of the guide to keeping bees in a hive?", 12).found
    scores = [page.score for page in found]
    assert scores == sorted(scores, reverse=True)
    assert len({page.page.page_id for page in found}) == len(found)
    own = found[0].legs["page-references"]
    assert own.parts == {"place": own.score}
    assert all(page.page.page == 3 for page in found if "page-references" in page.legs)


def test_printed_numbers_count_as_well(samples: ChromaClient) -> None:
    found = SearchEngine(samples).run("What is on page 5 of the Saltmarsh handbook of 2025?", 4).found
    places = {(page.page.filename, page.page.page, page.page.label) for page in found}
    assert {("saltmarsh-handbook-2025.pdf", 5, "3"), ("saltmarsh-handbook-2025.pdf", 7, "5")} <= places
