"""What an answer rests on: which legs took part, and which pages some of them cannot see yet."""

from __future__ import annotations

from research.models import Coverage, LegCoverage
from research.store.catalog import counts, page_vectors
from research.store.catalog.catalog import Catalog


def measure(catalog: Catalog, legs: list[LegCoverage]) -> Coverage:
    return Coverage(
        legs=legs,
        pages=counts.pages(catalog),
        pages_without_vectors=counts.pages_without_vectors(catalog),
        pages_without_text=counts.pages_without_text(catalog),
        pages_without_visual=page_vectors.count_unseen(catalog),
    )
