"""A reranker that is named lowers no set of ours: on the mean no right page that was first, or among five, is lost.

The model that stands in for a cross-encoder compares by the shipped encoder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from research.encoders import TextEncoder
from research.encoders.minilm import MiniLMEncoder
from research.index import Index
from research.search import reranker
from research.settings import Settings
from tests.data.conftest import DATA


class Comparing:
    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        cut = [" ".join(text.split()[:120]) for text in texts]
        return [float(score) for score in self._encoder.embed(cut) @ self._encoder.embed_query(question)]


def hits(index: Path, settings: Settings, rows: Sequence[dict[str, object]]) -> tuple[int, int]:
    """Right pages that are first, and among the first five."""
    ranks = []
    with Index.open(index, settings) as opened:
        for row in rows:
            gold = {(name, page) for name, page in row["gold"]}  # type: ignore[attr-defined]
            found = opened.search(str(row["query"]), num_results=5)
            assert not [note for note in found.coverage.notes if "reranker" in note]
            ranks.append(next((n for n, page in enumerate(found.results) if (page.filename, page.page) in gold), 5))
    return ranks.count(0), sum(rank < 5 for rank in ranks)


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("questions", ["questions.jsonl", "no-harm/questions.jsonl"])
def test_a_named_reranker_lowers_no_set_of_ours(
    data_index: Path, questions: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranker, "load_reranker", lambda name, timeout: Comparing(MiniLMEncoder()))
    lines = (DATA / questions).read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("gold")][::every]
    first, five = hits(data_index, Settings(), rows)
    with_first, with_five = hits(data_index, Settings(reranker="stands/in"), rows)
    assert with_first >= first - 1, "one question may be chance"
    assert with_five >= five - 1
