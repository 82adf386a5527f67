"""Filling the Chroma collections from the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from research.store.catalog import page_vectors, vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import pages_of
from research.store.catalog.revision import revision_of
from research.store.vectors import generations, visual_records
from research.store.vectors.chroma import SYNC_THRESHOLD, ClientWriter, CoreWriter, Metadata, Writer, open_client
from research.store.vectors.generations import Generation
from research.store.vectors.sync_state import TEXT, VISUAL, chunk_key, state_of

_NAMES = (TEXT, VISUAL)
# Every batch rewrites the neighbour files: large ones keep that rare. Chroma takes at most about 5,400.
_BATCH = 4000


@dataclass(frozen=True, slots=True)
class _Record:
    key: str
    vector: Any  # (dim,) float32
    metadata: Metadata


def publish(catalog: Catalog) -> Generation:
    """Bring the collections up to the catalog and publish them. The caller holds the write lock."""
    state = state_of(catalog)
    if state.generation is not None and not state.behind:
        return state.generation
    return _build_surely(catalog, state.generation)


def rebuild(catalog: Catalog) -> Generation:
    """Publish collections made from the catalog alone, whatever there was before. The caller holds the write lock."""
    return _build_surely(catalog, None)


def holds_everything(catalog: Catalog) -> bool:
    """Open the published collections and compare them with the catalog, record by record."""
    state = state_of(catalog)
    if state.generation is None or state.behind or not generations.intact(state.generation):
        return False
    client = open_client(state.generation.path)
    try:
        found = [set(client.get_collection(name, embedding_function=None).get(include=[])["ids"]) for name in _NAMES]
    finally:
        client.close()
    return found == [_text_keys(catalog), visual_records.keys(catalog)]


def _build_surely(catalog: Catalog, base: Generation | None) -> Generation:
    try:
        return _build(catalog, base, CoreWriter)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  a panic of the core is no Exception
        # Damage that no check saw before, or a core of another make. The catalog has everything: start over.
        return _build(catalog, None, ClientWriter)


def _build(catalog: Catalog, base: Generation | None, open_writer: Callable[[Path], Writer]) -> Generation:
    """Publish a generation: `base` and what came after it, or everything."""
    folder = catalog.paths.chroma
    upto, revision = vectors.last_sequence(catalog), revision_of(catalog)
    after = base.upto if base else 0
    visual_upto = page_vectors.last_sequence(catalog)
    visual_after = base.visual_upto if base else 0
    draft = generations.start_draft(folder, base)
    writer = open_writer(draft)
    try:
        text = _fill(writer, TEXT, _text_keys(catalog), lambda _: _text_records(catalog, after))
        visual = _fill(
            writer,
            VISUAL,
            visual_records.keys(catalog),
            lambda lacking: _visual_records(catalog, after, visual_after, lacking),
        )
    finally:
        writer.close()
    return generations.publish_draft(
        folder,
        draft,
        catalog_id=catalog.meta("catalog_id"),
        upto=upto,
        text_records=text,
        visual_records=visual,
        visual_upto=visual_upto,
        revision=revision,
    )


def _fill(writer: Writer, name: str, wanted: set[str], records: Callable[[set[str]], Iterator[_Record]]) -> int:
    """Remove what the catalog no longer has, write what is new; returns how many records there are.

    `records` is told the keys that are lacking.
    """
    present = writer.keys(name)
    for part in _batches(iter(present - wanted), _BATCH):
        writer.delete(name, part)
    for batch in _batches(records(wanted - present), _BATCH):
        writer.upsert(
            name,
            [record.key for record in batch],
            [record.vector for record in batch],
            [record.metadata for record in batch],
        )
    writer.rewrite(name, SYNC_THRESHOLD + 1)  # so that deletions and a last single record reach the disk too
    return writer.count(name)


def _text_keys(catalog: Catalog) -> set[str]:
    rows = catalog.connection.execute(
        "SELECT doc_id, page, ordinal FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id)"
    )
    return {chunk_key(*row) for row in rows}


def _text_records(catalog: Catalog, after: int) -> Iterator[_Record]:
    import numpy as np

    for doc_id in _touched(catalog, after):
        pages = {page.page_id: page.metadata() for page in pages_of(catalog, [doc_id])}
        rows = catalog.connection.execute(
            "SELECT page_id, page, ordinal, vector FROM vectors JOIN chunks USING (chunk_id)"
            " JOIN pages USING (page_id) WHERE doc_id = ? AND seq > ?",
            (doc_id, after),
        ).fetchall()
        for page_id, page, ordinal, blob in rows:
            vector = np.frombuffer(blob, dtype="<f2").astype(np.float32)
            yield _Record(chunk_key(doc_id, page, ordinal), vector, pages[page_id])


def _visual_records(catalog: Catalog, after: int, visual_after: int, lacking: set[str]) -> Iterator[_Record]:
    touched = _touched(catalog, after, wordless=True)
    for page, vector in visual_records.records(catalog, touched, visual_after, lacking):
        yield _Record(visual_records.page_key(page.doc_id, page.page), vector, page.metadata())


def _touched(catalog: Catalog, after: int, *, wordless: bool = False) -> list[str]:
    """Documents with vectors written after a sequence number; `wordless`: and those without any chunk."""
    rows = catalog.connection.execute(
        "SELECT DISTINCT doc_id FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id) WHERE seq > ?",
        (after,),
    )
    found = [str(row[0]) for row in rows]
    if wordless:
        empty = catalog.connection.execute(
            "SELECT doc_id FROM documents WHERE doc_id NOT IN (SELECT doc_id FROM chunks JOIN pages USING (page_id))"
        )
        found.extend(str(row[0]) for row in empty)
    return found


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part
