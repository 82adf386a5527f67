"""What the store's reading functions need: a seam for a snapshot, the catalog as it is, or another database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from research.store.files.paths import IndexPaths


class Rows(Protocol):
    """What a statement gives back."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What reading needs of a connection."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows: ...


class Reader(Protocol):
    """Whatever can be read from: the catalog as it is now, or a snapshot of it."""

    @property
    def paths(self) -> IndexPaths: ...
    @property
    def connection(self) -> Connection: ...
    def meta(self, key: str, default: str = "") -> str: ...
    def count_cache(self) -> dict[object, Any]: ...
