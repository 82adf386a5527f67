"""Documents that a conversation is about come a little earlier for its next question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from research.search.legs import Ranked


def focused(ranked: Sequence[Ranked], about: Mapping[str, float]) -> list[Ranked]:
    """The ranking as if the pages of these documents had scored so much more. A page takes the score of the place it
    comes to: that a document was talked about makes nobody surer that a page of it answers."""
    order = sorted(ranked, key=lambda page: -round(page.score + about.get(page.doc_id, 0.0), 6))
    return [page._replace(score=place.score) for page, place in zip(order, ranked, strict=True)]
