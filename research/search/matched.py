"""Where on a page the answer seems to stand: the pieces that match the question best, as boxes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from research.boxes import Box, area, contains, rounded, touches, union, unpack_boxes
from research.models import MatchedRegion
from research.search.regions import fits
from research.store.catalog import page_vectors, vectors
from research.store.catalog.catalog import Catalog
from research.store.fulltext.analyzer import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders.base import TextEncoder

_CHUNKS = 2  # of a page are looked into, where many pages are
_MOST = 3  # boxes a page: more would be the whole of it
_AS_GOOD = 0.8  # of the best piece's score, for a second one to be named
_WORDS_BESIDE = 0.3  # what the question's words count beside a vector of the piece itself
_PATCHES = 12  # of a visual model's patches, the best ones
_TOUCHING = 0.005  # of the page: patches no further apart are one
_COVERED = 0.01  # of the page that a piece may stick out of one that stands for it already
_DIGITS = 4  # of a box that is shown


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    box: Box
    cosine: float  # of the vector that holds it


def by_text(
    catalog: Catalog, question: str, asked: NDArray[np.float32], page_ids: Sequence[int]
) -> dict[int, list[MatchedRegion]]:
    """By the text side: the vector `asked` (dim,) finds the passage, the question's words find the place in it."""
    find = _finder(question)
    lines = _lines(catalog, page_ids, asked)
    return {
        page_id: _best([*_blocks(catalog, page_id, asked, _CHUNKS), *lines.get(page_id, ())], find)
        for page_id in page_ids
    }


def closely(
    catalog: Catalog, question: str, asked: NDArray[np.float32], page_id: int, encoder: TextEncoder
) -> list[MatchedRegion]:
    """`by_text` with a vector for every piece: finds what is said in other words, at the cost of embedding a page."""
    from research.encoders.base import fitting

    pieces = [*_blocks(catalog, page_id, asked), *_lines(catalog, [page_id], asked).get(page_id, ())]
    texts = [fitting(piece.text, encoder) for piece in pieces]
    if not pieces:
        return []
    cosines = encoder.embed(texts) @ asked
    exact = [replace(piece, cosine=float(cosine)) for piece, cosine in zip(pieces, cosines, strict=True)]
    return _best(exact, _finder(question), say=_WORDS_BESIDE)


def by_model(catalog: Catalog, asked: NDArray[np.float32], page_ids: Sequence[int]) -> dict[int, list[MatchedRegion]]:
    """By a visual model: for every vector of the question (n_tokens, dim) the patch that answers it best."""
    from research.encoders.visual.packing import unpack

    found: dict[int, list[MatchedRegion]] = {page_id: [] for page_id in page_ids}
    for page_id, packed, boxes in page_vectors.seen_of(catalog, page_ids):
        if len(asked):
            found[page_id] = _best_patches(asked @ unpack(packed).T, unpack_boxes(boxes))
    return found


def _blocks(catalog: Catalog, page_id: int, asked: NDArray[np.float32], most: int | None = None) -> list[_Piece]:
    """The page's blocks with the cosine of their chunk; of the `most` best chunks, or of all."""
    pieces: list[_Piece] = []
    for chunk in vectors.nearest_on_page(catalog, page_id, asked, most):
        ends = [region.start for region in chunk.regions[1:]] + [len(chunk.text)]
        parts = [
            _Piece(chunk.text[region.start : end], region.box, chunk.cosine)
            for region, end in zip(chunk.regions, ends, strict=True)
        ]
        pieces += _with_headings(parts)
    return pieces


def _with_headings(parts: list[_Piece]) -> list[_Piece]:
    """A heading names what stands below it: the two are one piece."""
    joined: list[_Piece] = []
    for part in parts:
        before = joined[-1] if joined else None
        if before is not None and before.text.startswith("#") and "\n\n" not in before.text.strip():
            text = f"{before.text.rstrip()}\n\n{part.text}"
            joined[-1] = _Piece(text, union((before.box, part.box)), part.cosine)
        else:
            joined.append(part)
    return joined


def _lines(catalog: Catalog, page_ids: Sequence[int], asked: NDArray[np.float32]) -> dict[int, list[_Piece]]:
    """page_id → the lines OCR read there, with cosines of their own."""
    lined = page_vectors.embedded_lines_of(catalog, page_ids) if fits(catalog) else {}
    if not lined:
        return {}
    from research.encoders.visual.packing import unpack

    return {
        page_id: [
            _Piece(line.text, line.box, float(cosine))
            for line, cosine in zip(lines, vectors.cosines(unpack(packed), asked), strict=True)
        ]
        for page_id, (lines, packed) in lined.items()
    }


def _finder(question: str) -> Callable[[str], set[str]]:
    """Tells which words of the question stand in a text."""
    wanted = set(words(question))
    if not wanted or not all(word.isascii() for word in wanted):
        return lambda text: wanted.intersection(words(text))
    # Stems begin the words they stand for, but for a last letter ("happi"); looking for beginnings is quick, and good
    # enough to tell the pieces of one page apart.
    starts = {word[:-1] if word.endswith("i") and len(word) > 3 else word: word for word in wanted}
    pattern = re.compile("|".join(rf"\b{re.escape(start)}" for start in sorted(starts, key=len, reverse=True)))
    return lambda text: {starts[start] for start in pattern.findall(text.lower())}


def _best(pieces: list[_Piece], find: Callable[[str], set[str]], say: float = 1.0) -> list[MatchedRegion]:
    """`say` is what words count beside the cosine."""
    found = [(piece, find(piece.text)) for piece in pieces]
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
        if not any(_is_one(region.box, piece.box) for region in chosen):
            chosen.append(MatchedRegion(rounded(piece.box, _DIGITS), round(min(1.0, score / (1 + say)), 4)))
    return chosen


def _is_one(a: Box, b: Box) -> bool:
    """Whether one of two boxes lies in the other."""
    return contains(a, b, _COVERED) or contains(b, a, _COVERED)


def _best_patches(similarities: NDArray[np.float32], boxes: list[Box]) -> list[MatchedRegion]:
    """The patches that answer most of the question, touching ones joined."""
    weights: dict[int, float] = {}
    for token, index in enumerate(similarities.argmax(axis=1).tolist()):
        if area(boxes[index]) < 0.99:  # the prompt's own words look at no place in particular
            weights[index] = weights.get(index, 0.0) + float(similarities[token, index])
    joined: list[tuple[Box, float]] = []
    for index in sorted(weights, key=lambda index: -weights[index])[:_PATCHES]:
        box, weight = boxes[index], weights[index]
        while (other := next((entry for entry in joined if touches(entry[0], box, _TOUCHING)), None)) is not None:
            joined.remove(other)
            box, weight = union((other[0], box)), other[1] + weight
        joined.append((box, weight))
    joined.sort(key=lambda entry: -entry[1])
    total = max(1, len(similarities))
    return [MatchedRegion(rounded(box, _DIGITS), round(max(0.0, weight / total), 4)) for box, weight in joined[:_MOST]]
