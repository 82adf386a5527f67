"""The visual leg of a visual model: late interaction (MaxSim) between the question's vectors and every page's.

Up to EXACT_PAGES everything is compared exactly. Above that candidates come from one-bit sketches of all vectors, and
above SKETCHED_PAGES the sketches are those of the visual collection's nearest pages; the candidates are compared
exactly. See research/encoders/visual/first_stage.py for what was measured.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from research.encoders.allowed import check_allowed
from research.encoders.visual.first_stage import CANDIDATES, EXACT_PAGES, first_stage
from research.encoders.visual.registry import load_visual_encoder
from research.errors import CtxError
from research.search.legs import Hit, Hits
from research.store.catalog import page_vectors
from research.store.catalog.pages import page_ids_at
from research.store.client import ChromaClient
from research.store.vectors.sync_state import VISUAL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders.visual.base import VisualEncoder
    from research.encoders.visual.packing import PackedPages

SKETCHED_PAGES = 10_000
_NEAREST = 4000  # pages of the visual collection whose sketches are compared beyond that
_BLOCK = 1000  # sketches at once


class ModelLeg:
    name = "visual"

    def __init__(self, client: ChromaClient, device: str = "auto", named_encoders: Sequence[str] = ()) -> None:
        self._client = client
        self._device = device
        self._named_encoders = named_encoders
        self._encoder: VisualEncoder | None = None
        self._last: tuple[str, NDArray[np.float32]] | None = None
        self._all: tuple[tuple[int, int], list[int], PackedPages] | None = None

    def find(self, question: str, depth: int) -> Hits:
        catalog = self._client.catalog
        pages = page_vectors.count(catalog)
        if not pages:
            return {}
        asked = self.vectors_of(question)
        if pages <= EXACT_PAGES:
            key = (page_vectors.last_sequence(catalog), pages)
            if self._all is None or self._all[0] != key:
                self._all = (key, *_stack(page_vectors.vectors_of(catalog)))
            found = _scores(asked, *self._all[1:])
        else:
            near = None if pages <= SKETCHED_PAGES else self._nearest(asked)
            found = self._exact(asked, self._by_sketch(asked, near, max(CANDIDATES, depth)))
        best = sorted(found, key=lambda page_id: -found[page_id])[:depth]
        return {page_id: _hit(found[page_id], len(asked)) for page_id in best}

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        asked = self.vectors_of(question)
        return {page_id: _hit(raw, len(asked)) for page_id, raw in self._exact(asked, page_ids).items()}

    def vectors_of(self, question: str) -> NDArray[np.float32]:
        """The question's vectors, (n_tokens, dim), by the model that filled the index."""
        encoder = self._load()
        if self._last is None or self._last[0] != question:
            self._last = (question, encoder.embed_question(question))
        return self._last[1]

    def _load(self) -> VisualEncoder:
        catalog = self._client.catalog
        name, dim = page_vectors.encoder_of(catalog), page_vectors.dim_of(catalog)
        if self._encoder is None or self._encoder.name != name:  # an ingest may have changed it meanwhile
            self._encoder = self._last = self._all = None
            check_allowed(name, self._named_encoders)
            encoder = load_visual_encoder(name, device=self._device)
            if encoder.dim != dim:
                raise CtxError(
                    f"{name} gives vectors of {encoder.dim} dimensions, and this index has {dim}",
                    hint=f"see the pages anew: ctx ingest PATH --visual {shlex.quote(name)}",
                )
            self._encoder = encoder
        return self._encoder

    def _exact(self, asked: NDArray[np.float32], page_ids: Sequence[int]) -> dict[int, float]:
        return _scores(asked, *_stack(page_vectors.vectors_of(self._client.catalog, page_ids)))

    def _by_sketch(self, asked: NDArray[np.float32], near: Sequence[int] | None, depth: int) -> list[int]:
        found: dict[int, float] = {}
        block: list[tuple[int, bytes]] = []
        for row in page_vectors.sketches_of(self._client.catalog, near):
            block.append(row)
            if len(block) == _BLOCK:
                found.update(_scores(asked, *_stack(block)))
                block = []
        found.update(_scores(asked, *_stack(block)))
        return sorted(found, key=lambda page_id: -found[page_id])[:depth]

    def _nearest(self, asked: NDArray[np.float32]) -> list[int] | None:
        """Pages near the question by their first-stage vectors, and all that came after the last publication."""
        generation, neighbours = self._client.generation(), self._client.neighbours()
        if generation is None or neighbours is None or not generation.visual_records:
            return None
        count = min(_NEAREST, generation.visual_records)
        near = neighbours.nearest(VISUAL, first_stage(asked).tolist(), count)
        found = page_ids_at(self._client.catalog, [neighbour.key for neighbour in near])
        return sorted({*found, *page_vectors.pages_after(self._client.catalog, generation.visual_upto)})


def _stack(rows: Sequence[tuple[int, bytes]] | Iterator[tuple[int, bytes]]) -> tuple[list[int], PackedPages]:
    from research.encoders.visual.packing import stack

    kept = [(page_id, blob) for page_id, blob in rows if blob]  # a page the model failed on has none
    return [page_id for page_id, _ in kept], stack([blob for _, blob in kept])


def _scores(asked: NDArray[np.float32], owners: list[int], pages: PackedPages) -> dict[int, float]:
    from research.encoders.visual.maxsim import score

    if not owners:
        return {}
    return {owner: float(raw) for owner, raw in zip(owners, score(asked, pages), strict=True)}


def _hit(raw: float, tokens: int) -> Hit:
    """MaxSim is a sum over the question's vectors; its mean is on the scale of a cosine."""
    return Hit(max(0.0, raw / max(1, tokens)), {"maxsim": raw})
