"""The Chroma collections as they stand against the catalog, told without opening Chroma."""

from __future__ import annotations

from dataclasses import dataclass

from research.store.catalog import counts, vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.revision import revision_of
from research.store.vectors import generations, visual_records
from research.store.vectors.generations import Generation

TEXT = "text"
VISUAL = "visual"


@dataclass(frozen=True, slots=True)
class IndexState:
    """How the collections stand against the catalog."""

    generation: Generation | None
    missing: int  # vectors and finished pages of the catalog that are not in the collections
    surplus: int  # records of the collections that the catalog no longer has
    outdated: bool = False  # names or images changed since

    @property
    def behind(self) -> bool:
        return self.missing > 0 or self.surplus > 0 or self.outdated or self.generation is None


def state_of(catalog: Catalog) -> IndexState:
    """Compare without opening Chroma."""
    generation = current(catalog)
    upto = generation.upto if generation else 0
    total, missing = counts.vectors(catalog), counts.vectors_after(catalog, upto)
    text = generation.text_records if generation else 0
    visual = generation.visual_records if generation else 0
    pages = visual_records.count(catalog)
    unseen = visual_records.newer(catalog, generation.visual_upto if generation else 0)
    return IndexState(
        generation,
        missing=missing + max(unseen, pages - visual),
        surplus=max(0, text - (total - missing)) + max(0, visual - pages),
        outdated=generation is not None and generation.revision != revision_of(catalog),
    )


def current(catalog: Catalog) -> Generation | None:
    """The newest usable generation; none if the catalog was set back behind it."""
    generation = generations.newest(catalog.paths.chroma, catalog.meta("catalog_id"))
    if generation is not None and generation.upto > vectors.last_sequence(catalog):
        return None
    return generation


def chunk_key(doc_id: str, page: int, ordinal: int) -> str:
    return f"{doc_id}:{page}:{ordinal}"
