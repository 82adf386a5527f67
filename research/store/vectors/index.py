"""The nearest pages to a question's vector: `VectorIndex`, and the two that there are.

`ExactScan` compares every vector of the catalog. `ChromaIndex` asks the newest published generation of the collections,
compares what was written after it one by one, and scans where Chroma cannot be read. Both answer from the revision of
the catalog that the given reader sees, and may be asked from many threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from research.store.catalog import vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import slices
from research.store.files.paths import IndexPaths
from research.store.vectors import generations
from research.store.vectors.generations import Generation
from research.store.vectors.reader import ClientReader, CoreReader, VectorReader
from research.store.vectors.sync_state import TEXT, VISUAL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ServedBy = Literal["core", "client", "exact"]

# Records asked for, for each page wanted: chunks of one page stand together. More makes each query dearer.
_RECORDS_A_PAGE = {TEXT: 2.5, VISUAL: 1.0}
_BLOCK = 4096  # vectors compared at once: a few megabytes
_MOST_SKIPPED = 63  # questions between two tries of a reader that keeps failing

_AFTER = {
    TEXT: "SELECT page_id, vector, seq FROM vectors JOIN chunks USING (chunk_id) WHERE seq > ? ORDER BY seq LIMIT ?",
    VISUAL: "SELECT page_id, first, seq FROM page_vectors WHERE seq > ? AND length(first) > 0 ORDER BY seq LIMIT ?",
}


@dataclass(frozen=True, slots=True)
class Nearest:
    """Pages and their cosine with the question, best first; by whom the published ones were found, and what kept a
    quicker reader from it (empty if nothing did)."""

    pairs: list[tuple[int, float]]
    served_by: ServedBy
    problem: str = ""


class VectorIndex(Protocol):
    def nearest(self, reader: Catalog, vector: NDArray[np.float32], count: int, *, collection: str = TEXT) -> Nearest:
        """The `count` pages with the records nearest to a unit vector (dim,), each by its best record."""
        ...

    def refresh(self) -> None:
        """Open everything anew with the next question."""
        ...

    def close(self) -> None: ...


class ExactScan:
    """Compares all vectors of the catalog, a block at a time. Needs nothing but the catalog."""

    def nearest(self, reader: Catalog, vector: NDArray[np.float32], count: int, *, collection: str = TEXT) -> Nearest:
        return Nearest(_best_pages(_compared(reader, collection, 0, vector), count), "exact")

    def refresh(self) -> None: ...

    def close(self) -> None: ...


class ChromaIndex:
    """Follows the generations of one index folder by itself. A generation's files are opened once, with the first
    question that needs them, and closed when a newer one is there and the last question that uses them has ended."""

    def __init__(self, paths: IndexPaths) -> None:
        self._folder = paths.chroma
        self._lock = threading.Lock()
        self._seen: object = None
        self._opened: _OpenGeneration | None = None

    def nearest(self, reader: Catalog, vector: NDArray[np.float32], count: int, *, collection: str = TEXT) -> Nearest:
        opened = self._current(reader)
        found: dict[int, float] = {}
        served_by: ServedBy = "exact"
        through, problem = 0, ""
        if opened is not None and (records := opened.generation.records_in(collection)):
            answer = opened.nearest_pages(reader, collection, vector.tolist(), count, records)
            problem = answer.problem
            if answer.served_by != "exact":
                found, served_by = dict(answer.pairs), answer.served_by
                through = opened.generation.through(collection)
        later = _compared(reader, collection, through, vector)
        return Nearest(_best_pages([*found.items(), *later], count), served_by, problem)

    def generation(self, reader: Catalog) -> Generation | None:
        """The published generation that this reader's questions are answered from."""
        opened = self._current(reader)
        return None if opened is None else opened.generation

    def refresh(self) -> None:
        with self._lock:
            self._seen = self._opened = None

    def close(self) -> None:
        self.refresh()

    def _current(self, reader: Catalog) -> _OpenGeneration | None:
        catalog_id, last = reader.meta("catalog_id"), vectors.last_sequence(reader)
        with self._lock:
            seen = (catalog_id, _look(self._folder))
            if self._seen != seen:
                self._follow(seen, catalog_id)
            opened = self._opened
        if opened is None or opened.generation.through_seq <= last:
            return opened
        # Published after this reader's snapshot was taken, or the catalog was set back: an older one may fit.
        older = generations.newest(self._folder, catalog_id, through=last)
        return None if older is None else _OpenGeneration(older)

    def _follow(self, seen: tuple[str, Any], catalog_id: str) -> None:
        newest = generations.newest(self._folder, catalog_id)
        if newest is None or self._opened is None or self._opened.generation != newest:
            self._opened = None if newest is None else _OpenGeneration(newest)
        # Where the newest on the disk is not usable, the next question looks again: it may only have been unlucky.
        self._seen = seen if newest is not None and newest.path.name == seen[1][0] else None


class _OpenGeneration:
    """A generation with the readers open on it. They close when nobody refers to them any more."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._core = _Retried(lambda: CoreReader(generation.path))
        self._client = _Retried(lambda: ClientReader(generation.path))

    def nearest_pages(self, reader: Catalog, collection: str, vector: list[float], count: int, records: int) -> Nearest:
        """ "exact" if neither reader could be asked."""
        asked = min(records, max(1, int(count * _RECORDS_A_PAGE[collection])))
        while True:
            found, served_by, problem = self._query(collection, vector, asked)
            pages = _pages_of(reader, collection, found, self.generation)
            if len(pages) >= count or asked >= records or served_by == "exact":
                return Nearest(pages, served_by, problem)
            asked = min(records, asked * 2)

    def _query(self, collection: str, vector: list[float], count: int) -> tuple[list[tuple[str, float]], ServedBy, str]:
        problem = ""
        for name, way in (("core", self._core), ("client", self._client)):
            found = way.nearest(collection, vector, count)
            if found is not None:
                return found, "core" if name == "core" else "client", problem
            problem = problem or way.problem
        return [], "exact", problem


class _Retried:
    """A reader that opens with the first question, and is tried again after a failure: with the next question, then
    ever more rarely."""

    def __init__(self, open_reader: Callable[[], VectorReader]) -> None:
        self.problem = ""
        self._open = open_reader
        self._lock = threading.Lock()
        self._reader: VectorReader | None = None
        self._failures = 0
        self._skip = 0

    def nearest(self, collection: str, vector: list[float], count: int) -> list[tuple[str, float]] | None:
        """None if it failed now, or failed before and is not tried this time; `problem` says why."""
        try:
            reader = self._opened()
            if reader is None:
                return None
            found = [(n.key, n.similarity) for n in reader.nearest(collection, vector, count)]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  a panic of Chroma's core is no Exception
            self._failed(f"{type(error).__name__}: {error}")
            return None
        self._failures = 0
        return found

    def _opened(self) -> VectorReader | None:
        with self._lock:
            if self._skip > 0:
                self._skip -= 1
                return None
            if self._reader is None:
                self._reader = self._open()
            return self._reader

    def _failed(self, problem: str) -> None:
        with self._lock:
            self.problem = problem
            self._reader = None
            self._skip = min(_MOST_SKIPPED, 2**self._failures - 1)
            self._failures += 1


def _look(folder: Path) -> tuple[str, tuple[int, ...]]:
    """What changes when a generation is published, invalidated or replaced: the newest one's name, and its manifest's
    identity. A listing and a stat, because every question pays for it."""
    try:
        newest = max((name for name in os.listdir(folder) if name.startswith("gen-")), default="")  # noqa: PTH208
        found = os.stat(folder / newest / "generation.json")  # noqa: PTH116
    except OSError:
        return "", ()
    return newest, (found.st_ino, found.st_mtime_ns, found.st_size)


def _pages_of(
    reader: Catalog, collection: str, found: Sequence[tuple[str, float]], generation: Generation
) -> list[tuple[int, float]]:
    """The pages of records, best first, that this reader still has as they were published."""
    if collection == VISUAL:
        pages = _page_ids(reader, [key for key, _ in found], generation.visual_through_seq)
        return [(pages[key], similarity) for key, similarity in found if key in pages]
    by_page: dict[str, list[tuple[str, float]]] = {}
    for record in found:
        by_page.setdefault(record[0].rpartition(":")[0], []).append(record)
    best = [records[0] for records in by_page.values()]
    current = vectors.page_ids_of_chunks(reader, [key for key, _ in best], upto=generation.through_seq)
    # A page whose best record is outdated may have others that are not; that is rare.
    rest = [key for records in by_page.values() if records[0][0] not in current for key, _ in records[1:]]
    current |= vectors.page_ids_of_chunks(reader, rest, upto=generation.through_seq) if rest else {}
    candidates = (next(((k, s) for k, s in records if k in current), None) for records in by_page.values())
    return sorted(((current[k], s) for k, s in filter(None, candidates)), key=lambda pair: -pair[1])


def _page_ids(reader: Catalog, keys: Sequence[str], through: int) -> dict[str, int]:
    """ "doc_id:page" → page_id, of pages whose visual vectors were written by a sequence number and are still there."""
    found: dict[str, int] = {}
    for part in slices(keys):
        pairs = [key.rsplit(":", 1) for key in part]
        rows = reader.connection.execute(
            "SELECT doc_id, page, page_id FROM pages JOIN page_vectors USING (page_id)"
            f" WHERE (doc_id, page) IN (VALUES {','.join(['(?, ?)'] * len(pairs))}) AND seq <= ?",
            (*(value for doc_id, page in pairs for value in (doc_id, int(page))), through),
        )
        found.update((f"{doc_id}:{page}", int(page_id)) for doc_id, page, page_id in rows)
    return found


def _compared(reader: Catalog, collection: str, after: int, vector: NDArray[np.float32]) -> Iterator[tuple[int, float]]:
    """page_id and cosine of every vector of the catalog that was written after a sequence number."""
    import numpy as np

    size = 2 * len(vector)
    while block := reader.connection.execute(_AFTER[collection], (after, _BLOCK)).fetchall():
        after = int(block[-1][2])
        fitting = [(int(page_id), blob) for page_id, blob, _ in block if len(blob) == size]
        matrix = np.frombuffer(b"".join(blob for _, blob in fitting), dtype="<f2").reshape(len(fitting), -1)
        if fitting:
            similarities = vectors.cosines(matrix.astype(np.float32), vector).tolist()
            yield from zip((page_id for page_id, _ in fitting), similarities, strict=True)
        if len(block) < _BLOCK:
            return


def _best_pages(scored: Iterable[tuple[int, float]], count: int) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for page_id, similarity in scored:
        if similarity > best.get(page_id, -2.0):
            best[page_id] = similarity
    ranked = sorted(best.items(), key=lambda pair: -pair[1])[:count]
    return [(page_id, min(1.0, similarity)) for page_id, similarity in ranked]  # rounding may go beyond
