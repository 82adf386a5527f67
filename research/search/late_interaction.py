"""The visual leg of a visual model: late interaction (MaxSim) between the question's vectors and every page's.

Up to EXACT_PAGES everything is compared exactly. Above that candidates come from one-bit sketches of all vectors, and
above SKETCHED_PAGES the sketches are those of the visual collection's nearest pages; the candidates are compared
exactly. See research/encoders/maxsim.py for what was measured.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from research.encoders import (
    CANDIDATES,
    EXACT_PAGES,
    PackedPages,
    VisualEncoder,
    check_allowed,
    first_stage,
    load_visual_encoder,
    score,
    stack,
)
from research.errors import CtxError
from research.models import Question
from research.search.legs import Hit, Hits
from research.store import VISUAL, Reader, VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SKETCHED_PAGES = 10_000
_NEAREST = 4000  # pages of the visual collection whose sketches are compared beyond that
_BLOCK = 1000  # sketches at once


class LateInteractionLeg:
    """The visual leg of an index that a model saw."""

    def __init__(self, index: VectorIndex, device: str = "auto", named_encoders: Sequence[str] = ()) -> None:
        self._index = index
        self._device = device
        self._named_encoders = named_encoders
        self._encoder: VisualEncoder | None = None
        self._loading = threading.Lock()
        self._cached: tuple[tuple[str, str, int, int], list[int], PackedPages] | None = None  # all of it, as it was

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        pages = reader.visual.count()
        if not pages:
            return ()
        asked = self.vectors_of(reader, question)
        if pages <= EXACT_PAGES:
            found = _scores(asked, *self._all(reader, pages))
        else:
            near = None if pages <= SKETCHED_PAGES else self._nearest(reader, asked)
            found = _exact(reader, asked, _by_sketch(reader, asked, near, max(CANDIDATES, depth)))
        best = sorted(found, key=lambda page_id: -found[page_id])[:depth]
        question.memo.get("maxsim", dict[int, float]).update(found)
        return best

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        asked = self.vectors_of(reader, question)
        known = question.memo.get("maxsim", dict[int, float])
        known.update(_exact(reader, asked, [page_id for page_id in page_ids if page_id not in known]))
        # MaxSim is a sum over the question's vectors; its mean is on the scale of a cosine.
        means = {page_id: max(0.0, known[page_id] / max(1, len(asked))) for page_id in page_ids if page_id in known}
        return {page_id: Hit(mean, {"maxsim": known[page_id]}) for page_id, mean in means.items()}

    def vectors_of(self, reader: Reader, question: Question) -> NDArray[np.float32]:
        """The question's vectors, (n_tokens, dim), by the model that filled the index."""
        encoder = self._load(reader)
        return question.memo.get(("vectors", encoder.name), lambda: encoder.embed_question(question.wording))

    def _load(self, reader: Reader) -> VisualEncoder:
        side = reader.visual.side()
        with self._loading:
            if self._encoder is None or self._encoder.name != side.name:  # an ingest may have changed it meanwhile
                self._encoder = self._cached = None
                check_allowed(side.name, self._named_encoders)
                encoder = load_visual_encoder(side.name, device=self._device)
                if encoder.dim != side.dim:
                    raise CtxError(
                        f"{side.name} gives vectors of {encoder.dim} dimensions, and this index has {side.dim}",
                        hint=f"see the pages anew: ctx ingest PATH --visual {shlex.quote(side.name)}",
                    )
                self._encoder = encoder
            return self._encoder

    def _all(self, reader: Reader, pages: int) -> tuple[list[int], PackedPages]:
        key = (reader.visual.side().name, reader.masks.view, reader.visual.last_sequence(), pages)
        cached = self._cached
        if cached is None or cached[0] != key:
            cached = self._cached = (key, *_stack(reader.visual.vectors()))
        return cached[1:]

    def _nearest(self, reader: Reader, asked: NDArray[np.float32]) -> list[int]:
        """Pages near the question by their first-stage vectors."""
        found = self._index.nearest(reader, first_stage(asked), _NEAREST, collection=VISUAL)
        return sorted(page_id for page_id, _ in found.pairs)


def _exact(reader: Reader, asked: NDArray[np.float32], page_ids: Sequence[int]) -> dict[int, float]:
    return _scores(asked, *_stack(reader.visual.vectors(page_ids)))


def _by_sketch(reader: Reader, asked: NDArray[np.float32], near: Sequence[int] | None, depth: int) -> list[int]:
    found: dict[int, float] = {}
    block: list[tuple[int, bytes]] = []
    for row in reader.visual.sketches(near):
        block.append(row)
        if len(block) == _BLOCK:
            found.update(_scores(asked, *_stack(block)))
            block = []
    found.update(_scores(asked, *_stack(block)))
    return sorted(found, key=lambda page_id: -found[page_id])[:depth]


def _stack(rows: Sequence[tuple[int, bytes]] | Iterator[tuple[int, bytes]]) -> tuple[list[int], PackedPages]:
    kept = [(page_id, blob) for page_id, blob in rows if blob]  # a page the model failed on has none
    return [page_id for page_id, _ in kept], stack([blob for _, blob in kept])


def _scores(asked: NDArray[np.float32], owners: list[int], pages: PackedPages) -> dict[int, float]:
    if not owners:
        return {}
    return {owner: float(raw) for owner, raw in zip(owners, score(asked, pages), strict=True)}
