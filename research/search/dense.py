"""The dense leg: the best chunk of a page by cosine with the question."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.models import Question
from research.search.legs import Hit, Hits
from research.store.catalog import vectors
from research.store.catalog.reader import Reader
from research.store.vectors.index import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders.base import TextEncoder


class QuestionEncoder:
    """Embeds questions with the encoder that filled the index; loads it with the first one, and another if the index
    was filled anew since. A `given` encoder is kept."""

    def __init__(self, given: TextEncoder | None = None, named_encoders: Sequence[str] = ()) -> None:
        self._given = given
        self._named_encoders = named_encoders
        self._loaded: tuple[str, TextEncoder] | None = None
        self._loading = threading.Lock()

    def vector(self, reader: Reader, question: Question) -> NDArray[np.float32]:
        """(dim,), unit length."""
        encoder = self.encoder(reader)
        return question.memo.get(("vector", encoder.name), partial(encoder.embed_query, question.wording))

    def encoder(self, reader: Reader) -> TextEncoder:
        if self._given is not None:
            return self._given
        name = vectors.encoder_of(reader)
        if not name:
            raise CtxError("no document has vectors yet", hint="finish with: ctx ingest PATH")
        with self._loading:
            if self._loaded is None or self._loaded[0] != name:
                from research.encoders.registry import load_remembered

                dim = vectors.dim_of(reader)
                self._loaded = (name, load_remembered(name, dim=dim, named=self._named_encoders))
            return self._loaded[1]


class DenseLeg:
    name = "dense"
    follows = ""

    def __init__(self, index: VectorIndex, encoder: QuestionEncoder) -> None:
        self._index = index
        self._encoder = encoder

    def why_off(self, reader: Reader) -> str:
        return ""

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        return question.memo.get(("nearest", depth), partial(self._look, reader, question, depth))

    def _look(self, reader: Reader, question: Question, depth: int) -> list[int]:
        found = self._index.nearest(reader, self._encoder.vector(reader, question), depth)
        if found.problem:
            question.notes.append(found.problem)
        _known(question).update(found.pairs)
        return [page_id for page_id, _ in found.pairs]

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        known = _known(question)
        unknown = [page_id for page_id in page_ids if page_id not in known]
        if unknown:
            owners, matrix = vectors.vectors_of_pages(reader, unknown)
            cosines = vectors.cosines(matrix, self._encoder.vector(reader, question)).tolist() if owners else []
            for page_id, cosine in zip(owners, cosines, strict=True):
                known[page_id] = max(cosine, known.get(page_id, -1.0))
        return {page_id: Hit(known[page_id], {"cosine": known[page_id]}) for page_id in page_ids if page_id in known}


def _known(question: Question) -> dict[int, float]:
    """page_id → cosine of its best chunk, as far as this question has led to it."""
    return question.memo.get("cosines", dict[int, float])
