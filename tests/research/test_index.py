"""Index as a library uses it, from one thread, from many, and beside the contract's names."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from research import ContextBuilder, Index, NothingFoundError, SearchEngine, SourceDocument, UsageError
from research.store import Catalog, ChromaClient

QUESTIONS = ["How many weeks of parental leave?", "net profit 2024", "reset the controller", "cooling at night"]


@pytest.fixture
def index(sample_index: Path, tmp_path: Path) -> Index:
    shutil.copytree(sample_index, tmp_path / "index")
    return Index(tmp_path / "index")


def test_a_question_is_answered_within_its_budget(index: Index) -> None:
    with index:
        context = index.ask(QUESTIONS[0], max_tokens=300, max_sources=3)
        assert 0 < context.total_tokens <= 300
        assert context.truncated
        assert context.searched == QUESTIONS[0]
        scores = [source.relevance_score for source in context.sources]
        assert scores == sorted(scores, reverse=True)
        assert all(source.ref == f"page:{source.doc_id}#{source.page}" for source in context.sources)
        only = index.ask("leave", documents=["saltmarsh-handbook-2025"])
        assert {source.filename for source in only.sources} == {"saltmarsh-handbook-2025.pdf"}


def test_places_that_cannot_be_found_cost_only_themselves(index: Index) -> None:
    with Catalog(index.paths, writable=True) as catalog:
        catalog.execute("UPDATE chunks SET text = ?", (b"no longer zipped",))
    with index:
        for found in (index.ask(QUESTIONS[0], highlights=True), index.search(QUESTIONS[0], highlights=True)):
            assert any("places on the pages could not be found" in note for note in found.coverage.notes)
        assert index.ask(QUESTIONS[0]).sources


def test_pages_and_documents_by_any_name(index: Index) -> None:
    with index:
        [book] = index.documents.list("saltmarsh-handbook-2025")
        view = index.documents.page(book.doc_id, 7, question=QUESTIONS[0])
        assert view.item.ref.part == "7"
        assert view.item.regions
        assert (index.documents.markdown(book.doc_id) or "").count("\f") == book.num_pages - 1
        assert index.documents.markdown("nowhere") is None
        with pytest.raises(UsageError, match="matches 2 documents"):
            index.documents.page("saltmarsh", 1)
        with pytest.raises(NothingFoundError, match="has no page 99"):
            index.documents.page(book.doc_id, 99)


def test_what_is_removed_is_in_no_answer(index: Index) -> None:
    with index:
        assert index.ask("parental leave").sources[0].filename.startswith("saltmarsh")
        removed = index.admin.remove("saltmarsh-*")
        assert len(removed.documents) == 2
        index.refresh()
        assert not any(source.filename.startswith("saltmarsh") for source in index.ask("parental leave").sources)
        assert index.admin.status().documents == 4


def test_many_threads_get_the_answers_of_one(index: Index) -> None:
    with index:
        alone = {question: index.ask(question).formatted_text for question in QUESTIONS}
        together: list[tuple[str, str]] = []

        def ask(question: str) -> None:
            together.append((question, index.ask(question).formatted_text))

        threads = [threading.Thread(target=ask, args=(question,)) for question in QUESTIONS * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(together) == 12
        assert all(text == alone[question] for question, text in together)


async def _gathered(builder: ContextBuilder) -> list[str]:
    contexts = await asyncio.gather(*(builder.build_context(question) for question in QUESTIONS))
    return [context.formatted_text for context in contexts]


def test_the_contracts_builder_side_by_side(samples: ChromaClient) -> None:
    builder = ContextBuilder(SearchEngine(samples), samples)
    assert asyncio.run(_gathered(builder)) == [builder.build(question).formatted_text for question in QUESTIONS]


def test_truncate_to_budget_keeps_what_fits_in_order(samples: ChromaClient) -> None:
    builder = ContextBuilder(SearchEngine(samples), samples)
    sources = [
        SourceDocument("d", "a.pdf", page, "pdf", markdown_content="A sentence of some words. " * 40)
        for page in (1, 2, 3)
    ]
    whole = builder.truncate_to_budget(sources, 10_000)
    assert whole == sources
    some = builder.truncate_to_budget(sources, 400)
    assert [source.page for source in some] == [1, 2]
    assert [source.cut for source in some] == [False, True]
    text = "\n\n".join(builder.format_source_citation(source, n) for n, source in enumerate(some, start=1))
    assert builder.estimate_tokens(text) <= 400
    assert builder.truncate_to_budget(sources, 0) == []
