"""The one way into a Chroma folder: its compiled core, called directly.

The public client takes a second to import and adds checks of what ctx knows already; only who asks for Chroma's own
collection objects gets it (research/store/client.py). The core is not a public interface: where it is of another make,
questions compare the vectors of the catalog, which takes less than the client's import.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from research.lazy import switch_off

if TYPE_CHECKING:
    from chromadb.api.client import Client


DATABASE = "chroma.sqlite3"
TENANT = "default_tenant"
TENANT_DATABASE = "default_database"

# Every record changes some forty pages of Chroma's database, and SQLite writes each of them down before, to undo the
# statement if it must. Small pages fit the 64 KiB that it keeps in memory for that; larger ones go through a file:
# 94 kB written for each record.
_PAGE_SIZE = 1024
# Inner product, not cosine: a page without text has a zero vector, which cosine cannot take.
_HNSW = {"space": "ip", "ef_search": 400, "ef_construction": 200}
_LEAST_SYNC = 2  # the least that Chroma takes for its sync_threshold
_CACHED_INDEXES = 4
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Metadata = dict[str, str | int | bool]


def open_client(path: Path) -> Client:
    """Chroma's public client on a folder: no telemetry, and no settings from a stray .env file."""
    switch_off()
    import chromadb
    from chromadb.config import Settings

    settings = Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]
    # Declared as the interface, which lacks `close`; the object is the client.
    return cast("Client", chromadb.PersistentClient(str(path), settings=settings))


def make_database(path: Path) -> None:
    """Make the database of an empty folder, for Chroma to put its tables into."""
    with closing(sqlite3.connect(path / DATABASE)) as database:
        database.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        database.execute("VACUUM")


class Collections:
    """The collections of a folder. They close when nobody refers to them any more; `writable` makes Chroma's tables
    where they are missing."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        import chromadb_rust_bindings as core

        config = core.SqliteDBConfig(
            hash_type=core.MigrationHash.MD5,
            migration_mode=core.MigrationMode.Apply if writable else core.MigrationMode.Validate,
            url=str(path / DATABASE),
        )
        self._core: Any = core.Bindings(
            allow_reset=False, sqlite_db_config=config, persist_path=str(path), hnsw_cache_size=_CACHED_INDEXES
        )
        self._ids: dict[str, str] = {}

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[tuple[str, float]]:
        """The keys of the `count` records most similar to a vector, with their cosines, best first."""
        asked = (self._id(collection), None, [list(vector)], count, None, None, ["distances"])
        answer = self._core.query(*asked, TENANT, TENANT_DATABASE)
        # The collections measure 1 − inner product of unit vectors.
        return [(key, 1.0 - distance) for key, distance in zip(answer.ids[0], answer.distances[0], strict=True)]

    def keys(self, collection: str) -> set[str]:
        return set(self._get(collection, None, []).ids)

    def count(self, collection: str) -> int:
        return int(self._core.count(self._id(collection), TENANT, TENANT_DATABASE))

    def make(self, collection: str, sync: int) -> None:
        """Make a collection if it is not there, and let Chroma (1.5.9) write its neighbour files, the whole of them,
        whenever so many records are not yet in them. What is never written every process replays that opens them.
        Before any record is written, when Chroma has read its threshold."""
        hnsw = {"sync_threshold": max(_LEAST_SYNC, sync)}
        # As the client words it for a collection without an embedding function.
        made = json.dumps({"hnsw": _HNSW | hnsw, "spann": None, "embedding_function": {"type": "legacy"}})
        found = self._core.create_collection(collection, made, None, None, True, TENANT, TENANT_DATABASE)
        if found.configuration["hnsw"]["sync_threshold"] != hnsw["sync_threshold"]:
            _patiently(lambda: self._core.update_collection(str(found.id), None, None, json.dumps({"hnsw": hnsw})))

    def upsert(
        self, collection: str, keys: Sequence[str], vectors: Sequence[Any], metadatas: Sequence[Metadata]
    ) -> None:
        records = (list(keys), list(vectors), list(metadatas), None, None)
        self._core.upsert(self._id(collection), *records, TENANT, TENANT_DATABASE)

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        self._core.delete(self._id(collection), list(keys), None, None, None, TENANT, TENANT_DATABASE)

    def rewrite_one(self, collection: str) -> None:
        """Upsert a record as it is: the second change that Chroma waits for before it writes one."""
        one = self._get(collection, 1, ["embeddings", "metadatas"])
        if one.ids:
            self.upsert(collection, one.ids, one.embeddings, one.metadatas)

    def _get(self, collection: str, limit: int | None, include: list[str]) -> Any:
        return self._core.get(self._id(collection), None, None, limit, 0, None, include, TENANT, TENANT_DATABASE)

    def _id(self, collection: str) -> str:
        if collection not in self._ids:
            self._ids[collection] = str(self._core.get_collection(collection, TENANT, TENANT_DATABASE).id)
        return self._ids[collection]


def _patiently(change: Callable[[], object], pauses: Sequence[float] = _PAUSES) -> None:
    """Chroma's own connections, which it closes in the background, now and then lock each other out."""
    try:
        change()
    except Exception as error:
        if not pauses or "database is locked" not in str(error):
            raise
        time.sleep(pauses[0])
        _patiently(change, pauses[1:])
