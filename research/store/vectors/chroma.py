"""The two ways into a Chroma folder: its compiled core called directly, and its public client.

The client takes a second to import and adds checks of what ctx knows already. The core is not a public interface:
whoever calls it has the client to turn to when something goes wrong there.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from research.lazy import switch_off

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

TENANT = "default_tenant"
DATABASE = "default_database"

# Chroma (1.5.9) writes its neighbour files when an upsert leaves this many records unwritten; what it has not written
# is replayed by every process that opens them. Two is the least it takes, so each batch is on disk when it returns.
SYNC_THRESHOLD = 2
# Inner product, not cosine: a page without text has a zero vector, which cosine cannot take.
_HNSW = {"space": "ip", "ef_search": 400, "ef_construction": 200, "sync_threshold": SYNC_THRESHOLD}
_CACHED_INDEXES = 4
_MOST_SKIPPED = 63  # questions between two tries of a reader that keeps failing

Metadata = dict[str, str | int | bool]


class Writer(Protocol):
    """Collections being written. They are made when they are first named."""

    def keys(self, collection: str) -> set[str]: ...

    def upsert(
        self, collection: str, keys: Sequence[str], vectors: Sequence[Any], metadatas: Sequence[Metadata]
    ) -> None: ...

    def delete(self, collection: str, keys: Sequence[str]) -> None: ...

    def rewrite(self, collection: str, count: int) -> None:
        """Upsert a few records as they are."""
        ...

    def count(self, collection: str) -> int: ...

    def close(self) -> None: ...


def open_client(path: Path) -> Client:
    """Chroma's public client on a folder: no telemetry, and no settings from a stray .env file."""
    switch_off()
    import chromadb
    from chromadb.config import Settings

    settings = Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]
    # Declared as the interface, which lacks `close`; the object is the client.
    return cast("Client", chromadb.PersistentClient(str(path), settings=settings))


def open_core(path: Path, *, writable: bool = False) -> Any:
    """Chroma's compiled core on a folder; `writable` makes its tables where they are missing."""
    import chromadb_rust_bindings as core

    config = core.SqliteDBConfig(
        hash_type=core.MigrationHash.MD5,
        migration_mode=core.MigrationMode.Apply if writable else core.MigrationMode.Validate,
        url=str(path / "chroma.sqlite3"),
    )
    return core.Bindings(
        allow_reset=False, sqlite_db_config=config, persist_path=str(path), hnsw_cache_size=_CACHED_INDEXES
    )


class VectorReader(Protocol):
    """A published folder open for reading. It closes when nobody refers to it any more."""

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[tuple[str, float]]:
        """The keys of the `count` records most similar to a vector, with their cosines, best first."""
        ...


class CoreReader:
    """Reads through `chromadb_rust_bindings`, without importing chromadb."""

    def __init__(self, path: Path) -> None:
        self._core = open_core(path)
        self._ids: dict[str, str] = {}

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[tuple[str, float]]:
        if collection not in self._ids:
            found = self._core.get_collection(collection, TENANT, DATABASE)
            self._ids[collection] = str(found.id)
        answer = self._core.query(
            self._ids[collection],
            None,
            [list(vector)],
            count,
            None,
            None,
            ["distances"],
            TENANT,
            DATABASE,
        )
        return _pairs(answer.ids, answer.distances)


class ClientReader:
    """Reads through Chroma's public client."""

    def __init__(self, path: Path) -> None:
        self._client = open_client(path)
        # Chroma keeps what is open in a table of its own, so that being forgotten does not close it.
        weakref.finalize(self, self._client.close)

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[tuple[str, float]]:
        found = self._client.get_collection(collection, embedding_function=None)
        answer = found.query(query_embeddings=[list(vector)], n_results=count, include=["distances"])  # type: ignore[arg-type]
        return _pairs(answer["ids"], answer["distances"])


class RetriedReader:
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
            found = reader.nearest(collection, vector, count)
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
            self._skip = min(_MOST_SKIPPED, 2 ** min(self._failures, 10) - 1)
            self._failures += 1


def _pairs(ids: Any, distances: Any) -> list[tuple[str, float]]:
    # The collections measure 1 − inner product of unit vectors.
    return [(key, 1.0 - distance) for key, distance in zip(ids[0], distances[0], strict=True)]


def keys_through_core(path: Path, collection: str) -> set[str]:
    """All keys of a collection that is there, without changing anything."""
    core = open_core(path)
    found = core.get_collection(collection, TENANT, DATABASE)
    return set(core.get(str(found.id), None, None, None, 0, None, [], TENANT, DATABASE).ids)


class CoreWriter:
    """Writes through the core."""

    def __init__(self, path: Path) -> None:
        self._core = open_core(path, writable=True)
        self._ids: dict[str, str] = {}

    def keys(self, collection: str) -> set[str]:
        return set(self._get(collection, None, []).ids)

    def upsert(
        self, collection: str, keys: Sequence[str], vectors: Sequence[Any], metadatas: Sequence[Metadata]
    ) -> None:
        self._core.upsert(
            self._id(collection), list(keys), list(vectors), list(metadatas), None, None, TENANT, DATABASE
        )

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        self._core.delete(self._id(collection), list(keys), None, None, None, TENANT, DATABASE)

    def rewrite(self, collection: str, count: int) -> None:
        few = self._get(collection, count, ["embeddings", "metadatas"])
        if few.ids:
            self.upsert(collection, few.ids, few.embeddings, few.metadatas)

    def count(self, collection: str) -> int:
        return int(self._core.count(self._id(collection), TENANT, DATABASE))

    def close(self) -> None:
        del self._core  # its files are closed with it

    def _get(self, collection: str, limit: int | None, include: list[str]) -> Any:
        return self._core.get(self._id(collection), None, None, limit, 0, None, include, TENANT, DATABASE)

    def _id(self, collection: str) -> str:
        if collection not in self._ids:
            # As the client words it for a collection without an embedding function.
            configuration = json.dumps({"hnsw": _HNSW, "spann": None, "embedding_function": {"type": "legacy"}})
            made = self._core.create_collection(collection, configuration, None, None, True, TENANT, DATABASE)
            self._ids[collection] = str(made.id)
        return self._ids[collection]


class ClientWriter:
    """Writes through the public client."""

    def __init__(self, path: Path) -> None:
        self._client = open_client(path)

    def keys(self, collection: str) -> set[str]:
        return set(self._open(collection).get(include=[])["ids"])

    def upsert(
        self, collection: str, keys: Sequence[str], vectors: Sequence[Any], metadatas: Sequence[Metadata]
    ) -> None:
        self._open(collection).upsert(ids=list(keys), embeddings=list(vectors), metadatas=list(metadatas))

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        self._open(collection).delete(ids=list(keys))

    def rewrite(self, collection: str, count: int) -> None:
        opened = self._open(collection)
        few = opened.get(limit=count, include=["embeddings", "metadatas"])
        if few["ids"]:
            opened.upsert(ids=few["ids"], embeddings=few["embeddings"], metadatas=few["metadatas"])

    def count(self, collection: str) -> int:
        return self._open(collection).count()

    def close(self) -> None:
        self._client.close()

    def _open(self, collection: str) -> Collection:
        return self._client.get_or_create_collection(
            collection,
            embedding_function=None,
            configuration={"hnsw": _HNSW},  # type: ignore[arg-type]
        )
