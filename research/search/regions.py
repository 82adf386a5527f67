"""The visual leg of `regions`: a page's visible pieces, compared with the question by the text encoder.

The pieces are chunks, whose vectors the dense leg has already, and the single lines that OCR read from pictures and
scans, which have vectors of their own. It understands no picture beyond the words in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.encoders.visual.first_stage import EXACT_PAGES
from research.search.dense import DenseLeg, QuestionVectors
from research.search.legs import Hit, Hits
from research.store.catalog import page_vectors, vectors
from research.store.catalog.catalog import Catalog

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of some pages, unpacked: there are a few dozen a page, and every question compares them all."""

    owners: list[int]
    vectors: NDArray[np.float32]
    starts: NDArray[np.int64]  # of each page's rows; none is empty


class RegionsLeg:
    name = "visual"

    def __init__(self, catalog: Catalog, dense: DenseLeg, questions: QuestionVectors) -> None:
        self._catalog = catalog
        self._dense = dense
        self._questions = questions
        self._lines: tuple[tuple[int, int], _Lines] | None = None

    def find(self, question: str, depth: int) -> Hits:
        return self.beyond(question, depth, self._dense.find(question, depth))

    def beyond(self, question: str, depth: int, chunks: Hits) -> Hits:
        """The best pages, given what the dense leg found: its pages, and those with a better line."""
        everywhere = page_vectors.count(self._catalog) <= EXACT_PAGES
        lines = self._best_lines(question, None if everywhere else sorted(chunks))
        hits = _better(chunks, lines)
        ranked = sorted(hits, key=lambda page_id: -hits[page_id].score)[:depth]
        return {page_id: hits[page_id] for page_id in ranked}

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        return self.beyond_of(question, page_ids, self._dense.score(question, page_ids))

    def beyond_of(self, question: str, page_ids: Sequence[int], chunks: Hits) -> Hits:
        """Scores of these pages, given the dense leg's."""
        known = {page_id: chunks[page_id] for page_id in page_ids if page_id in chunks}
        return _better(known, self._best_lines(question, page_ids))

    def _best_lines(self, question: str, page_ids: Sequence[int] | None) -> dict[int, float]:
        """page_id → cosine of its best line, for pages that have lines."""
        if not fits(self._catalog):
            return {}
        lines = self._all_lines() if page_ids is None else _lines(self._catalog, page_ids)
        if not lines.owners:
            return {}
        import numpy as np

        cosines = vectors.cosines(lines.vectors, self._questions.of(question))
        found = np.maximum.reduceat(cosines, lines.starts)
        return {owner: float(value) for owner, value in zip(lines.owners, found, strict=True)}

    def _all_lines(self) -> _Lines:
        key = (page_vectors.last_sequence(self._catalog), page_vectors.count(self._catalog))
        if self._lines is None or self._lines[0] != key:
            self._lines = (key, _lines(self._catalog, None))
        return self._lines[1]


def fits(catalog: Catalog) -> bool:
    """Whether the lines were embedded by the text encoder that is in use; not so for a moment after it was changed."""
    return page_vectors.encoder_of(catalog) == f"{page_vectors.REGIONS}:{vectors.encoder_of(catalog)}"


def _lines(catalog: Catalog, page_ids: Sequence[int] | None) -> _Lines:
    import numpy as np

    from research.encoders.visual.packing import stack

    rows = [(page_id, blob) for page_id, blob in page_vectors.vectors_of(catalog, page_ids) if blob]
    packed = stack([blob for _, blob in rows])
    matrix = packed.values.astype(np.float32)
    matrix *= packed.scales[:, None]
    return _Lines([page_id for page_id, _ in rows], matrix, packed.offsets[:-1])


def _better(chunks: Hits, lines: dict[int, float]) -> Hits:
    """The better of a page's best chunk and its best line."""
    hits: Hits = dict(chunks)
    for page_id, line in lines.items():
        chunk = chunks.get(page_id)
        if chunk is None:
            hits[page_id] = Hit(line, {"line": line})
        elif line > chunk.score:
            hits[page_id] = Hit(line, {"line": line, "chunk": chunk.score})
    return hits
