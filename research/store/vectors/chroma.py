"""The two ways into a Chroma folder: its compiled core called directly, and its public client.

The client takes a second to import and adds checks of what ctx knows already. The core is not a public interface:
whoever calls it has the client to turn to when something goes wrong there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from research.telemetry import switch_off

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

TENANT = "default_tenant"
DATABASE = "default_database"

# Chroma writes its neighbour files when an upsert leaves this many records unwritten; what it has not written is
# replayed by every process that opens them. Two is the least it takes, so each batch is on disk when it returns.
SYNC_THRESHOLD = 2
# Inner product, not cosine: a page without text has a zero vector, which cosine cannot take.
_HNSW = {"space": "ip", "ef_search": 400, "ef_construction": 200, "sync_threshold": SYNC_THRESHOLD}
_CACHED_INDEXES = 4

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
