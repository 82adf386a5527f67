"""Questions for parts of documents, and for documents: right pages first, in one index with everything in data/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from research.index import Index
from research.settings import Settings

DATA = Path(__file__).parents[2] / "data"
PARTS = DATA / "parts"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (PARTS / name).read_text(encoding="utf-8").splitlines()]


def first_pages(index: Index) -> dict[str, tuple[str, int]]:
    """qid → file and page of the first result."""
    found = {}
    for row in rows("questions.jsonl"):
        page = index.rank(row["query"]).found[0].page
        found[row["qid"]] = (page.filename, page.page)
    return found


@pytest.mark.slow
def test_the_right_page_comes_first(data_index: Path) -> None:
    gold = {row["qid"]: {(name, page) for name, page in row["gold"]} for row in rows("questions.jsonl")}
    with Index(data_index) as on, Index(data_index, Settings(boosters=())) as off:
        right = {qid for qid, page in first_pages(on).items() if page in gold[qid]}
        without = {qid for qid, page in first_pages(off).items() if page in gold[qid]}
    wrong = sorted(gold.keys() - right)
    assert len(right) >= 0.8 * len(gold), wrong
    # Not by the documents being easy, and nobody is worse off.
    assert len(without) < 0.6 * len(gold)
    assert not without - right
    for language in ("en", "de", "fr", "es", "it", "zh", "ja"):
        own = {row["qid"] for row in rows("questions.jsonl") if row["language"] == language}
        assert len(own & right) >= 0.75 * len(own), language


@pytest.mark.slow
def test_documents_answer_a_question_for_documents(data_index: Path) -> None:
    with Index(data_index) as index:
        for row in rows("collection.jsonl"):
            outcome = index.rank(row["query"])
            names = [found.page.filename for found in outcome.found]
            assert outcome.answered_by == "documents", row["query"]
            assert len(set(names)) == len(names), row["query"]
            assert set(names[: len(row["documents"])]) == set(row["documents"]), row["query"]


def test_the_sets_are_what_their_readme_says() -> None:
    asked, collection = rows("questions.jsonl"), rows("collection.jsonl")
    assert len({row["qid"] for row in asked}) == len(asked) >= 60
    assert len({row["part"] for row in asked}) >= 12
    assert {row["language"] for row in asked} == {"en", "de", "fr", "es", "it", "zh", "ja"}
    folders = (DATA / "samples", DATA / "no-harm/pdfs", PARTS / "pdfs")
    files = {path.name: path for folder in folders for path in folder.glob("*.pdf")}
    for name, number in {(name, page) for row in asked for name, page in row["gold"]}:
        with pymupdf.open(files[name]) as doc:
            assert 1 <= number <= len(doc)
    assert {name for row in collection for name in row["documents"]} <= files.keys()
    assert sum(path.stat().st_size for path in (PARTS / "pdfs").glob("*.pdf")) < 120_000
