"""The visual leg: pages of the visual collection by similarity with the question."""

from __future__ import annotations

from collections.abc import Sequence

from research.errors import CtxError
from research.search.dense import QuestionVectors
from research.search.legs import Hit, Hits
from research.store import vectors
from research.store.client import ChromaClient
from research.store.collections import VISUAL
from research.store.pages import get_page


class VisualLeg:
    name = "visual"

    def __init__(self, client: ChromaClient, questions: QuestionVectors) -> None:
        self._client = client
        self._questions = questions

    def find(self, question: str, depth: int) -> Hits:
        generation = self._client.generation()
        neighbours = self._client.neighbours()
        if generation is None or neighbours is None:
            raise CtxError("the visual collection is not built", hint="finish with: ctx ingest PATH")
        if not generation.visual_records:
            return {}
        vector = self._questions.of(question)
        count = min(depth, generation.visual_records)
        hits: Hits = {}
        for neighbour in neighbours.nearest(VISUAL, vector.tolist(), count):
            doc_id, page = neighbour.key.rsplit(":", 1)
            stored = get_page(self._client.catalog, doc_id, int(page))
            if stored is not None and neighbour.similarity > 0:
                hits[stored.page_id] = Hit(neighbour.similarity, {"cosine": neighbour.similarity})
        return hits

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        vector = self._questions.of(question)
        means = vectors.page_means(self._client.catalog, page_ids)
        scores = {page_id: float(mean @ vector) for page_id, mean in means.items()}
        return {page_id: Hit(score, {"cosine": score}) for page_id, score in scores.items() if score > 0}
