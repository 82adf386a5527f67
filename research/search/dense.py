"""The dense leg: the best chunk of a page by cosine with the question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from research.errors import CtxError, IndexUnusableError
from research.search.legs import Hit, Hits
from research.store.catalog import vectors
from research.store.client import ChromaClient
from research.store.vectors.reader import Neighbours
from research.store.vectors.sync_state import TEXT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders.base import TextEncoder


class QuestionVectors:
    """Embeds questions with the encoder that filled the index; loads it with the first one, and another if the index
    was filled anew since. A `given` encoder is kept."""

    def __init__(
        self, client: ChromaClient, given: TextEncoder | None = None, named_encoders: Sequence[str] = ()
    ) -> None:
        self._client = client
        self._given = given
        self._named_encoders = named_encoders
        self._loaded: tuple[str, TextEncoder] | None = None
        self._last: tuple[TextEncoder, str, NDArray[np.float32]] | None = None

    def of(self, question: str) -> NDArray[np.float32]:
        """(dim,), unit length."""
        encoder = self.encoder()
        if self._last is None or self._last[0] is not encoder or self._last[1] != question:
            self._last = (encoder, question, encoder.embed_query(question))
        return self._last[2]

    def encoder(self) -> TextEncoder:
        if self._given is not None:
            return self._given
        name = vectors.encoder_of(self._client.catalog)
        if not name:
            raise CtxError("no document has vectors yet", hint="finish with: ctx ingest PATH")
        if self._loaded is None or self._loaded[0] != name:
            from research.encoders.registry import load_remembered

            dim = vectors.dim_of(self._client.catalog)
            self._loaded = (name, load_remembered(name, dim=dim, named=self._named_encoders))
        return self._loaded[1]


class DenseLeg:
    name = "dense"

    def __init__(self, client: ChromaClient, questions: QuestionVectors) -> None:
        self._client = client
        self._questions = questions

    def find(self, question: str, depth: int) -> Hits:
        catalog = self._client.catalog
        vector = self._questions.of(question)
        generation = self._client.generation()
        neighbours = self._client.neighbours()
        best: dict[int, float] = {}
        upto = 0
        if generation is not None and neighbours is not None and generation.text_records:
            try:
                best = self._published(neighbours, vector, min(depth, generation.text_records), generation.upto)
                upto = generation.upto
            except IndexUnusableError:
                self._client.condemn()
        # What was embedded after the last publication is compared one by one; all of it, if Chroma cannot be read.
        owners, matrix = vectors.vectors_after(catalog, upto)
        if owners:
            _keep_best(best, zip(owners, (vectors.cosines(matrix, vector)).tolist(), strict=True))
        ranked = sorted(best.items(), key=lambda item: -item[1])[:depth]
        return {page_id: Hit(score, {"cosine": score}) for page_id, score in ranked}

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        owners, matrix = vectors.vectors_of_pages(self._client.catalog, page_ids)
        if not owners:
            return {}
        best: dict[int, float] = {}
        _keep_best(best, zip(owners, (vectors.cosines(matrix, self._questions.of(question))).tolist(), strict=True))
        return {page_id: Hit(score, {"cosine": score}) for page_id, score in best.items()}

    def _published(
        self, neighbours: Neighbours, vector: NDArray[np.float32], count: int, upto: int
    ) -> dict[int, float]:
        found = neighbours.nearest(TEXT, vector.tolist(), count)
        pages = vectors.page_ids_of_chunks(self._client.catalog, [n.key for n in found], upto=upto)
        best: dict[int, float] = {}
        _keep_best(best, ((pages[n.key], n.similarity) for n in found if n.key in pages))
        return best


def _keep_best(best: dict[int, float], scored: Iterable[tuple[int, float]]) -> None:
    for page_id, score in scored:
        if score > best.get(page_id, -2.0):
            best[page_id] = score
