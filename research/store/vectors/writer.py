"""Filling the Chroma collections from the catalog, and the checks of them for `ctx doctor`: what they hold, and whether
this Chroma can be asked the short way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.store.catalog import chunk_vectors, page_vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.chunk_vectors import dim_of, revision_of
from research.store.catalog.ledger import STAGE_VECTORS
from research.store.catalog.pages import StoredPage, pages_of
from research.store.catalog.reader import Reader
from research.store.vectors.chroma import (
    SYNC_THRESHOLD,
    ClientReader,
    ClientWriter,
    CoreReader,
    CoreWriter,
    Metadata,
    VectorReader,
    Writer,
    keys_through_core,
    open_client,
)
from research.store.vectors.generations import (
    SEEN_PAGES,
    TEXT,
    VISUAL,
    Generation,
    chunk_key,
    current,
    is_damaged,
    page_key,
    publish_draft,
    start_draft,
    state_of,
    visual_pages,
)
from research.store.vectors.process import failure_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Every batch rewrites the neighbour files: large ones keep that rare. Chroma (1.5.9) takes at most about 5,400.
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
    return build_with_fallback(catalog, state.generation)


def rebuild(catalog: Catalog) -> Generation:
    """Publish collections made from the catalog alone, whatever there was before. The caller holds the write lock."""
    return build_with_fallback(catalog, None)


def text_keys(catalog: Catalog) -> set[str]:
    """The records that the text collection should have: one a chunk with a vector."""
    rows = catalog.connection.execute(
        "SELECT doc_id, page, ordinal FROM vectors JOIN chunks USING (chunk_id) JOIN pages USING (page_id)"
    )
    return {chunk_key(*row) for row in rows}


def visual_keys(catalog: Catalog) -> set[str]:
    """The records that the visual collection should have: one a page, with the visual encoder's first-stage vector.

    With `regions` that is the mean of the page's chunk vectors, for every page of a document whose chunks are all
    embedded; with a visual model it is what the model's vectors share, for every page the model has seen.
    """
    source = visual_pages(catalog)
    rows = catalog.connection.execute(f"SELECT doc_id, page {source}") if source else ()
    return {page_key(*row) for row in rows}


def build_with_fallback(catalog: Catalog, base: Generation | None) -> Generation:
    """Publish a generation, through the core, or if that is of another make through the public client, or if `base`
    has damage that no check saw from the catalog alone."""
    ways: list[tuple[Callable[[Path], Writer], Generation | None]] = [(CoreWriter, base), (ClientWriter, base)]
    for open_writer, start in ways if base else ways[:1]:
        try:
            return _build(catalog, start, open_writer)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001, S112  a panic of the core is no Exception; the last way says what is wrong
            continue
    return _build(catalog, None, ClientWriter)


def _build(catalog: Catalog, base: Generation | None, open_writer: Callable[[Path], Writer]) -> Generation:
    """Publish a generation: `base` and what came after it, or everything."""
    folder = catalog.paths.chroma
    through_seq, revision = chunk_vectors.last_sequence(catalog), revision_of(catalog)
    after = base.through_seq if base else 0
    visual_through_seq = page_vectors.last_sequence(catalog)
    visual_after = base.visual_through_seq if base else 0
    draft = start_draft(folder, base)
    writer = open_writer(draft)
    try:
        text = _fill(writer, TEXT, text_keys(catalog), lambda _: _text_records(catalog, after))
        visual = _fill(
            writer,
            VISUAL,
            visual_keys(catalog),
            lambda lacking: _visual_records(catalog, after, visual_after, lacking),
        )
    finally:
        writer.close()
    catalog_id = catalog.meta("catalog_id")
    contents = Generation(draft, 0, catalog_id, through_seq, text, visual, visual_through_seq, revision)
    return publish_draft(folder, draft, contents)


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
    # So that deletions and a last single record reach the disk too (Chroma 1.5.9, see SYNC_THRESHOLD).
    writer.rewrite(name, SYNC_THRESHOLD + 1)
    return writer.count(name)


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
    """Of documents with new vectors, of what a visual model saw after a sequence number, and of documents with records
    that are `lacking`."""
    source = visual_pages(catalog)
    by_model = source == SEEN_PAGES
    doc_ids = _touched(catalog, after, wordless=True) if source else []
    # A document may have got its last vector before the base was published and been struck off the ledger after.
    doc_ids += [key.rsplit(":", 1)[0] for key in lacking]
    if by_model:
        rows = catalog.connection.execute(f"SELECT DISTINCT doc_id {SEEN_PAGES} AND seq > ?", (visual_after,))
        doc_ids += [str(row[0]) for row in rows]
    first_stage = _seen if by_model else _means
    for page, vector in first_stage(catalog, list(dict.fromkeys(doc_ids))):
        yield _Record(page_key(page.doc_id, page.page), vector, page.metadata())


def _means(catalog: Catalog, doc_ids: list[str]) -> Iterator[tuple[StoredPage, NDArray[np.float32]]]:
    rows = catalog.connection.execute("SELECT doc_id FROM ledger WHERE stage = ?", (STAGE_VECTORS,))
    unfinished = {row[0] for row in rows}
    for doc_id in doc_ids:
        if doc_id not in unfinished:
            pages = list(pages_of(catalog, [doc_id]))
            means = chunk_vectors.page_means(catalog, [page.page_id for page in pages])
            yield from ((page, means[page.page_id]) for page in pages)


def _seen(catalog: Catalog, doc_ids: list[str]) -> Iterator[tuple[StoredPage, NDArray[np.float32]]]:
    import numpy as np

    for doc_id in doc_ids:
        rows = catalog.connection.execute(f"SELECT page_id, first {SEEN_PAGES} AND doc_id = ?", (doc_id,))
        first = {int(row[0]): np.frombuffer(row[1], dtype="<f2").astype(np.float32) for row in rows}
        yield from ((page, first[page.page_id]) for page in pages_of(catalog, [doc_id]) if page.page_id in first)


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


_REBUILD = "build them again with: ctx reindex"
_OTHER_MAKE = "install the chromadb that ctx names: pip install --force-reinstall 'chromadb>=1.5.9,<1.6'"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and what to do about it; nothing if all is well."""

    message: str
    remedy: str = ""


def holds_everything(catalog: Catalog) -> bool:
    """Open the published collections and compare them with the catalog, record by record."""
    state = state_of(catalog)
    if state.generation is None or state.behind or is_damaged(state.generation):
        return False
    return _published_keys(state.generation.path) == [text_keys(catalog), visual_keys(catalog)]


def _published_keys(path: Path) -> list[set[str]]:
    """The keys of each collection, from the core; where it does not do, from the client, which takes a second more."""
    names = (TEXT, VISUAL)
    try:
        return [keys_through_core(path, name) for name in names]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  a panic of the core is no Exception
        client = open_client(path)
        try:
            return [set(client.get_collection(name, embedding_function=None).get(include=[])["ids"]) for name in names]
        finally:
            client.close()


def collections_make(reader: Reader) -> list[Finding]:
    """What keeps the Chroma that is installed from being asked the short way, and what a question falls back to."""
    failed = failure_of(reader.paths.chroma)
    message = f"a question could not bring the collections up to date: {failed}"
    findings = [Finding(message, _REBUILD)] if failed else []
    generation = current(reader)
    if generation is None or not generation.text_records:
        return findings
    core = _problem_of(CoreReader, generation, dim_of(reader))
    if not core:
        return findings
    client = _problem_of(ClientReader, generation, dim_of(reader))
    if not client:
        message = f"Chroma's core cannot be asked ({core}); questions go through its public client, a second slower"
        return [*findings, Finding(message, _OTHER_MAKE)]
    message = f"the collections cannot be read ({core}; {client}); questions compare every vector of the catalog"
    return [*findings, Finding(message, f"{_REBUILD}; or {_OTHER_MAKE}")]


def _problem_of(kind: type[CoreReader] | type[ClientReader], generation: Generation, dim: int) -> str:
    try:
        reader: VectorReader = kind(generation.path)
        reader.nearest(TEXT, [0.0] * dim, 1)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic of the core is no Exception
        return f"{type(error).__name__}: {error}"
    return ""
