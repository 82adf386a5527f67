"""The nearest pages to a question's vector.

`VectorIndex` asks the newest published generation of the collections, compares what was written after it one by one,
and compares every vector of the catalog where Chroma cannot be read. It answers from the revision of the catalog that
the given reader sees, and may be asked from many threads.


ChromaClient: the open index. The one object a search and a context builder share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from research.errors import IndexUnusableError
from research.store import generations
from research.store.catalog import Catalog
from research.store.generations import MANIFEST, TEXT, VISUAL, Collections, Generation, open_client
from research.store.pages import batched
from research.store.paths import IndexPaths
from research.store.reader import Reader, unpack_vectors
from research.store.vectors import cosines

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection
    from numpy.typing import NDArray


ServedBy = Literal["core", "exact"]

# Records asked for, for each page wanted: chunks of one page stand together. More makes each query dearer.
_RECORDS_A_PAGE = {TEXT: 2.5, VISUAL: 1.0}
_BLOCK = 4096  # vectors compared at once: a few megabytes
_MOST_SKIPPED = 63  # questions between two tries of collections that keep failing

_AFTER = {
    TEXT: "SELECT seq, page_id, vector FROM vectors JOIN chunks USING (chunk_id) WHERE seq > ? ORDER BY seq LIMIT ?",
    VISUAL: "SELECT seq, page_id, first FROM page_vectors WHERE seq > ? AND length(first) > 0 ORDER BY seq LIMIT ?",
}


@dataclass(frozen=True, slots=True)
class Nearest:
    """Pages and their cosine with the question, best first; by whom the published ones were found, and what kept a
    quicker reader from it (empty if nothing did)."""

    pairs: list[tuple[int, float]]
    served_by: ServedBy
    problem: str = ""


def exact_scan(reader: Reader, vector: NDArray[np.float32], count: int, *, collection: str = TEXT) -> Nearest:
    """The nearest pages by all vectors of the catalog, a block at a time."""
    return Nearest(_best_pages(_compared(reader, collection, 0, vector), count), "exact")


class VectorIndex:
    """Follows the generations of one index folder by itself. A generation's files are opened once, with the first
    question that needs them, and closed when a newer one is there and the last question that uses them has ended."""

    def __init__(self, paths: IndexPaths) -> None:
        self._folder = paths.chroma
        self._lock = threading.Lock()
        self._seen: object = None
        self._opened: _OpenGeneration | None = None

    def nearest(self, reader: Reader, vector: NDArray[np.float32], count: int, *, collection: str = TEXT) -> Nearest:
        """The `count` pages with the records nearest to a unit vector (dim,), each by its best record."""
        if reader.masks.view:  # what is not seen is not compared
            return exact_scan(reader, vector, count, collection=collection)
        published = Nearest([], "exact")
        through = 0
        try:
            opened = self._current(reader)
        except OSError as error:
            published = Nearest([], "exact", f"the collections cannot be looked at ({error})")
        else:
            if opened is not None and opened.generation.records_in(collection):
                published = opened.nearest(reader, vector.tolist(), count, collection)
                through = opened.generation.through(collection) if published.served_by != "exact" else 0
        later = _compared(reader, collection, through, vector)
        return Nearest(_best_pages([*published.pairs, *later], count), published.served_by, published.problem)

    def generation(self, reader: Reader) -> Generation | None:
        """The published generation that this reader's questions are answered from."""
        opened = self._current(reader)
        return None if opened is None else opened.generation

    def sync_if_stale(self, reader: Reader) -> bool:
        """Publish what is missing, if that is worth it and can be done now. True if it was done."""
        try:
            state = generations.compare(reader, self.generation(reader))
        except OSError:
            return False
        if not state.due or (state.generation is None and state.missing == 0):
            return False
        from research.store.publish import publish_if_possible

        return publish_if_possible(reader.paths, state)

    def refresh(self) -> None:
        """Open everything anew with the next question."""
        with self._lock:
            self._seen = self._opened = None

    def _current(self, reader: Reader) -> _OpenGeneration | None:
        catalog_id, last = reader.meta("catalog_id"), reader.chunks.last_sequence()
        with self._lock:
            newest_name, manifest = _look(self._folder)
            if self._seen != (catalog_id, newest_name, manifest):
                newest = generations.newest(self._folder, catalog_id)
                if newest is None or self._opened is None or self._opened.generation != newest:
                    self._opened = None if newest is None else _OpenGeneration(newest)
                # Where the newest on the disk is not usable, the next question looks again.
                known = newest is not None and newest.path.name == newest_name
                self._seen = (catalog_id, newest_name, manifest) if known else None
            opened = self._opened
        if opened is None or opened.generation.through_seq <= last:
            return opened
        # Published after this reader's moment, or the catalog was set back: the generation before may fit.
        older = generations.newest(self._folder, catalog_id, through=last)
        return None if older is None else _OpenGeneration(older)


class RetriedCollections:
    """Collections that open with the first question, and are tried again after a failure: with the next question, then
    ever more rarely."""

    def __init__(self, open_collections: Callable[[], Collections]) -> None:
        self.problem = ""
        self._open = open_collections
        self._lock = threading.Lock()
        self._opened: Collections | None = None
        self._failures = 0
        self._skip = 0

    def nearest(self, collection: str, vector: list[float], count: int) -> list[tuple[str, float]] | None:
        """None if it failed now, or failed before and is not tried this time; `problem` says why."""
        try:
            with self._lock:
                if self._skip > 0:
                    self._skip -= 1
                    return None
                self._opened = opened = self._opened or self._open()
            found = opened.nearest(collection, vector, count)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  a panic of Chroma's core is no Exception
            with self._lock:
                self.problem = f"{type(error).__name__}: {error}"
                self._opened = None
                self._skip = min(_MOST_SKIPPED, 2 ** min(self._failures, 10) - 1)
                self._failures += 1
            return None
        self._failures = 0
        return found


class _OpenGeneration:
    """A generation and its open collections. They close when nobody refers to them any more."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._collections = RetriedCollections(lambda: Collections(generation.path))
        self._checked = False

    def nearest(self, reader: Reader, vector: list[float], count: int, collection: str) -> Nearest:
        """The published pages; "exact" and none if the collections cannot be asked."""
        records = self.generation.records_in(collection)
        asked = min(records, max(1, int(count * _RECORDS_A_PAGE[collection])))
        while (found := self._collections.nearest(collection, vector, asked)) is not None:
            pages = _pages_of(reader, collection, found, self.generation)
            if len(pages) >= count or asked >= records:
                return Nearest(pages, "core")
            asked = min(records, asked * 2)
        self._invalidate_if_damaged()
        why = f"the collections cannot be read ({self._collections.problem}); every vector was compared"
        return Nearest([], "exact", why)

    def _invalidate_if_damaged(self) -> None:
        """What others may read is only taken from them if it is surely broken: a reader can fail for reasons of its
        own, such as too many open files. Compared once, it is every byte."""
        if not self._checked and generations.is_damaged(self.generation):
            generations.invalidate(self.generation)
        self._checked = True


def _look(folder: Path) -> tuple[str, tuple[int, ...]]:
    """What changes when a generation is published, invalidated or replaced: the newest one's name, and its manifest's
    identity. A listing and a stat, because every question pays for it."""
    try:
        newest = max((name for name in os.listdir(folder) if name.startswith("gen-")), default="")  # noqa: PTH208
        found = os.stat(folder / newest / MANIFEST)  # noqa: PTH116
    except OSError:
        return "", ()
    return newest, (found.st_ino, found.st_mtime_ns, found.st_size)


def _pages_of(
    reader: Reader, collection: str, found: Sequence[tuple[str, float]], generation: Generation
) -> list[tuple[int, float]]:
    """The pages of records, best first, that this reader still has as they were published."""
    if collection == VISUAL:
        pages = _page_ids(reader, [key for key, _ in found], generation.visual_through_seq)
        return [(pages[key], similarity) for key, similarity in found if key in pages]
    best: dict[str, tuple[str, float]] = {}
    others: dict[str, list[tuple[str, float]]] = {}
    for record in found:
        page = record[0].rpartition(":")[0]
        if best.setdefault(page, record) is not record:
            others.setdefault(page, []).append(record)
    through = generation.through_seq
    current = _page_ids_of_chunks(reader, [key for key, _ in best.values()], through)
    if len(current) < len(best):
        # Of a page whose best record is outdated another may not be; that is rare.
        outdated = [page for page, (key, _) in best.items() if key not in current]
        current |= _page_ids_of_chunks(reader, [key for page in outdated for key, _ in others.get(page, ())], through)
        left = (next((r for r in others.get(page, ()) if r[0] in current), None) for page in outdated)
        kept = [record for record in best.values() if record[0] in current]
        return sorted(((current[key], score) for key, score in (*kept, *filter(None, left))), key=lambda p: -p[1])
    return [(current[key], similarity) for key, similarity in best.values()]


def _page_ids_of_chunks(reader: Reader, keys: Sequence[str], through: int) -> dict[str, int]:
    """Record → page_id of those that are current, remembered for as long as nobody writes."""
    known = reader.count_cache()
    new = [key for key in keys if (key, through) not in known]
    if new:
        pages = reader.chunks.page_ids(new, through_seq=through)
        known.update(((key, through), pages.get(key, 0)) for key in new)
    return {key: page_id for key in keys if (page_id := known[key, through])}


def _page_ids(reader: Reader, keys: Sequence[str], through: int) -> dict[str, int]:
    """ "doc_id:page" → page_id, of pages whose visual vectors were written by a sequence number and are still there."""
    found: dict[str, int] = {}
    for part in batched(keys):
        pairs = [key.rsplit(":", 1) for key in part]
        rows = reader.execute(
            "SELECT doc_id, page, page_id FROM pages JOIN page_vectors USING (page_id)"
            f" WHERE (doc_id, page) IN (VALUES {','.join(['(?, ?)'] * len(pairs))}) AND seq <= ?",
            (*(value for doc_id, page in pairs for value in (doc_id, int(page))), through),
        )
        found.update((f"{doc_id}:{page}", int(page_id)) for doc_id, page, page_id in rows)
    return found


def _compared(reader: Reader, collection: str, after: int, vector: NDArray[np.float32]) -> Iterator[tuple[int, float]]:
    """page_id and cosine of every vector of the catalog that was written after a sequence number."""
    import numpy as np

    size = 2 * len(vector)
    while rows := reader.execute(_AFTER[collection], (after, _BLOCK)).fetchall():
        fitting = [(int(page_id), blob) for _, page_id, blob in rows if len(blob) == size]
        if fitting:
            matrix = unpack_vectors([blob for _, blob in fitting]).astype(np.float32)
            similarities = cosines(matrix, vector).tolist()
            yield from zip((page_id for page_id, _ in fitting), similarities, strict=True)
        if len(rows) < _BLOCK:
            return
        after = int(rows[-1][0])


def _best_pages(scored: Iterable[tuple[int, float]], count: int) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for page_id, similarity in scored:
        if similarity > best.get(page_id, -2.0):
            best[page_id] = similarity
    ranked = sorted(best.items(), key=lambda pair: -pair[1])[:count]
    return [(page_id, min(1.0, similarity)) for page_id, similarity in ranked]  # rounding may go beyond


class ChromaClient:
    """An index opened for reading, given by its folder. Nothing heavy loads before it is used."""

    def __init__(self, index: str | Path) -> None:
        self.paths = IndexPaths(Path(index))
        self.catalog = Catalog(self.paths)
        self.vectors = VectorIndex(self.paths)
        self._lock = threading.Lock()
        self._clients: list[tuple[Generation, Client]] = []  # the newest generation's last

    @property
    def text_collection(self) -> Collection:
        """Chroma's own collection object: one record a chunk."""
        return self._public().get_collection(TEXT, embedding_function=None)

    @property
    def visual_collection(self) -> Collection:
        """Chroma's own collection object: one record a page, with all metadata."""
        return self._public().get_collection(VISUAL, embedding_function=None)

    async def get_document_markdown(self, doc_id: str) -> str | None:
        """A document's whole markdown, pages joined by form feeds; None if it is unknown."""

        found = self.catalog.names.current_ids([doc_id])
        pages = self.catalog.pages.document_markdown(found[0]) if found else []
        return "\f".join(markdown for _, markdown in pages) if pages else None

    def generation(self) -> Generation | None:
        """The newest published collections."""
        return self.vectors.generation(self.catalog)

    def refresh(self) -> None:
        """Close what is open of the collections; the next question opens the newest."""
        self.vectors.refresh()
        with self._lock:
            self._close_clients(keep=0)

    def close(self) -> None:
        self.refresh()
        self.catalog.close()

    def __enter__(self) -> ChromaClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _public(self) -> Client:
        generation = self.generation()
        if generation is None:
            raise IndexUnusableError("the collections are not built", hint="build them with: ctx doctor --reindex")
        with self._lock:
            if not self._clients or self._clients[-1][0] != generation:
                self._clients.append((generation, open_client(generation.path)))
                # A collection that the caller holds lives one publication longer, as its files do.
                self._close_clients(keep=2)
            return self._clients[-1][1]

    def _close_clients(self, keep: int) -> None:
        while len(self._clients) > keep:
            self._clients.pop(0)[1].close()
