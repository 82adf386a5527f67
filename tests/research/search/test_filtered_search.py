"""A filter only takes away: a filtered search is the search of everything without what is outside, in every mode."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_index import add, embed

from research.encoders import TextEncoder
from research.errors import NothingFoundError
from research.filters import Filters
from research.index import Index
from research.models import Question
from research.search import engine
from research.search.legs import Found
from research.search.rewriters import Rewriters
from research.settings import REWRITERS
from research.sources.documents import MODES
from research.store import Catalog

QUESTIONS = [
    json.loads(line)["query"]
    for line in (Path(__file__).parents[3] / "data" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
CLOSE = 1e-4  # a cosine that Chroma worked out and one of ours differ in the last bits of float32


@pytest.fixture(scope="module")
def index(sample_index: Path) -> Iterator[Index]:
    with Index.open(sample_index) as opened:
        yield opened


def found(index: Index, text: str, mode: str, filters: Filters | None) -> list[Found]:
    """All pages that are found, with what the engine itself says of them."""
    with index.catalog.snapshot() as reader:
        question = Question(text, mode=mode)
        if filters is not None:
            scope = reader.names.scope([filters])
            ids = None if scope.documents is None else tuple(sorted(scope.documents))
            question = Question(text, mode=mode, documents=ids, pages=scope.pages)
        return index.source.engine.run(reader, question, reader.pages.totals().pages).found


def some_filters(names: list[str], chance: random.Random) -> Filters:
    chosen = tuple(chance.sample(names, chance.randint(1, len(names))))
    first = chance.randint(1, 6)
    pages = chance.choice(["", f"1,{first}-{first + chance.randint(0, 4)}", f"1,{first},{first + 2}-", "1-2,5"])
    return Filters(not_documents=chosen[:-1], pages=pages) if chance.random() < 0.3 else Filters(chosen, pages=pages)


@pytest.mark.parametrize("scored_at_most", [5000, 0], ids=["every page scored", "the legs find"])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_left_stands_as_it_stood(
    index: Index, mode: str, scored_at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{mode} {scored_at_most}")
    names = [document.filename for document in index.documents.list()]
    # Which rows lift their pages is looked at among the first ten of what is left, and the lines of statements among
    # its first documents.
    monkeypatch.setattr(index.source.engine, "_orders", (None, None, None))
    without = Rewriters([name for name in REWRITERS if name != "finance"])
    monkeypatch.setattr(index.source.engine, "_rewriters", without)
    for text in chance.sample(QUESTIONS, 4):
        everything = found(index, text, mode, None)
        for _ in range(3):
            filters = some_filters(names, chance)
            with monkeypatch.context() as patch, index.catalog.snapshot() as reader:
                patch.setattr(engine, "_MOST_SCORED", scored_at_most)
                kept = reader.names.scope([filters]).keep(reader, [f.page.page_id for f in everything])
                inside = found(index, text, mode, filters)
            wanted = [f for f in everything if f.page.page_id in kept]
            assert_same(wanted, inside, f"{mode}: {text!r} within {filters}")


def assert_same(wanted: list[Found], inside: list[Found], what: str) -> None:
    scores = {f.page.page_id: f.score for f in wanted}
    assert {f.page.page_id for f in inside} == set(scores), what
    for one in inside:
        assert one.score == pytest.approx(scores[one.page.page_id], abs=CLOSE), what
    order = [scores[f.page.page_id] for f in inside]
    assert all(better >= worse - CLOSE for better, worse in itertools.pairwise(order)), what


def test_a_name_that_no_page_repeats_is_found_neither_way(
    catalog: Catalog, encoder: TextEncoder, tmp_path: Path
) -> None:
    """It was once, inside a filter alone: every page of the document, for its name."""
    add(catalog, {"/docs/walrus.pdf": ["Nothing of note.", ""], "/docs/sea.pdf": ["The walrus has tusks."]})
    embed(catalog, encoder)
    with Index(tmp_path / "index") as index:
        everywhere = found(index, "walrus", "lexical", None)
        assert [f.page.filename for f in everywhere] == ["sea.pdf"]
        assert found(index, "walrus", "lexical", Filters(("walrus.pdf",))) == []
        assert [f.page.page for f in found(index, "walrus", "hybrid", Filters(("walrus.pdf",)))] == [1]
    # Words that stand on no page at all may still name a document, and do so either way.
    add(catalog, {"/docs/sea.pdf": ["It has tusks."]})
    embed(catalog, encoder)
    with Index(tmp_path / "index") as index:
        for filters in (None, Filters(("walrus.pdf",))):
            assert [f.page.page for f in found(index, "walrus", "lexical", filters)] == [1, 2]


def test_boosters_stay_inside(index: Index) -> None:
    for text in ("What does page 3 of the handbook say?", "Summarise the annual report", "Who wrote the manual?"):
        for one in found(index, text, "hybrid", Filters(("night-cooling*",), pages="2-4")):
            assert one.page.filename.startswith("night-cooling")
            assert 2 <= one.page.page <= 4


def test_a_context_stays_inside(index: Index) -> None:
    chance = random.Random(7)
    names = [document.filename for document in index.documents.list()]
    for budget in (250, 10_000):
        filters = some_filters(names, chance)
        context = index.ask(chance.choice(QUESTIONS), filters=filters, max_tokens=budget)
        with index.catalog.snapshot() as reader:
            scope = reader.names.scope([filters])
        for source in (*context.sources, *context.dropped):
            assert scope.documents is None or source.doc_id in scope.documents
            assert any(first <= source.page <= last for first, last in scope.pages or ((1, source.page),))


def test_the_library_filters_as_the_command_does(index: Index) -> None:
    both = index.ask("leave", documents=["saltmarsh*"], filters=Filters(not_documents=("*2024*",), pages="1-9"))
    assert {source.filename for source in both.sources} == {"saltmarsh-handbook-2025.pdf"}
    assert all(source.page <= 9 for source in both.sources)
    assert index.ask("leave", documents=[]).sources == []
    assert index.search("leave", documents=[]).results == []
    results = index.search("leave", filters=Filters(documents=("2025",), pages="2,3")).results
    assert {result.page for result in results} == {2, 3}
    for ask in (index.ask, index.search):
        with pytest.raises(NothingFoundError, match="no document has the tag 'x'"):
            ask("leave", filters=Filters(tags=("x",)))  # type: ignore[operator]


def test_legs_look_deeper_until_enough_is_inside(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the pages outside fill the first hundred, and more pages are inside than are all scored."""
    strong, weak = ["walrus walrus walrus"] * 150, [f"walrus {'and other words ' * n}" for n in range(1, 151)]
    add(catalog, {"/docs/strong.pdf": strong, "/docs/weak.pdf": weak})
    with Index(tmp_path / "index") as index:
        exact = index.rank("walrus", 10, "lexical", doc_ids=[index.documents.list("weak.pdf")[0].doc_id]).found
        monkeypatch.setattr(engine, "_MOST_SCORED", 0)
        found_deep = index.rank("walrus", 10, "lexical", doc_ids=[index.documents.list("weak.pdf")[0].doc_id]).found
    assert [f.page.page for f in found_deep] == [f.page.page for f in exact] == list(range(1, 11))
    assert [f.legs["lexical"].rank for f in found_deep] == list(range(1, 11))
