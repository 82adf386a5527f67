"""What is in an index and how it stands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from research.reports import Status
from research.store.catalog import ledger, page_vectors, vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.items import count_items, count_parents, count_without_vectors
from research.store.catalog.ledger import STAGE_OCR, count_for_ocr, given_up, unfinished
from research.store.catalog.memories import count_memories
from research.store.catalog.pages import totals
from research.store.catalog.reader import Reader
from research.store.catalog.session_turns import count_turns
from research.store.files.lock import holder, is_locked
from research.store.files.paths import IndexPaths
from research.store.vectors import generations
from research.store.vectors.generations import IndexState


def status_of(paths: IndexPaths, named_encoders: Sequence[str] = (), reader: Reader | None = None) -> Status:
    """Look without changing anything. `named_encoders` are those the user allows; `reader`: of what may be seen, where
    that is not all. How large the folder is tells of the rest, too."""
    writing = is_locked(paths)
    writer = holder(paths.lock) if writing else None
    if not paths.exists:
        return Status(str(paths.root), writing=writing, writer_pid=writer)
    with Catalog(paths) if reader is None else nullcontext(reader) as catalog:
        state = generations.state_of(catalog) if reader is None else IndexState(None, missing=0, surplus=0)
        waiting, counted = unfinished(catalog), totals(catalog)
        memories, unseen = count_memories(catalog)
        sessions, turns = count_turns(catalog)
        return Status(
            index=str(paths.root),
            exists=True,
            documents=counted.documents,
            pages=counted.pages,
            pages_without_text=counted.pages_without_text,
            chunks=vectors.count_chunks(catalog),
            pending_chunks=ledger.count_pending(catalog),
            unfinished_documents=len({doc for stage, ids in waiting.items() if stage != STAGE_OCR for doc in ids}),
            pages_for_ocr=count_for_ocr(catalog),
            given_up=tuple(given_up(catalog)),
            size_bytes=size_of(paths.root) if reader is None else 0,
            text_encoder=vectors.encoder_of(catalog),
            visual_encoder=page_vectors.encoder_of(catalog),
            encoders_not_allowed=_not_allowed(catalog, named_encoders),
            pages_without_visual=page_vectors.count_unseen(catalog),
            collections_behind=state.behind and (state.generation is not None or state.missing > 0),
            collections_missing=state.missing,
            collections_surplus=state.surplus,
            memories=memories,
            memories_without_vectors=unseen,
            sessions=sessions,
            turns=turns,
            items=_count_items(catalog),
            items_without_vectors=count_without_vectors(catalog),
            writing=writing,
            writer_pid=writer,
        )


def size_of(folder: Path) -> int:
    """Bytes of all files below; those that vanish meanwhile count nothing."""
    total = 0
    for current, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(current, name)).st_size  # noqa: PTH118  a hot loop over bare names
            except OSError:
                continue
    return total


def _not_allowed(catalog: Reader, named: Sequence[str]) -> tuple[str, ...]:
    from research.encoders.allowed import check_allowed
    from research.errors import EncoderNotAllowed

    found = []
    for name in (vectors.encoder_of(catalog), page_vectors.encoder_of(catalog)):
        try:
            check_allowed(name, named)
        except EncoderNotAllowed:
            found.append(name.removeprefix(f"{page_vectors.REGIONS}:"))
    return tuple(dict.fromkeys(found))


def _count_items(catalog: Reader) -> dict[str, int]:
    """Kind → how many. Of experiences themselves, and not of the axes that each is found by; also of open ones."""
    experiences = count_parents(catalog, "experience")
    return count_items(catalog) | ({"experience": experiences} if experiences else {})
