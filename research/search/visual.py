"""The visual leg: whichever way of seeing filled the index answers."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.models import Question
from research.search.dense import DenseLeg, QuestionEncoder
from research.search.legs import Hits, Leg
from research.search.ocr_lines import OcrLinesLeg
from research.store.catalog.page_vectors import visual_side
from research.store.catalog.reader import Reader
from research.store.vectors.index import VectorIndex

if TYPE_CHECKING:
    from research.search.late_interaction import LateInteractionLeg


class VisualLeg:
    name = "visual"
    follows = "dense"  # OCR's lines build on it; and a model is so slow that waiting for it is nothing

    def __init__(
        self,
        dense: DenseLeg,
        encoder: QuestionEncoder,
        index: VectorIndex,
        device: str = "auto",
        named_encoders: Sequence[str] = (),
    ) -> None:
        self._lines = OcrLinesLeg(dense, encoder)
        self._index = index
        self._device = device
        self._named_encoders = named_encoders
        self._model: LateInteractionLeg | None = None
        self._loading = threading.Lock()

    def why_off(self, reader: Reader) -> str:
        side = visual_side(reader)
        if side.kind != "off":
            return ""
        return f"no visual encoder has filled this index{f': {side.problem}' if side.problem else ''}"

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        return self._side(reader).candidates(reader, question, depth)

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        return self._side(reader).score(reader, question, page_ids)

    def model(self) -> LateInteractionLeg:
        """The leg of a visual model, for an index that one filled."""
        with self._loading:
            if self._model is None:
                from research.search.late_interaction import LateInteractionLeg  # its imports would slow all others

                self._model = LateInteractionLeg(self._index, self._device, self._named_encoders)
            return self._model

    def _side(self, reader: Reader) -> Leg:
        kind = visual_side(reader).kind
        if kind == "off":
            raise CtxError(self.why_off(reader), hint="build it with: ctx ingest PATH --visual regions")
        return self._lines if kind == "regions" else self.model()
