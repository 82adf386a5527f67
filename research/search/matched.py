"""Where on a page the answer seems to stand: the pieces that match the question best, as boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from research.models import MatchedRegion
from research.store import page_vectors, vectors
from research.store.catalog import Catalog
from research.store.records import Box
from research.store.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders.base import TextEncoder

_MOST = 3  # boxes a page: more would be the whole of it
_AS_GOOD = 0.8  # of the best piece's score, for a second one to be named
_WORDS_BESIDE = 0.3  # what the question's words count beside a vector of the piece itself
_PATCHES = 12  # of a visual model's patches, the best ones


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    box: Box
    cosine: float  # of the vector that holds it


def by_text(
    catalog: Catalog, question: str, asked: NDArray[np.float32], page_ids: Sequence[int]
) -> dict[int, list[MatchedRegion]]:
    """By the text side: the vector `asked` (dim,) finds the passage, the question's words find the place in it."""
    wanted = set(words(question))
    return {page_id: _best(_pieces(catalog, page_id, asked), wanted) for page_id in page_ids}


def closely(
    catalog: Catalog, question: str, asked: NDArray[np.float32], page_id: int, encoder: TextEncoder
) -> list[MatchedRegion]:
    """`by_text` with a vector for every piece: finds what is said in other words, at the cost of embedding a page."""
    from research.encoders.base import fitting

    pieces = _pieces(catalog, page_id, asked)
    texts = [fitting(piece.text, encoder) for piece in pieces]
    if not pieces:
        return []
    cosines = encoder.embed(texts) @ asked
    exact = [replace(piece, cosine=float(cosine)) for piece, cosine in zip(pieces, cosines, strict=True)]
    return _best(exact, set(words(question)), say=_WORDS_BESIDE)


def by_model(catalog: Catalog, asked: NDArray[np.float32], page_ids: Sequence[int]) -> dict[int, list[MatchedRegion]]:
    """By a visual model: for every vector of the question (n_tokens, dim) the patch that answers it best."""
    from research.encoders.visual.boxes import box_list
    from research.encoders.visual.packing import unpack

    boxes = page_vectors.boxes_of(catalog, page_ids)
    found: dict[int, list[MatchedRegion]] = {page_id: [] for page_id in page_ids}
    for page_id, blob in page_vectors.vectors_of(catalog, page_ids):
        if blob and len(asked):
            found[page_id] = _best_patches(asked @ unpack(blob).T, box_list(boxes[page_id]))
    return found


def _pieces(catalog: Catalog, page_id: int, asked: NDArray[np.float32]) -> list[_Piece]:
    """The page's blocks with the cosine of their chunk, and its lines with their own."""
    pieces: list[_Piece] = []
    for chunk in vectors.chunks_of_page(catalog, page_id):
        cosine = float(chunk.vector @ asked)
        ends = [region.start for region in chunk.regions[1:]] + [len(chunk.text)]
        parts = [
            _Piece(chunk.text[region.start : end], region.box, cosine)
            for region, end in zip(chunk.regions, ends, strict=True)
        ]
        pieces += _with_headings(parts)
    return pieces + _line_pieces(catalog, page_id, asked)


def _with_headings(parts: list[_Piece]) -> list[_Piece]:
    """A heading names what stands below it: the two are one piece."""
    joined: list[_Piece] = []
    for part in parts:
        before = joined[-1] if joined else None
        if before is not None and before.text.startswith("#") and "\n\n" not in before.text.strip():
            text = f"{before.text.rstrip()}\n\n{part.text}"
            joined[-1] = _Piece(text, _union(before.box, part.box), part.cosine)
        else:
            joined.append(part)
    return joined


def _line_pieces(catalog: Catalog, page_id: int, asked: NDArray[np.float32]) -> list[_Piece]:
    from research.encoders.visual.boxes import box_list
    from research.encoders.visual.packing import unpack

    blob = dict(page_vectors.vectors_of(catalog, [page_id])).get(page_id)
    if not blob:
        return []
    boxes = box_list(page_vectors.boxes_of(catalog, [page_id])[page_id])
    texts = {line.box: line.text for line in page_vectors.lines_of(catalog, page_id)}
    known = {tuple(round(edge, 3) for edge in box): text for box, text in texts.items()}
    cosines = unpack(blob) @ asked
    return [
        _Piece(known.get(tuple(round(edge, 3) for edge in box), ""), box, float(cosine))
        for box, cosine in zip(boxes, cosines, strict=True)
    ]


def _best(pieces: list[_Piece], wanted: set[str], say: float = 1.0) -> list[MatchedRegion]:
    """`say` is what words count beside the cosine."""
    found = [(piece, wanted.intersection(words(piece.text))) for piece in pieces]
    on_page = Counter(word for _, inside in found for word in inside)
    whole = sum(1 / count for count in on_page.values()) or 1.0
    # A word that stands in every piece tells them apart no better than one that stands in none.
    scored = [
        (max(0.0, piece.cosine) + say * sum(1 / on_page[word] for word in inside) / whole, piece)
        for piece, inside in found
    ]
    scored.sort(key=lambda entry: -entry[0])
    chosen: list[MatchedRegion] = []
    for score, piece in scored:
        if len(chosen) == _MOST or score < _AS_GOOD * scored[0][0]:
            break
        if not any(_covers(region.box, piece.box) or _covers(piece.box, region.box) for region in chosen):
            chosen.append(MatchedRegion(_rounded(piece.box), round(min(1.0, score / (1 + say)), 4)))
    return chosen


def _best_patches(similarities: NDArray[np.float32], boxes: list[Box]) -> list[MatchedRegion]:
    """The patches that answer most of the question, touching ones joined."""
    weights: dict[int, float] = {}
    for token, index in enumerate(similarities.argmax(axis=1).tolist()):
        if _area(boxes[index]) < 0.99:  # the prompt's own words look at no place in particular
            weights[index] = weights.get(index, 0.0) + float(similarities[token, index])
    joined: list[tuple[Box, float]] = []
    for index in sorted(weights, key=lambda index: -weights[index])[:_PATCHES]:
        box, weight = boxes[index], weights[index]
        while (other := next((entry for entry in joined if _touch(entry[0], box)), None)) is not None:
            joined.remove(other)
            box, weight = _union(other[0], box), other[1] + weight
        joined.append((box, weight))
    joined.sort(key=lambda entry: -entry[1])
    total = max(1, len(similarities))
    return [MatchedRegion(_rounded(box), round(max(0.0, weight / total), 4)) for box, weight in joined[:_MOST]]


def _union(a: Box, b: Box) -> Box:
    return (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))


def _touch(a: Box, b: Box) -> bool:
    slack = 0.005
    return a[0] <= b[2] + slack and b[0] <= a[2] + slack and a[1] <= b[3] + slack and b[1] <= a[3] + slack


def _covers(outer: Box, inner: Box) -> bool:
    slack = 0.01
    return (
        outer[0] - slack <= inner[0]
        and outer[1] - slack <= inner[1]
        and inner[2] <= outer[2] + slack
        and inner[3] <= outer[3] + slack
    )


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _rounded(box: Box) -> Box:
    return (round(box[0], 4), round(box[1], 4), round(box[2], 4), round(box[3], 4))
