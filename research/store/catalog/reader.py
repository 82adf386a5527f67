"""What the store's reading functions need: a seam for a snapshot, the catalog as it is, or another database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class Masks:
    """What a policy left. `view`: of which view of the catalog, empty for all of it; `labels`: of things that are
    masked or withheld, by ref; and the numbers of items and memories whose text is not the stored one: no vector is
    kept of it."""

    view: str = ""
    nothing: bool = False  # is seen
    labels: Mapping[str, str] = field(default_factory=dict)
    items: frozenset[int] = frozenset()
    memories: frozenset[tuple[str, int]] = frozenset()


NO_MASKS = Masks()


class Reader(Protocol):
    """Whatever can be read from: the catalog as it is now, or a snapshot of it."""

    @property
    def masks(self) -> Masks: ...
    @property
    def paths(self) -> IndexPaths: ...
    @property
    def connection(self) -> Connection: ...
    def meta(self, key: str, default: str = "") -> str: ...
    def count_cache(self) -> dict[object, Any]: ...
