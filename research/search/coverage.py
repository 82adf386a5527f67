"""What an answer rests on: which legs took part, and which pages some of them cannot see yet."""

from __future__ import annotations

from research.models import Coverage, LegCoverage
from research.store.catalog import page_vectors
from research.store.catalog.pages import totals
from research.store.catalog.reader import Reader


def measure(reader: Reader, legs: list[LegCoverage]) -> Coverage:
    found = totals(reader)
    return Coverage(
        legs=legs,
        pages=found.pages,
        pages_without_vectors=found.pages_without_vectors,
        pages_without_text=found.pages_without_text,
        pages_without_visual=page_vectors.count_unseen(reader),
    )
