"""Search inside one source: legs, their fusion, rewriters, boosters and rerankers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.search.boosters.collection import CollectionBooster
    from research.search.boosters.document_parts import DocumentPartsBooster, opened, part_note
    from research.search.boosters.page_references import LANGUAGES, PageReferencesBooster
    from research.search.calibration import Evidence, calibrate
    from research.search.engine import Engine
    from research.search.highlights import Highlighter, RowOrder, matches, page_snippet
    from research.search.items import EmbeddedItems, FoundItem, FoundItems, ItemSearch, Ranking, Where
    from research.search.legs import DEFAULT_WEIGHTS, Found, LexicalLeg, PageOrder, SearchOutcome
    from research.search.memories import Ranked, View, Views, allowed, rank, read_question
    from research.search.passages import BEST, YEAR, with_passages, years_asked
    from research.search.question_encoder import QuestionEncoder
    from research.search.reranker import PageReranker, describe
    from research.search.rewriters.base import Rewriters
    from research.search.rewriters.names import is_a_word, naming
    from research.search.vector_legs import DenseLeg, VisualLeg
    from research.search.versions import NewestFirst, version_of
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "boosters.collection": "CollectionBooster",
            "boosters.document_parts": "DocumentPartsBooster opened part_note",
            "boosters.page_references": "LANGUAGES PageReferencesBooster",
            "calibration": "Evidence calibrate",
            "engine": "Engine",
            "highlights": "Highlighter RowOrder matches page_snippet",
            "items": "EmbeddedItems FoundItem FoundItems ItemSearch Ranking Where",
            "legs": "DEFAULT_WEIGHTS Found LexicalLeg PageOrder SearchOutcome",
            "memories": "Ranked View Views allowed rank read_question",
            "passages": "BEST YEAR with_passages years_asked",
            "question_encoder": "QuestionEncoder",
            "reranker": "PageReranker describe",
            "rewriters.base": "Rewriters",
            "rewriters.names": "is_a_word naming",
            "vector_legs": "DenseLeg VisualLeg",
            "versions": "NewestFirst version_of",
        },
    )
