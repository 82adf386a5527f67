"""Words that few pages hold: their pages are found among near-empty ones, and nothing else changes for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_index import add, embed, find, open_catalog

from research.contract import SearchEngine
from research.encoders import TextEncoder
from research.search.legs import LexicalLeg, floors
from research.store import Catalog, ChromaClient, Floors, analyze
from tests.pace import draws

CAPTIONS = (
    "Hello World", "Page {n}", "This is page {n}", "Test {n}", "Text field {n}", "Grey ramp {n} %", "Check box {n}",
    "Click here", "Chapter {n}", "Original page {n}", "Attachment {n}", "Colour bar", "Lorem ipsum dolor sit amet",
)  # fmt: skip
TALK = "Members of the society meet in the hall on the first evening of every month and hear a talk about the hills."
LONG = f"{TALK} {TALK} {TALK}\n\n" * 4
# Each stands on a long page of its own: a Latin name, a number, what splits into common pieces, other scripts, a slip.
RARE = ("albaqualf", "95463", "2024-03-17", "bug_1549", "бабочка", "図書館", "recieving", "volcano")
PIECES = ["2024 06", "03 2021", "17 boxes", "bug 11", "1549 metres"] * 3


def _long(word: str) -> str:
    return f"{LONG}{TALK} {word} {TALK}\n\n{LONG}"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, encoder: TextEncoder) -> Iterator[SearchEngine]:
    captions = [CAPTIONS[n % len(CAPTIONS)].format(n=n) for n in range(240)]
    documents = {f"/d/file-{n:03}.pdf": captions[n : n + 4] for n in range(0, len(captions), 4)}
    documents |= {f"/d/long-{n}.pdf": [_long(word)] for n, word in enumerate(RARE)}
    root = tmp_path_factory.mktemp("rare") / "index"
    with open_catalog(root) as catalog:
        add(catalog, documents | {"/d/pieces.pdf": PIECES})
        embed(catalog, encoder)
    with ChromaClient(root) as client:
        yield SearchEngine(client, encoder=encoder)


def _names(engine: SearchEngine, question: str, mode: str = "hybrid") -> list[str]:
    return [found.page.filename for found in engine.run(question, 10, mode).found]


def _floors(catalog: Catalog, question: str) -> Floors:
    return floors(catalog, question, catalog.words.statistics(analyze(question)))


@pytest.mark.parametrize("question", ["{}", "Where is {} mentioned?", "{} page", "{} of the society"])
def test_the_only_page_with_a_word_is_among_ten(engine: SearchEngine, question: str) -> None:
    missed = [word for n, word in enumerate(RARE) if f"long-{n}.pdf" not in _names(engine, question.format(word))]
    assert missed == []


def test_more_short_pages_than_the_depth_do_not_hide_it(catalog: Catalog) -> None:
    """A candidate is found by the word itself, not by its place among all pages with a word of the question."""
    add(catalog, {"/d/pages.pdf": [f"Page {n}" for n in range(300)], "/d/long.pdf": [_long("albaqualf")]})
    hits = find(LexicalLeg(), catalog, "albaqualf page", 100)
    assert max(hits, key=lambda page_id: hits[page_id].score) == 301


def test_a_word_in_passing_leaves_the_next_place_to_what_means_the_same(catalog: Catalog, encoder: TextEncoder) -> None:
    documents = {f"/d/other-{n}.pdf": [f"Form {n}: invoices, travel and printers in building {n}."] for n in range(30)}
    documents["/d/leave.pdf"] = ["Every employee has 28 days of paid holiday a year. Time off is agreed in writing."]
    documents["/d/memo.pdf"] = [_long("The caretaker is on vacation.")]
    add(catalog, documents)
    embed(catalog, encoder)
    with ChromaClient(catalog.paths.root) as client:
        assert _names(SearchEngine(client, encoder=encoder), "vacation")[:2] == ["memo.pdf", "leave.pdf"]


def test_a_word_of_no_page_changes_nothing(engine: SearchEngine) -> None:
    assert _names(engine, "wrold") == _names(engine, "wrold", "dense")
    assert _floors(engine.client.catalog, "wrold volcnao") == {}
    catalog = engine.client.catalog
    assert _floors(catalog, "2024-1549") == _floors(catalog, "2024 1549"), "no page has it as it is written"


def test_a_word_that_is_rare_by_chance_counts_as_before(engine: SearchEngine) -> None:
    question = "When do members of the society meet in the hall to hear of hills, the evening, a volcano and the month?"
    catalog = engine.client.catalog
    (page, least), *others = _floors(catalog, question)["volcano"].items()
    assert not others
    assert least < 0.4
    assert _floors(catalog, "volcano")["volcano"][page] > 0.9


def test_a_small_index_is_ranked_as_before(catalog: Catalog) -> None:
    """Few pages are not rare where there are few."""
    add(catalog, {"/d/harbour.pdf": ["harbour", "a harbour with many other words beside it", "harbour harbour"]})
    assert {floor for least in _floors(catalog, "harbour").values() for floor in least.values()} == {0.0}


def test_pages_with_a_rare_word_keep_their_order(catalog: Catalog) -> None:
    add(catalog, {"/d/captions.pdf": ["Hello World"] * 60, "/d/long.pdf": [_long("orca"), _long("orca orca orca")]})
    hits = find(LexicalLeg(), catalog, "orca", 10)
    assert hits[61].score < hits[62].score <= 1


@draws(40)
@given(st.lists(st.sampled_from([*RARE, "hello", "page", "2024", "society", "the", "02-02", "🎉", "－"]), max_size=9))
def test_a_floor_is_a_share(engine: SearchEngine, asked: list[str]) -> None:
    question = " ".join(asked)
    assert all(
        0 <= floor <= 1 for least in _floors(engine.client.catalog, question).values() for floor in least.values()
    )
    assert all(0 <= found.score <= 1 for found in engine.run(question, 10).found)
