"""The newest version of a document comes first, in every door alike, unless the older one is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_index import add, embed, open_catalog

from research.encoders import TextEncoder
from research.index import Index
from research.models import SUPERSEDED, Question
from research.search.dates import NewestFirst, version_of
from research.search.legs import Chosen, Ranked
from research.store import Catalog

HOTELS = "Hotels\n\nA hotel night is paid up to {} euros in towns. Whoever books elsewhere pays the difference."
TRAINS = "Trains and flights\n\nFlights are booked only where the train takes more than {} hours."
DOGS = "Pets\n\nWhoever travels for more than three nights may claim 25 euros a night for the care of a dog."
OTHER = "Taxis\n\nTaxi rides are refunded after 22:00, or with heavy luggage, by the desk of the {} office."
HOTEL = "What is paid for a hotel night?"


@pytest.fixture(scope="module")
def travel(tmp_path_factory: pytest.TempPathFactory, encoder: TextEncoder) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("versions") / "index"
    documents = {
        "/d/travel policy v1.pdf": [HOTELS.format(110), TRAINS.format(6), DOGS],
        "/d/travel policy v2.pdf": [HOTELS.format(120), TRAINS.format(5), DOGS],
        "/d/travel policy v3.pdf": [HOTELS.format(130), TRAINS.format(4)],
        "/d/minutes 2024-05.pdf": ["The board decided that the herring festival moves to the north quay."],
        "/d/minutes 2024-06.pdf": ["The board decided that the herring festival stays on the north quay."],
        "/d/taxis.pdf": [OTHER.format("harbour")],
    }
    with open_catalog(root) as catalog:
        add(catalog, documents)
        embed(catalog, encoder)
    with Index(root) as index:
        yield index


def asked(index: Index, question: str) -> tuple[list[str], list[str]]:
    found = index.search(question)
    return [page.filename for page in found.results], [note for note in found.coverage.notes if "newer" in note]


def test_nothing_is_said_of_versions_that_are_not_shown(travel: Index) -> None:
    found = travel.context("Does anybody here know the best pizza in Naples?", ["documents"])
    assert not found.items
    assert not [note for note in found.coverage.notes if "newer" in note]


def test_every_door_has_the_newest_first(travel: Index) -> None:
    newest = "travel policy v3.pdf"
    assert travel.search(HOTEL).results[0].filename == newest
    answer = travel.ask(HOTEL)
    assert answer.sources[0].filename == newest
    assert "130 euros" in answer.quotes[0].text
    assert travel.context(HOTEL, ["documents"]).items[0].metadata["filename"] == newest
    built = travel.packages.build({"intent": HOTEL})
    ids = {info.doc_id: info.filename for info in travel.documents.list()}
    assert ids[built.sources[0].ref.removeprefix("page:").partition("#")[0]] == newest
    notes = [f"travel policy v{older}.pdf has a newer version: {newest}" for older in (1, 2)]
    for told in (answer.coverage.notes, travel.context(HOTEL, ["documents"]).coverage.notes, built.coverage.notes):
        assert sorted(note for note in told if "newer" in note) == notes


@pytest.mark.parametrize(
    ("question", "first"),
    [
        (HOTEL, ["travel policy v3.pdf", "travel policy v2.pdf", "travel policy v1.pdf"]),
        ("By travel policy v2, what is paid for a hotel night?", ["travel policy v2.pdf"]),
        ("What did the board decide on the herring festival?", ["minutes 2024-06.pdf", "minutes 2024-05.pdf"]),
    ],
)
def test_the_newest_that_was_not_put_aside_is_first(travel: Index, question: str, first: list[str]) -> None:
    assert asked(travel, question)[0][: len(first)] == first


def test_a_newer_version_without_the_topic_leaves_the_older_page_where_it_is(travel: Index) -> None:
    files, notes = asked(travel, "What may I claim for the care of my dog while I travel?")
    assert files[:2] == ["travel policy v2.pdf", "travel policy v1.pdf"]
    assert "travel policy v2.pdf has a newer version: travel policy v3.pdf" in notes


def test_scores_fall_and_what_stands_behind_is_told(travel: Index) -> None:
    with travel.catalog.snapshot() as reader:
        items = travel.source.retrieve(reader, Question(HOTEL), 6).items
    scores = [item.score for item in items]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores[:3])) == 3
    assert [SUPERSEDED in item.labels for item in items[:3]] == [False, True, True]
    assert [NewestFirst.name in item.legs for item in items[:3]] == [False, True, True]


OLD, NEW = "/d/handbook-2024.pdf", "/d/handbook-2025.pdf"


@pytest.mark.parametrize(
    ("question", "is_newest_first", "is_noted"),
    [
        ("sick pay", True, True),
        ("sick pay in 2025", True, False),
        ("sick pay in 2024", False, False),
        ("from 2024 to 2025", False, False),
        ("sick pay in FY24", False, False),
        ("sick pay in 2019", False, False),
        ("sick pay in the previous handbook", False, False),
        ("how old is the handbook", True, True),
    ],
)
def test_what_a_question_says_of_versions(
    catalog: Catalog, question: str, is_newest_first: bool, is_noted: bool
) -> None:
    ids = add(catalog, {OLD: ["Sick pay: 8"], NEW: ["Sick pay: 10", "Pets"], "/d/other.pdf": ["Sick"]})
    ranked = [
        Ranked(1, ids[OLD], 0.6),
        Ranked(4, ids["/d/other.pdf"], 0.58),
        Ranked(2, ids[NEW], 0.5),
        Ranked(3, ids[NEW], 0.2),
    ]
    about = Question(question)
    order = NewestFirst().rerank(catalog, about, ranked, Chosen()).ranked
    pages = [page.page_id for page in order]
    assert pages == ([2, 1, 4, 3] if is_newest_first else [1, 4, 2, 3])
    assert [page.score for page in order] == [0.6, 0.58, 0.5, 0.2]
    assert about.notes == (["handbook-2024.pdf has a newer version: handbook-2025.pdf"] if is_noted else [])


def test_a_far_worse_page_of_the_newer_version_stays_behind(catalog: Catalog) -> None:
    ids = add(catalog, {OLD: ["Sick pay: 8"], NEW: ["Pets"]})
    ranked = [Ranked(1, ids[OLD], 0.6), Ranked(2, ids[NEW], 0.4)]
    question = Question("sick pay")
    assert NewestFirst().rerank(catalog, question, ranked, Chosen()).ranked == ranked
    assert question.notes == ["handbook-2024.pdf has a newer version: handbook-2025.pdf"]


@pytest.mark.parametrize(
    ("filename", "title", "version"),
    [
        ("handbook v2.1.pdf", "", ("handbook vv", (2, 1))),
        ("Report 20240501.pdf", "", ("report vv", (2024, 5, 1))),
        ("report_2024-05-01.pdf", "", ("report vv", (2024, 5, 1))),
        ("scan.pdf", "Saltmarsh Handbook 2024", ("saltmarsh handbook vv", (2024,))),
        ("handbook-2025.pdf", "Saltmarsh Handbook 2024", ("handbook vv", (2025,))),
        ("scan.pdf", "Annual report 2024", ("", ())),  # of whom?
        ("Report 2019-2020.pdf", "", ("", ())),
        ("chapter 3.pdf", "", ("", ())),
        ("2024.pdf", "", ("", ())),
    ],
)
def test_what_a_version_is(filename: str, title: str, version: tuple[str, tuple[int, ...]]) -> None:
    assert version_of(filename, title) == version
