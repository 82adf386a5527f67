"""What an index keeps: the catalog, which is the truth, the indexes beside it, and how they are kept in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.store import files, generations, governance, graph, ledger, lookups, memory_writes, restricted
    from research.store.analyzer import SIGNS, STOP_WORDS, analyze, analyze_name, letters, normalize, stem
    from research.store.archive import backup
    from research.store.catalog import Catalog
    from research.store.doctor import check_index, check_sqlite, guarded, reindex, repair
    from research.store.documents import FileStamp, ocr_error
    from research.store.fulltext import update_if_outdated
    from research.store.generations import VISUAL, open_client
    from research.store.governance import NAMES, PATH, TAG, Label, is_tag
    from research.store.graph import CALLS, CONTAINS, EDGE_KINDS, REFERS, TOLD_IN, NewNode
    from research.store.holdings import file_of, found_at, plan_removal, remove, status_of
    from research.store.item_writes import LEAST_MEMBERS, ParentItems, Written
    from research.store.items import PART, ItemParent, KindState, NewItem, Scalar, StoredItem, fitting_parts
    from research.store.memories import SearchedRow, TenantState, spoken_text, words_of
    from research.store.memory_writes import Told
    from research.store.names import Scope, ambiguous, fold, is_pattern, matcher, page_of_ref, shown, stored_text
    from research.store.nearest import ChromaClient, VectorIndex
    from research.store.packages import CachedRow, StoredPackage, StoredRequest, Uses, Whose
    from research.store.pages import PageText, StoredPage
    from research.store.paths import (
        CATALOG,
        MARKER,
        IndexPaths,
        image_name,
        index_id,
        is_own_name,
        make_folder,
        thumbnail_name,
        write_lock,
    )
    from research.store.publish import publish_in_subprocess
    from research.store.reader import DriverError, Reader, Writer
    from research.store.restoring import restore
    from research.store.vectors import OFF, REGIONS, ComparedChunk, PageBlobs, PageImage, cosines, visual_kind
    from research.store.words import KINDS, ByWord, Floors, Term, WordWeights, asked_words
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "": "files generations governance graph ledger lookups memory_writes restricted",
            "analyzer": "SIGNS STOP_WORDS analyze analyze_name letters normalize stem",
            "archive": "backup",
            "catalog": "Catalog",
            "doctor": "check_index check_sqlite guarded reindex repair",
            "documents": "FileStamp ocr_error",
            "fulltext": "update_if_outdated",
            "generations": "VISUAL open_client",
            "governance": "Label NAMES PATH TAG is_tag",
            "graph": "CALLS CONTAINS EDGE_KINDS NewNode REFERS TOLD_IN",
            "holdings": "file_of found_at plan_removal remove status_of",
            "item_writes": "LEAST_MEMBERS ParentItems Written",
            "items": "ItemParent KindState NewItem PART Scalar StoredItem fitting_parts",
            "memories": "SearchedRow TenantState spoken_text words_of",
            "memory_writes": "Told",
            "names": "Scope ambiguous fold is_pattern matcher page_of_ref shown stored_text",
            "nearest": "ChromaClient VectorIndex",
            "packages": "CachedRow StoredPackage StoredRequest Uses Whose",
            "pages": "PageText StoredPage",
            "paths": (
                "CATALOG IndexPaths MARKER image_name index_id is_own_name make_folder thumbnail_name write_lock"
            ),
            "publish": "publish_in_subprocess",
            "reader": "DriverError Reader Writer",
            "restoring": "restore",
            "vectors": "ComparedChunk OFF PageBlobs PageImage REGIONS cosines visual_kind",
            "words": "ByWord Floors KINDS Term WordWeights asked_words",
        },
    )
