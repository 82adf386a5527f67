"""Finding the nearest records in a published generation.

The question's path is short: Chroma's compiled core is called directly, because its Python client takes a second
to import. The core is not a public interface, so whatever goes wrong there is answered by the public client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from research.errors import IndexUnusableError
from research.store.vectors.chroma import DATABASE, TENANT, open_client, open_core
from research.store.vectors.generations import Generation


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A record's id and its cosine similarity with the question."""

    key: str
    similarity: float


class Neighbours(Protocol):
    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[Neighbour]:
        """The `count` records most similar to a vector, best first."""
        ...


def open_neighbours(generation: Generation) -> Neighbours:
    """The direct reader where it works, the public client otherwise. Opens with the first question."""
    return AnyNeighbours(generation.path)


class AnyNeighbours:
    """The direct reader; from its first failure on the public client. `IndexUnusableError` when both have failed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kinds: list[Callable[[Path], Neighbours]] = [CoreNeighbours, ClientNeighbours]
        self._reader: Neighbours | None = None
        self._problem = ""

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[Neighbour]:
        while self._kinds:
            try:
                if self._reader is None:
                    self._reader = self._kinds[0](self._path)
                return self._reader.nearest(collection, vector, count)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001  a panic of the core is no Exception
                self._problem = f"{type(error).__name__}: {error}"
                self._reader = None
                del self._kinds[0]
        raise IndexUnusableError(f"the collections cannot be read: {self._problem}", hint="check it with: ctx doctor")


class CoreNeighbours:
    """Reads through `chromadb_rust_bindings`, without importing chromadb."""

    def __init__(self, path: Path) -> None:
        self._core = open_core(path)
        self._ids: dict[str, str] = {}

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[Neighbour]:
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
        return _neighbours(answer.ids, answer.distances)


class ClientNeighbours:
    """Reads through Chroma's public client."""

    def __init__(self, path: Path) -> None:
        self._client = open_client(path)

    def nearest(self, collection: str, vector: Sequence[float], count: int) -> list[Neighbour]:
        found = self._client.get_collection(collection, embedding_function=None)
        answer = found.query(query_embeddings=[list(vector)], n_results=count, include=["distances"])  # type: ignore[arg-type]
        return _neighbours(answer["ids"], answer["distances"])


def _neighbours(ids: Any, distances: Any) -> list[Neighbour]:
    # The collections measure 1 − inner product of unit vectors.
    pairs = zip(ids[0], distances[0], strict=True)
    return [Neighbour(str(key), 1.0 - float(distance)) for key, distance in pairs]
