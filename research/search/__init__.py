"""Search inside one source: legs, their fusion, rewriters, boosters and rerankers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.search.calibration import Evidence, calibrate
    from research.search.collection import CollectionBooster
    from research.search.dates import NewestFirst, version_of
    from research.search.document_parts import DocumentPartsBooster, opened, part_note
    from research.search.engine import Engine
    from research.search.highlights import Highlighter, RowOrder, matches, page_snippet
    from research.search.items import EmbeddedItems, FoundItem, FoundItems, ItemSearch, Ranking, Where
    from research.search.legs import DEFAULT_WEIGHTS, Found, LexicalLeg, PageOrder, SearchOutcome
    from research.search.memories import Ranked, View, Views, allowed, rank, read_question
    from research.search.names import is_a_word, naming
    from research.search.page_references import LANGUAGES, PageReferencesBooster
    from research.search.passages import BEST, YEAR, with_passages, years_asked
    from research.search.reranker import PageReranker, describe
    from research.search.rewriters import Rewriters
    from research.search.vector_legs import DenseLeg, VisualLeg
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "collection": "CollectionBooster",
            "document_parts": "DocumentPartsBooster opened part_note",
            "page_references": "LANGUAGES PageReferencesBooster",
            "calibration": "Evidence calibrate",
            "engine": "Engine",
            "highlights": "Highlighter RowOrder matches page_snippet",
            "items": "EmbeddedItems FoundItem FoundItems ItemSearch Ranking Where",
            "legs": "DEFAULT_WEIGHTS Found LexicalLeg PageOrder SearchOutcome",
            "memories": "Ranked View Views allowed rank read_question",
            "passages": "BEST YEAR with_passages years_asked",
            "reranker": "PageReranker describe",
            "rewriters": "Rewriters",
            "names": "is_a_word naming",
            "vector_legs": "DenseLeg VisualLeg",
            "dates": "NewestFirst version_of",
        },
    )
