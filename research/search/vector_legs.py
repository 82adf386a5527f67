"""The legs that compare vectors: dense, by the passages of a page, and visual, by whatever sees its picture.

Dense is the best chunk of a page by cosine with the question.

Visual is whichever way of seeing filled the index. `regions` is the embedded one: a page's visible pieces, compared
with the question by the text encoder. The pieces are chunks, whose vectors the dense leg has already, and the single
lines that OCR read from pictures and scans, which have vectors of their own. So it builds on the dense leg, and what
counts beside that one is what a line has beyond the passage it stands in (`Hit.gain`). It understands no picture beyond
the words in it. A visual model stands in late_interaction.py.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.models import Question
from research.search.legs import Hit, Hits
from research.store import REGIONS, Reader, cosines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import QuestionEncoder
    from research.search.late_interaction import LateInteractionLeg
    from research.store import VectorIndex

_DEPTH = 64  # pages; about what a hundred chunks come to


class DenseLeg:
    name = "dense"
    follows = ""
    depth = _DEPTH

    def __init__(self, index: VectorIndex, encoder: QuestionEncoder) -> None:
        self._index = index
        self._encoder = encoder

    def why_off(self, reader: Reader) -> str:
        return ""

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        known: list[int] | None = question.memo.known(("nearest", depth))
        if known is None:
            found = self._index.nearest(reader, self._encoder.vector(reader, question), depth)
            if found.problem:
                question.notes.append(found.problem)
            _known(question).update(found.pairs)
            known = question.memo.put(("nearest", depth), [page_id for page_id, _ in found.pairs])
        return known

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        known = _known(question)
        unknown = [page_id for page_id in page_ids if page_id not in known]
        if unknown:
            owners, matrix = reader.chunks.of_pages(unknown)
            compared = cosines(matrix, self._encoder.vector(reader, question)).tolist() if owners else []
            for page_id, cosine in zip(owners, compared, strict=True):
                known[page_id] = max(cosine, known.get(page_id, -1.0))
        hits: Hits = question.memo.get("dense hits", dict)  # which the lines of OCR ask for again
        new = [page_id for page_id in page_ids if page_id in known and page_id not in hits]
        hits.update((page_id, Hit(known[page_id], {"cosine": known[page_id]})) for page_id in new)
        return {page_id: hits[page_id] for page_id in page_ids if page_id in hits}


def _known(question: Question) -> dict[int, float]:
    """page_id → cosine of its best chunk, as far as this question has led to it."""
    return question.memo.get("cosines", dict[int, float])


class VisualLeg:
    name = "visual"
    depth = _DEPTH
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
        side = reader.visual.side()
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

    def _side(self, reader: Reader) -> OcrLinesLeg | LateInteractionLeg:
        kind = reader.visual.side().kind
        if kind == "off":
            raise CtxError(self.why_off(reader), hint="build it with: ctx ingest PATH --visual regions")
        return self._lines if kind == "regions" else self.model()


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of some pages, unpacked: there are a few dozen a page, and every question compares them all."""

    owners: list[int]
    vectors: NDArray[np.float32]
    starts: NDArray[np.int64]  # of each page's rows; none is empty


class OcrLinesLeg:
    """The visual leg of an index whose lines OCR read."""

    def __init__(self, dense: DenseLeg, encoder: QuestionEncoder) -> None:
        self._dense = dense
        self._encoder = encoder
        self._cached: tuple[tuple[str, int, int], _Lines] | None = None  # of the whole index, as it was then

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        """The best pages, given what the dense leg found: its pages, and those with a better line."""
        pages = set(self._dense.candidates(reader, question, depth))
        pages.update(self._lines(reader, question, sorted(pages)))
        if len(pages) <= depth:
            return pages
        hits = self.score(reader, question, sorted(pages))
        return sorted(hits, key=lambda page_id: -hits[page_id].score)[:depth]

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        chunks = self._dense.score(reader, question, page_ids)
        lines = self._lines(reader, question, page_ids)
        hits: Hits = {}
        for page_id in page_ids:
            chunk, line = chunks.get(page_id), lines.get(page_id)
            if line is not None and (chunk is None or line > chunk.score):
                beside = {} if chunk is None else {"chunk": chunk.score}
                known = 0.0 if chunk is None else chunk.score
                hits[page_id] = Hit(line, {"line": line, **beside}, gain=max(0.0, line - known))
            elif chunk is not None:
                hits[page_id] = Hit(chunk.score, chunk.parts, gain=0.0)
        return hits

    def _lines(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> dict[int, float]:
        """page_id → cosine of its best line: of all pages that have lines, or of these where there are very many."""
        from research.encoders import EXACT_PAGES

        if not lines_match_encoder(reader):
            return {}
        if reader.visual.count() <= EXACT_PAGES:
            known: dict[int, float] | None = question.memo.known("lines")
            if known is None:
                known = question.memo.put("lines", self._compare(reader, question, self._all_lines(reader)))
            return known
        return self._compare(reader, question, _read(reader, page_ids))

    def _compare(self, reader: Reader, question: Question, lines: _Lines) -> dict[int, float]:
        if not lines.owners:
            return {}
        import numpy as np

        compared = cosines(lines.vectors, self._encoder.vector(reader, question))
        best = np.maximum.reduceat(compared, lines.starts)
        return dict(zip(lines.owners, best.tolist(), strict=True))

    def _all_lines(self, reader: Reader) -> _Lines:
        key = (reader.visual.encoder(), reader.visual.last_sequence(), reader.visual.count())
        cached = self._cached
        if cached is None or cached[0] != key:
            cached = self._cached = (key, _read(reader, None))
        return cached[1]


def lines_match_encoder(reader: Reader) -> bool:
    """Whether the lines were embedded by the text encoder that is in use; not so for a moment after it was changed."""
    return reader.visual.encoder() == f"{REGIONS}:{reader.chunks.encoder()}"


def _read(reader: Reader, page_ids: Sequence[int] | None) -> _Lines:
    import numpy as np

    from research.encoders import stack

    rows = [(page_id, blob) for page_id, blob in reader.visual.vectors(page_ids) if blob]
    packed = stack([blob for _, blob in rows])
    matrix = packed.values.astype(np.float32)
    matrix *= packed.scales[:, None]
    return _Lines([page_id for page_id, _ in rows], matrix, packed.offsets[:-1])
