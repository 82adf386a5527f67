"""What the visual collection holds: one record a page, from the visual encoder's first-stage vector.

With `regions` that is the mean of the page's chunk vectors, for every page of a document whose chunks are all embedded;
with a visual model it is what the model's vectors share, for every page the model has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from research.store.catalog import counts, page_vectors, vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_VECTORS
from research.store.catalog.page_vectors import REGIONS
from research.store.catalog.pages import StoredPage, pages_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FINISHED = "FROM pages WHERE doc_id NOT IN (SELECT doc_id FROM ledger WHERE stage = ?)"
_SEEN = "FROM page_vectors JOIN pages USING (page_id) WHERE length(first) > 0"


def page_key(doc_id: str, page: int) -> str:
    return f"{doc_id}:{page}"


def keys(catalog: Catalog) -> set[str]:
    """The records there should be."""
    source, values = _source(catalog)
    if not source:
        return set()
    return {page_key(*row) for row in catalog.connection.execute(f"SELECT doc_id, page {source}", values)}


def count(catalog: Catalog) -> int:
    if _by_model(catalog):
        return int(catalog.connection.execute(f"SELECT COUNT(*) {_SEEN}").fetchone()[0])
    return counts.finished_pages(catalog) if _source(catalog)[0] else 0


def newer(catalog: Catalog, upto: int) -> int:
    """Records of a visual model that were written after a sequence number."""
    if not _by_model(catalog):
        return 0
    row = catalog.connection.execute(f"SELECT COUNT(*) {_SEEN} AND seq > ?", (upto,)).fetchone()
    return int(row[0])


def records(
    catalog: Catalog, touched: list[str], visual_after: int, lacking: set[str]
) -> Iterator[tuple[StoredPage, NDArray[np.float32]]]:
    """Pages with their first-stage vectors: of `touched` documents, of what a visual model saw after a sequence
    number, and of documents with records that are `lacking`."""
    # A document may have got its last vector before the base was published and been struck off the ledger after.
    late = [key.rsplit(":", 1)[0] for key in lacking]
    if _by_model(catalog):
        rows = catalog.connection.execute(f"SELECT DISTINCT doc_id {_SEEN} AND seq > ?", (visual_after,))
        yield from _seen(catalog, list(dict.fromkeys([*touched, *late, *(str(row[0]) for row in rows)])))
    elif _source(catalog)[0]:
        yield from _means(catalog, list(dict.fromkeys([*touched, *late])))


def _means(catalog: Catalog, doc_ids: list[str]) -> Iterator[tuple[StoredPage, NDArray[np.float32]]]:
    rows = catalog.connection.execute("SELECT doc_id FROM ledger WHERE stage = ?", (STAGE_VECTORS,))
    unfinished = {row[0] for row in rows}
    for doc_id in doc_ids:
        if doc_id not in unfinished:
            pages = list(pages_of(catalog, [doc_id]))
            means = vectors.page_means(catalog, [page.page_id for page in pages])
            yield from ((page, means[page.page_id]) for page in pages)


def _seen(catalog: Catalog, doc_ids: list[str]) -> Iterator[tuple[StoredPage, NDArray[np.float32]]]:
    import numpy as np

    for doc_id in doc_ids:
        rows = catalog.connection.execute(f"SELECT page_id, first {_SEEN} AND doc_id = ?", (doc_id,))
        first = {int(row[0]): np.frombuffer(row[1], dtype="<f2").astype(np.float32) for row in rows}
        yield from ((page, first[page.page_id]) for page in pages_of(catalog, [doc_id]) if page.page_id in first)


def _by_model(catalog: Catalog) -> bool:
    encoder = page_vectors.encoder_of(catalog)
    return encoder not in ("", page_vectors.OFF) and not encoder.startswith(REGIONS)


def _source(catalog: Catalog) -> tuple[str, tuple[str, ...]]:
    """The FROM clause of the pages that should have a record; empty where the visual side is off."""
    if _by_model(catalog):
        return _SEEN, ()
    return (_FINISHED, (STAGE_VECTORS,)) if page_vectors.encoder_of(catalog).startswith(REGIONS) else ("", ())
