"""The engine: legs side by side, failures told, coverage counted, documents chosen."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from small_index import add, embed

from research.contract import SearchEngine
from research.encoders import TextEncoder
from research.store import Catalog, ChromaClient, IndexPaths

QUESTIONS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
ODD = ['"', "NEAR(", "a AND NOT", "*", "🎉🎉", "-x:y", "'; DROP TABLE pages; --", "\x00", "x " * 2000, "猫", "ไทย", "%"]


def test_results_keep_the_contract(samples: ChromaClient) -> None:
    results = asyncio.run(SearchEngine(samples).search("parental leave", num_results=5))
    assert len(results) == 5
    for result in results:
        assert set(result) == {"doc_id", "page", "score", "filename", "metadata"}
        assert 0 <= result["score"] <= 1
        assert (result["metadata"]["doc_id"], result["metadata"]["page"]) == (result["doc_id"], result["page"])
    json.dumps(results)
    assert len({(result["doc_id"], result["page"]) for result in results}) == 5
    assert [r["score"] for r in results] == sorted((r["score"] for r in results), reverse=True)


def test_most_sample_questions_are_answered_among_five(samples: ChromaClient) -> None:
    engine = SearchEngine(samples)
    asked = [q for q in QUESTIONS if q["kind"] in {"text", "table", "document"}]
    good = 0
    for question in asked:
        found = {(f.page.filename, f.page.page) for f in engine.run(question["query"], 5).found}
        good += bool(found & {(name, page) for name, page in question["gold"]})
    assert good >= 0.8 * len(asked)


@pytest.mark.parametrize("mode", ["hybrid", "visual"])
def test_no_question_breaks_it(samples: ChromaClient, mode: str) -> None:
    engine = SearchEngine(samples)
    for question in ODD:
        outcome = engine.run(question, 5, mode)
        assert all(leg.status == "ok" for leg in outcome.coverage.legs), question


def test_blank_questions_and_no_results_asked(samples: ChromaClient) -> None:
    engine = SearchEngine(samples)
    assert engine.run("  \n", 5).found == []
    assert engine.run("leave", 0).found == []
    assert engine.run("leave", -3).found == []


def test_a_restricted_search_scores_as_an_open_one(samples: ChromaClient) -> None:
    engine = SearchEngine(samples)
    everything = {
        (f.page.doc_id, f.page.page): f.score for f in engine.run("parental leave in the handbook", 100).found
    }
    [book] = samples.catalog.names.find("saltmarsh-handbook-2025")
    inside = engine.run("parental leave in the handbook", 100, documents=[book.doc_id]).found
    for found in inside:
        assert found.score == pytest.approx(everything[found.page.doc_id, found.page.page], abs=1e-3)


class _Broken:
    """An encoder whose failure no one foresaw."""

    name, dim, max_tokens = "broken", 384, 256

    def embed_query(self, text: str) -> np.ndarray:
        raise KeyError(text)

    def embed(self, texts: object) -> np.ndarray:
        raise NotImplementedError

    def count_tokens(self, text: str) -> int:
        raise NotImplementedError


def test_an_unforeseen_failure_is_told_too(samples: ChromaClient) -> None:
    outcome = SearchEngine(samples, encoder=_Broken()).run("parental leave", 5)
    assert {leg.name: leg.status for leg in outcome.coverage.legs} == {
        "lexical": "ok",
        "dense": "failed",
        "visual": "failed",
    }
    assert all("KeyError" in leg.reason for leg in outcome.coverage.legs[1:])
    assert outcome.found


def test_coverage_counts_what_cannot_be_seen(catalog: Catalog, encoder: TextEncoder) -> None:
    add(catalog, {"/d/boats.pdf": ["Boats in the harbour", "", "More boats"]})
    embed(catalog, encoder)
    add(catalog, {"/d/bread.pdf": ["Baking bread\n\nWith salt", ""]})
    waiting = list(catalog.chunks.pending())
    catalog.chunks.write([waiting[0].chunk_id], encoder.embed([waiting[0].text]))
    with ChromaClient(catalog.paths.root) as client:
        outcome = SearchEngine(client, encoder=encoder).run("boats", 5)
        coverage = outcome.coverage
        assert (coverage.pages, coverage.pages_without_vectors, coverage.pages_without_text) == (5, 1, 2)
        assert not coverage.complete
        assert {found.page.filename for found in outcome.found} == {"boats.pdf", "bread.pdf"}
    embed(catalog, encoder)
    with ChromaClient(catalog.paths.root) as client:
        assert SearchEngine(client, encoder=encoder).run("boats", 5).coverage.complete


def test_twin_pages_stand_in_the_order_of_their_names(tmp_path: Path, encoder: TextEncoder) -> None:
    texts = {
        "/a/b.pdf": ["Boats in the harbour"],
        "/a/a.pdf": ["Boats in the harbour"],
        "/b/b.pdf": ["Boats in the harbour"],
    }
    orders = []
    for number, paths in enumerate([list(texts), list(reversed(texts))]):
        with Catalog(IndexPaths(tmp_path / str(number)), writable=True) as catalog:
            add(catalog, {path: texts[path] for path in paths})
            embed(catalog, encoder)
        with ChromaClient(tmp_path / str(number)) as client:
            found = SearchEngine(client, encoder=encoder).run("boats", 5).found
            orders.append([entry.page.source_path for entry in found])
    assert orders[0] == orders[1], "whichever was ingested first"
    assert orders[0][0] == "/a/a.pdf"


def test_a_document_s_whole_markdown(samples: ChromaClient) -> None:
    [manual] = samples.catalog.names.find("brindle*")
    markdown = asyncio.run(samples.get_document_markdown(manual.doc_id))
    assert markdown is not None
    assert markdown.count("\f") == manual.num_pages - 1
    assert asyncio.run(samples.get_document_markdown("unknown")) is None
