"""A question for documents is answered by documents: one page each, the best documents first."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_index import add, embed, open_catalog

from research.encoders import TextEncoder
from research.index import Index
from research.models import SearchResults
from research.settings import Settings
from research.store import Catalog
from research.store import publish as writer

HARBOUR = [
    "The harbour handbook",
    *[f"The ferry to island {n} leaves the harbour at {n} o'clock." for n in range(1, 13)],
]
DOCUMENTS = {
    "/d/harbour-rules.pdf": HARBOUR,
    "/d/almanac.pdf": ["An almanac of tides.", "In winter no ferry runs.", "Moon and tide."],
    "/d/gardening.pdf": ["Tomatoes need sun.", "Pears ripen in a drawer."],
    "/d/novel.pdf": ["A short story", "She missed the ferry, and the harbour lay dark."],
}


@pytest.fixture(scope="module")
def filled(encoder: TextEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("filled") / "index"
    with open_catalog(root) as catalog:
        add(catalog, DOCUMENTS, {"/d/harbour-rules.pdf": "Rules of the harbour"})
        embed(catalog, encoder)
        writer.publish(catalog)
    return root


def search(root: Path, question: str, *, boosters: tuple[str, ...] | None = None, **options: object) -> SearchResults:
    settings = Settings() if boosters is None else Settings(boosters=boosters)
    with Index(root, settings) as index:
        return index.search(question, **options)  # type: ignore[arg-type]


def pages(found: SearchResults) -> list[tuple[str, int]]:
    return [(result.filename, result.page) for result in found.results]


def test_each_document_comes_once(filled: Path) -> None:
    found = search(filled, "Which documents mention the ferry?")
    assert found.answered_by == "documents"
    assert sorted(name for name, _ in pages(found)) == ["almanac.pdf", "harbour-rules.pdf", "novel.pdf"]
    assert dict(pages(found))["almanac.pdf"] == 2, "where it is mentioned"
    assert (found.searched, [done.name for done in found.rewrites]) == ("ferry", ["collection"])


def test_a_document_named_so_is_shown_by_its_first_page(filled: Path) -> None:
    found = search(filled, "list the documents about the harbour")
    assert pages(found)[0] == ("harbour-rules.pdf", 1)
    assert ("gardening.pdf", 1) not in pages(found), "what is about something else is left out"


def test_pages_answer_every_other_question(filled: Path) -> None:
    found = search(filled, "When does the ferry to island 3 leave?")
    assert found.answered_by == "pages"
    assert len(pages(found)) > len(DOCUMENTS), "several of one document"


def test_a_filter_holds(filled: Path) -> None:
    found = search(filled, "Which documents mention the ferry?", documents=["novel.pdf", "gardening.pdf"])
    assert (found.answered_by, pages(found)) == ("documents", [("novel.pdf", 2)])


def test_what_no_document_mentions_is_not_claimed(filled: Path) -> None:
    """The nearest documents come, but none of them is marked as what was asked for."""
    found = search(filled, "Which documents mention xylophones?")
    assert found.answered_by == "documents"
    assert not any("collection" in result.legs for result in found.results)
    assert any("collection" in result.legs for result in search(filled, "Which documents mention tides?").results)


def test_it_can_be_switched_off(filled: Path) -> None:
    found = search(filled, "Which documents mention the ferry?", boosters=())
    assert found.answered_by == "pages"
    assert len(pages(found)) > len(DOCUMENTS)


def test_a_context_says_so_too(filled: Path) -> None:
    with Index(filled) as index:
        context = index.ask("Which documents mention the ferry?")
        assert context.to_dict()["answered_by"] == context.answered_by == "documents"
        assert len({source.doc_id for source in context.sources}) == len(context.sources) == 3
        assert index.ask("When does the ferry leave?").answered_by == "pages"


@pytest.mark.slow
def test_a_thousand_better_pages_leave_room_for_a_mention(
    catalog: Catalog, encoder: TextEncoder, tmp_path: Path
) -> None:
    """Legs give so many pages at least; here one document has more than that."""
    many = [f"Ferry, ferry and ferry again: timetable {n} of the ferry." for n in range(150)]
    story = "\n\n".join([*["A story of the sea."] * 60, "Then the ferry left."])
    add(catalog, {"/d/timetables.pdf": many, "/d/novel.pdf": [story]})
    embed(catalog, encoder)
    writer.publish(catalog)
    found = search(tmp_path / "index", "Which documents mention the ferry?")
    assert [name for name, _ in pages(found)] == ["timetables.pdf", "novel.pdf"]
