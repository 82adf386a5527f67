"""Looking where the question points.

No leg can know that page 12 is meant: its number need not stand on it, and a scan or a chart may hold no words at all.
So a named place is looked up in the documents that the legs found first. A page that is named is worth as much as the
best page of its document, and stands before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from research.models import LegScore
from research.search.fusion import FusedPage
from research.search.places import Places
from research.store.catalog.catalog import Catalog
from research.store.fulltext.named import captioned_pages, numbered_pages

# Documents after these are hardly what the question is about, and each costs a look-up.
_DOCUMENTS = 5
# Captions write one name in two ways.
_SPELLINGS = {"figure": ("figure", "fig"), "fig": ("figure", "fig")}


def lift(catalog: Catalog, places: Places, fused: Sequence[FusedPage], doc_of: Mapping[int, str]) -> list[FusedPage]:
    """The pages in their new order. `doc_of` holds every page's document; pages that no leg found may join them."""
    best: dict[str, float] = {}
    for page in fused:
        best.setdefault(doc_of[page.page_id], page.score)
    own = {page.page_id: page for page in fused}
    named: dict[int, FusedPage] = {}
    for page_id, doc_id in _look_up(catalog, places, list(best)[:_DOCUMENTS]).items():
        legs = dict(own[page_id].legs) if page_id in own else {}
        legs["named"] = LegScore(None, best[doc_id], {"place": best[doc_id]})
        named[page_id] = FusedPage(page_id, best[doc_id], legs)
    rank = {page.page_id: n for n, page in enumerate(fused)}
    return sorted(
        (named.get(page_id) or own[page_id] for page_id in own.keys() | named.keys()),
        key=lambda page: (
            -round(page.score, 6),
            page.page_id not in named,
            rank.get(page.page_id, len(rank)),
            page.page_id,
        ),
    )


def _look_up(catalog: Catalog, places: Places, doc_ids: Sequence[str]) -> dict[int, str]:
    """page_id → doc_id of the pages of these documents that are named."""
    found = numbered_pages(catalog, doc_ids, places.pages)
    for caption in places.captions:
        kinds = _SPELLINGS.get(caption.kind, (caption.kind,))
        found |= captioned_pages(catalog, doc_ids, kinds, caption.number)
    return found
