"""What an answer rests on: which legs took part, and which pages some of them cannot see yet."""

from __future__ import annotations

from research.models import Coverage, LegCoverage
from research.store import page_vectors
from research.store.catalog import Catalog
from research.store.stages import STAGE_VECTORS


def measure(catalog: Catalog, legs: list[LegCoverage]) -> Coverage:
    def count(query: str, *values: object) -> int:
        return int(catalog.connection.execute(query, values).fetchone()[0])

    return Coverage(
        legs=legs,
        pages=count("SELECT COUNT(*) FROM pages"),
        pages_without_vectors=count(
            "SELECT COUNT(DISTINCT page_id) FROM ledger JOIN pages USING (doc_id) JOIN chunks USING (page_id)"
            " LEFT JOIN vectors USING (chunk_id) WHERE stage = ? AND seq IS NULL",
            STAGE_VECTORS,
        ),
        pages_without_text=count("SELECT COALESCE(SUM(words = 0), 0) FROM pages"),
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
