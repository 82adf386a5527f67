"""What an index keeps: the catalog, which is the truth, the indexes beside it, and how they are kept in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.store.catalog import (
        chunk_vectors,
        edge_writes,
        edges,
        governance,
        ledger,
        memory_writes,
        packages,
        page_vectors,
        session_turns,
    )
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.chunk_vectors import ComparedChunk, cosines, encoder_of
    from research.store.catalog.document_names import (
        ambiguous,
        current_ids,
        fold,
        is_pattern,
        matcher,
        page_of_ref,
        select_documents,
        select_one,
        shown,
        stored_text,
    )
    from research.store.catalog.document_writes import (
        add_document,
        forget_path,
        give_up_ocr,
        mark_drawn,
        needs_no_ocr,
        note_file,
        ocr_error,
        rename_document,
        write_ocr,
    )
    from research.store.catalog.documents import (
        FileStamp,
        Scope,
        all_documents,
        document_at_path,
        document_of_hash,
        get_document,
        get_documents,
        paths_below,
        paths_of,
        reader_version_of,
        select,
    )
    from research.store.catalog.edge_writes import NewNode
    from research.store.catalog.edges import (
        CALLS,
        CHANGES,
        CITES,
        CONTAINS,
        EDGE_KINDS,
        IMPORTS,
        KIND_NAMES,
        MOST_SEEDS,
        REFERS,
        SUPPORTS,
        TOLD_IN,
        GraphedItem,
        GraphedMemory,
        StoredEdge,
        StoredNode,
        edges_a_node,
        edges_between,
        find_nodes,
        gone_memories,
        node_titles,
        walk,
    )
    from research.store.catalog.governance import (
        ACCEPTED,
        ACCESS,
        CHECKPOINT,
        RESTART,
        AuditRow,
        GovernedDocument,
        file_refs,
        governed_documents,
        governed_items,
        governed_memories,
        ingested_around,
        item_places,
        known_sessions,
        memory_numbers,
        page_places,
        summary_sources,
    )
    from research.store.catalog.item_writes import (
        LEAST_MEMBERS,
        ParentItems,
        Written,
        add_items,
        put_parents,
        remove_experiences,
        remove_items,
        remove_parents,
        write_item_vectors,
    )
    from research.store.catalog.items import (
        KINDS,
        PART,
        ItemParent,
        KindState,
        NewItem,
        Scalar,
        StoredItem,
        changed_after,
        count_items,
        count_of_parents,
        count_parents,
        find_item,
        find_items_ending,
        fitting_parts,
        get_items,
        get_parent,
        item_measures,
        item_metadata,
        item_parents,
        item_times,
        item_vectors,
        keys_of_parent,
        kind_state,
        known_keys,
        list_items,
        mean_length,
        numbers_without_vectors,
        pending_items,
    )
    from research.store.catalog.labels import (
        NAMES,
        PATH,
        TAG,
        Label,
        add_tags,
        all_tags,
        content_revision,
        is_tag,
        labels_at,
        list_labels,
        put_labels,
        remove_labels,
        remove_tags,
        rules,
        tags_of,
    )
    from research.store.catalog.ledger import (
        CRASHED,
        INTERNAL,
        KILLED,
        STAGE_IMAGES,
        STAGE_OCR,
        STAGE_READ,
        STAGE_VECTORS,
        STAGE_VISUAL,
        TIMEOUT,
        WHOLE,
        FailedFile,
        add_tries,
        ask_for_images,
        close_ledger,
        count_for_ocr,
        count_pending,
        failed_file,
        failures_of,
        forget_files_gone,
        given_up,
        pages_for_ocr,
        record_file,
        reopen,
        to_read_again,
        unfinished,
        waits,
    )
    from research.store.catalog.memories import (
        SearchedRow,
        TenantState,
        get_memories,
        list_memories,
        numbers_of,
        pending_vectors,
        rows_after,
        spoken_text,
        tenant_state,
        tenants,
        vectors_of,
        words_of,
    )
    from research.store.catalog.memory_writes import Told
    from research.store.catalog.packages import (
        CachedRow,
        StoredPackage,
        StoredRequest,
        Uses,
        Whose,
        remove_projections,
        store_projection,
        uses_of,
    )
    from research.store.catalog.page_vectors import (
        OFF,
        REGIONS,
        PageBlobs,
        PageImage,
        count_unseen,
        visual_kind,
        visual_side,
    )
    from research.store.catalog.pages import (
        PageText,
        StoredPage,
        count_pages,
        document_markdown,
        documents_of,
        get_page,
        get_pages,
        get_pages_with_text,
        page_ids_at,
        page_ids_of,
        page_markdown,
        page_texts,
        places_of,
        section_paths,
        totals,
    )
    from research.store.catalog.reader import NO_MASKS, DriverError, Reader, Writer
    from research.store.catalog.restricted import MaskedItem, MaskedMemory, MaskedPage, RestrictedCatalog, Seen
    from research.store.client import ChromaClient
    from research.store.files import images, uploads
    from research.store.files.marker import index_id
    from research.store.files.paths import (
        CATALOG,
        MARKER,
        IndexPaths,
        image_name,
        is_own_name,
        make_folder,
        thumbnail_name,
        write_lock,
    )
    from research.store.files.uploads import Incoming, Upload
    from research.store.fulltext import search
    from research.store.fulltext.analyzer import SIGNS, STOP_WORDS, analyze, analyze_name, letters, normalize, stem
    from research.store.fulltext.item_words import WordWeights, asked_words, item_terms, score_words, titled
    from research.store.fulltext.lookups import (
        FrontPage,
        Heading,
        all_headings,
        captioned_pages,
        count_entries,
        count_years,
        documents_with,
        following_pages,
        front_pages,
        headings_with,
        named_words,
        numbered_pages,
        pages_with_all,
        pages_with_phrase,
        words_on,
    )
    from research.store.fulltext.rebuild import update_if_outdated
    from research.store.fulltext.search import (
        Floors,
        Term,
        documents_holding,
        is_outdated,
        name_matches,
        name_stems,
        phrase_pages,
        share_of_named,
        term_statistics,
        unknown_words,
        written_names,
    )
    from research.store.upkeep.backup import backup
    from research.store.upkeep.doctor import check_index, check_sqlite, guarded, reindex, repair
    from research.store.upkeep.holdings import file_of, found_at, plan_removal, remove, status_of
    from research.store.upkeep.restore import restore
    from research.store.vectors import generations
    from research.store.vectors.chroma import open_client
    from research.store.vectors.generations import VISUAL
    from research.store.vectors.index import VectorIndex
    from research.store.vectors.writer import publish_in_subprocess
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "catalog": (
                "chunk_vectors edge_writes edges governance ledger memory_writes packages page_vectors session_turns"
            ),
            "catalog.catalog": "Catalog",
            "catalog.chunk_vectors": "ComparedChunk cosines encoder_of",
            "catalog.document_names": (
                "ambiguous current_ids fold is_pattern matcher page_of_ref select_documents select_one "
                "shown stored_text"
            ),
            "catalog.document_writes": (
                "add_document forget_path give_up_ocr mark_drawn needs_no_ocr note_file ocr_error "
                "rename_document write_ocr"
            ),
            "catalog.documents": (
                "FileStamp Scope all_documents document_at_path document_of_hash get_document "
                "get_documents paths_below paths_of reader_version_of select"
            ),
            "catalog.edge_writes": "NewNode",
            "catalog.edges": (
                "CALLS CHANGES CITES CONTAINS EDGE_KINDS GraphedItem GraphedMemory IMPORTS KIND_NAMES "
                "MOST_SEEDS REFERS SUPPORTS StoredEdge StoredNode TOLD_IN edges_a_node edges_between "
                "find_nodes gone_memories node_titles walk"
            ),
            "catalog.governance": (
                "ACCEPTED ACCESS AuditRow CHECKPOINT GovernedDocument RESTART file_refs "
                "governed_documents governed_items governed_memories ingested_around item_places "
                "known_sessions memory_numbers page_places summary_sources"
            ),
            "catalog.item_writes": (
                "LEAST_MEMBERS ParentItems Written add_items put_parents remove_experiences remove_items "
                "remove_parents write_item_vectors"
            ),
            "catalog.items": (
                "ItemParent KINDS KindState NewItem PART Scalar StoredItem changed_after count_items "
                "count_of_parents count_parents find_item find_items_ending fitting_parts get_items "
                "get_parent item_measures item_metadata item_parents item_times item_vectors "
                "keys_of_parent kind_state known_keys list_items mean_length numbers_without_vectors "
                "pending_items"
            ),
            "catalog.labels": (
                "Label NAMES PATH TAG add_tags all_tags content_revision is_tag labels_at list_labels "
                "put_labels remove_labels remove_tags rules tags_of"
            ),
            "catalog.ledger": (
                "CRASHED FailedFile INTERNAL KILLED STAGE_IMAGES STAGE_OCR STAGE_READ STAGE_VECTORS "
                "STAGE_VISUAL TIMEOUT WHOLE add_tries ask_for_images close_ledger count_for_ocr "
                "count_pending failed_file failures_of forget_files_gone given_up pages_for_ocr "
                "record_file reopen to_read_again unfinished waits"
            ),
            "catalog.memories": (
                "SearchedRow TenantState get_memories list_memories numbers_of pending_vectors rows_after "
                "spoken_text tenant_state tenants vectors_of words_of"
            ),
            "catalog.memory_writes": "Told",
            "catalog.packages": (
                "CachedRow StoredPackage StoredRequest Uses Whose remove_projections store_projection uses_of"
            ),
            "catalog.page_vectors": "OFF PageBlobs PageImage REGIONS count_unseen visual_kind visual_side",
            "catalog.pages": (
                "PageText StoredPage count_pages document_markdown documents_of get_page get_pages "
                "get_pages_with_text page_ids_at page_ids_of page_markdown page_texts places_of "
                "section_paths totals"
            ),
            "catalog.reader": "DriverError NO_MASKS Reader Writer",
            "catalog.restricted": "MaskedItem MaskedMemory MaskedPage RestrictedCatalog Seen",
            "client": "ChromaClient",
            "files": "images uploads",
            "files.marker": "index_id",
            "files.paths": "CATALOG IndexPaths MARKER image_name is_own_name make_folder thumbnail_name write_lock",
            "files.uploads": "Incoming Upload",
            "fulltext": "search",
            "fulltext.analyzer": "SIGNS STOP_WORDS analyze analyze_name letters normalize stem",
            "fulltext.item_words": "WordWeights asked_words item_terms score_words titled",
            "fulltext.lookups": (
                "FrontPage Heading all_headings captioned_pages count_entries count_years documents_with "
                "following_pages front_pages headings_with named_words numbered_pages pages_with_all "
                "pages_with_phrase words_on"
            ),
            "fulltext.rebuild": "update_if_outdated",
            "fulltext.search": (
                "Floors Term documents_holding is_outdated name_matches name_stems phrase_pages "
                "share_of_named term_statistics unknown_words written_names"
            ),
            "upkeep.backup": "backup",
            "upkeep.doctor": "check_index check_sqlite guarded reindex repair",
            "upkeep.holdings": "file_of found_at plan_removal remove status_of",
            "upkeep.restore": "restore",
            "vectors": "generations",
            "vectors.chroma": "open_client",
            "vectors.generations": "VISUAL",
            "vectors.index": "VectorIndex",
            "vectors.writer": "publish_in_subprocess",
        },
    )
