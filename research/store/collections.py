"""Filling the Chroma collections from the catalog, through Chroma's public client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from research.store import counts, generations, page_vectors, vectors, visual_records
from research.store.catalog import Catalog
from research.store.generations import Generation
from research.store.pages import pages_of
from research.store.revision import revision_of

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

TEXT = "text"
VISUAL = "visual"
_NAMES = (TEXT, VISUAL)

# Chroma writes its neighbour files when an upsert leaves this many records unwritten; what it has not written is
# replayed by every process that opens them. Two is the least it takes, so each batch is on disk when it returns.
_SYNC_THRESHOLD = 2
# Every batch rewrites the neighbour files: large ones keep that rare. Chroma takes at most about 5,400.
_BATCH = 4000


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


@dataclass(frozen=True, slots=True)
class _Record:
    key: str
    vector: Any  # (dim,) float32
    metadata: dict[str, str | int | bool]


def open_client(path: Path) -> Client:
    """Chroma's public client on a folder: no telemetry, and no settings from a stray .env file."""
    import chromadb
    from chromadb.config import Settings

    settings = Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]
    # Declared as the interface, which lacks `close`; the object is the client.
    return cast("Client", chromadb.PersistentClient(str(path), settings=settings))


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


def publish(catalog: Catalog) -> Generation:
    """Bring the collections up to the catalog and publish them. The caller holds the write lock."""
    state = state_of(catalog)
    if state.generation is not None and not state.behind:
        return state.generation
    try:
        return _build(catalog, state.generation)
    except Exception:
        if state.generation is None:
            raise
        # Damage that no check saw before: the catalog has everything, so nothing is lost by starting over.
        return _build(catalog, None)


def rebuild(catalog: Catalog) -> Generation:
    """Publish collections made from the catalog alone, whatever there was before. The caller holds the write lock."""
    return _build(catalog, None)


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


def chunk_key(doc_id: str, page: int, ordinal: int) -> str:
    return f"{doc_id}:{page}:{ordinal}"


def _build(catalog: Catalog, base: Generation | None) -> Generation:
    """Publish a generation: `base` and what came after it, or everything."""
    folder = catalog.paths.chroma
    upto, revision = vectors.last_sequence(catalog), revision_of(catalog)
    after = base.upto if base else 0
    visual_upto = page_vectors.last_sequence(catalog)
    visual_after = base.visual_upto if base else 0
    draft = generations.start_draft(folder, base)
    client = open_client(draft)
    try:
        text = _fill(_collection(client, TEXT), _text_keys(catalog), lambda _: _text_records(catalog, after))
        visual = _fill(
            _collection(client, VISUAL),
            visual_records.keys(catalog),
            lambda lacking: _visual_records(catalog, after, visual_after, lacking),
        )
    finally:
        client.close()
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


def _collection(client: Client, name: str) -> Collection:
    # Inner product, not cosine: a page without text has a zero vector, which cosine cannot take.
    return client.get_or_create_collection(
        name,
        embedding_function=None,
        configuration={
            "hnsw": {
                "space": "ip",
                "ef_search": 400,
                "ef_construction": 200,
                "sync_threshold": _SYNC_THRESHOLD,
            }
        },
    )


def _fill(collection: Collection, wanted: set[str], records: Callable[[set[str]], Iterator[_Record]]) -> int:
    """Remove what the catalog no longer has, write what is new; returns how many records there are.

    `records` is told the keys that are lacking.
    """
    present = set(collection.get(include=[])["ids"])
    for part in _batches(iter(present - wanted), _BATCH):
        collection.delete(ids=part)
    for batch in _batches(records(wanted - present), _BATCH):
        _upsert(collection, batch)
    _write_out(collection)
    return collection.count()


def _write_out(collection: Collection) -> None:
    """Write a few records once more, so that deletions and a last single record reach the disk too."""
    few = collection.get(limit=_SYNC_THRESHOLD + 1, include=["embeddings", "metadatas"])
    if few["ids"]:
        collection.upsert(ids=few["ids"], embeddings=few["embeddings"], metadatas=few["metadatas"])


def _upsert(collection: Collection, batch: Sequence[_Record]) -> None:
    collection.upsert(
        ids=[record.key for record in batch],
        embeddings=[record.vector for record in batch],
        metadatas=[dict(record.metadata) for record in batch],
    )


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
