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
        pages_without_visual=_unseen(catalog),
    )


def _unseen(catalog: Catalog) -> int:
    """Pages that a visual model has not looked at; none where `regions` or nothing is in use."""
    encoder = page_vectors.encoder_of(catalog)
    if encoder in ("", page_vectors.OFF) or encoder.startswith(page_vectors.REGIONS):
        return 0
    row = catalog.connection.execute(
        "SELECT COUNT(*) FROM pages LEFT JOIN page_vectors USING (page_id) WHERE COALESCE(length(first), 0) = 0"
    ).fetchone()
    return int(row[0])
