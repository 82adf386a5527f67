"""Items: whatever is neither a document nor a memory. Pieces of code, commits, experiences, values; reading them.

An item belongs to a parent, what it was read from or is a part of: a file, a repository, an experience. With its kind
its key is its lasting name. `item_writes` has what changes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from research.store.pages import batched
from research.store.reader import Repository, stacked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder


LONGEST_TEXT = 1 << 16
LONGEST_KEY = 1 << 13
PART = "\f"
"""What divides the parts that an encoder sees; each gets a vector of its own."""

_PART_CHARACTERS = 1000  # of title and text, where an item does not say itself what is embedded: about 250 tokens
_MOST_PARTS = 4
_COLUMNS = "item_no, kind, parent, key, created_at, title, metadata, text"

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to be written. `words`: what it is found by besides title and text. `embedded`: what an encoder sees,
    its parts divided by form feeds; empty: title and text. `prior`: what is added to its score, -1 to 1, because such
    items are wanted more or less often than others of their kind."""

    key: str
    title: str
    text: str
    created_at: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""
    embedded: str = ""
    prior: float = 0.0


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it is in the catalog."""

    item_no: int  # the catalog's own number, never shown
    kind: str
    parent: str
    key: str
    created_at: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ItemParent:
    """What items were read from, and what tells whether it has changed since."""

    parent: str
    stamp: str
    read_at: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KindState:
    """What tells whether the items of a kind are still those that were read: no two states of an index share it."""

    catalog: str
    last_seq: int
    count: int


@dataclass(frozen=True, slots=True)
class PendingItem:
    """An item without vectors, and the texts that they are made of."""

    item_no: int
    parts: tuple[str, ...]


def parts_of(title: str, text: str, embedded: str) -> tuple[str, ...]:
    """What an encoder sees of an item, at least one text: of a long one the beginning, in a few parts."""
    if embedded:
        return tuple(part for part in embedded.split(PART) if part.strip()) or (title,)
    whole = f"{title}\n{text}" if title and title not in text[: len(title) + 1] else text or title
    parts: list[str] = []
    start = 0
    while start < len(whole) and len(parts) < _MOST_PARTS:
        end = start + _PART_CHARACTERS
        if end < len(whole):
            end = max(whole.rfind(" ", start, end), whole.rfind("\n", start, end), start + _PART_CHARACTERS // 2)
        if part := whole[start:end].strip():
            parts.append(part)
        start = end
    return tuple(parts) or (title,)


def _item(*row: Any) -> StoredItem:
    number, kind, parent, key, created_at, title, metadata, text = row
    return StoredItem(number, kind, parent, key, created_at, title, text, json.loads(metadata))


def _parent(parent: str, stamp: str, read_at: str, metadata: str) -> ItemParent:
    return ItemParent(parent, stamp, read_at, json.loads(metadata))


def fitting_parts(pending: Sequence[PendingItem], encoder: TextEncoder) -> tuple[list[str], list[int]]:
    """What is embedded of these items, and the number of the item that each text is of."""
    from research.encoders import split_to_fit

    parts, numbers = list[str](), list[int]()
    for item in pending:
        fitting = [each for part in item.parts for each in split_to_fit(part, encoder)]
        parts += fitting
        numbers += [item.item_no] * len(fitting)
    return parts, numbers


class Items(Repository):
    """Items, and what they were read from."""

    def state(self, kind: str) -> KindState:
        """Numbers only grow, so whatever came or went changes the last one or the count."""
        query = "SELECT COALESCE(MAX(seq), 0), COUNT(*) FROM items WHERE kind = ?"
        catalog = self._db.meta("catalog_id")
        return self._db.cached(
            ("items", kind), lambda: KindState(catalog, *self._db.execute(query, (kind,)).fetchone())
        )

    def measures(self, kind: str) -> list[tuple[int, int, int, float]]:
        """(item_no, words, words of the title, prior) of all of a kind, by number."""
        query = "SELECT item_no, length, title_length, prior FROM items WHERE kind = ? ORDER BY seq"
        return sorted(tuple(row) for row in self._db.execute(query, (kind,)))

    def changed_after(self, kind: str, seq: int) -> list[int]:
        """The numbers of those that came or changed after this."""
        return self._db.column("SELECT item_no FROM items WHERE kind = ? AND seq > ?", (kind, seq))

    def mean_length(self) -> float:
        """Words an item of any kind has."""
        query = "SELECT COALESCE(AVG(length), 0.0) FROM items"
        return float(self._db.cached("mean length of items", lambda: self._db.value(query)))

    def metadata(self, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """(item_no, metadata) of all of a kind, by number."""
        for number, metadata in self._db.execute(
            "SELECT item_no, metadata FROM items WHERE kind = ? ORDER BY item_no", (kind,)
        ):
            yield int(number), json.loads(metadata)

    def times(self, kind: str) -> list[tuple[int, str]]:
        """(item_no, created_at) of all of a kind, the newest first."""
        query = "SELECT item_no, created_at FROM items WHERE kind = ? ORDER BY created_at DESC, item_no DESC"
        return [tuple(row) for row in self._db.execute(query, (kind,))]

    def get(self, numbers: Sequence[int]) -> dict[int, StoredItem]:
        """By their numbers; those that are gone are left out."""
        rows = self._db.rows_in(f"SELECT {_COLUMNS} FROM items WHERE item_no IN", numbers)
        return {int(row[0]): _item(*row) for row in rows}

    def find(self, kind: str, key: str) -> StoredItem | None:
        return self._db.record(_item, f"SELECT {_COLUMNS} FROM items WHERE kind = ? AND key = ?", (kind, key))

    def find_ending(self, kind: str, end: str, limit: int) -> list[StoredItem]:
        """Those whose keys end with this."""
        query = (
            f"SELECT {_COLUMNS} FROM items WHERE kind = ? AND substr(key, length(key) - length(?) + 1) = ?"
            " ORDER BY item_no LIMIT ?"
        )
        return self._db.records(_item, query, (kind, end, end, limit))

    def known_keys(self, kind: str, keys: Iterable[str]) -> set[str]:
        """Those of these keys that there are."""
        query = "SELECT key FROM items WHERE kind = ? AND key IN"
        return {str(row[0]) for row in self._db.rows_in(query, keys, first=(kind,))}

    def all(self, kind: str, *, parent: str | None = None) -> Iterator[StoredItem]:
        """All of a kind or of a parent, by number: in the order they were first written."""
        among, values = ("", ()) if parent is None else (" AND parent = ?", (parent,))
        numbers = self._db.column(f"SELECT item_no FROM items WHERE kind = ?{among} ORDER BY item_no", (kind, *values))
        for part in batched(numbers, values=_MOST_PARTS):
            found = self.get(part)
            yield from (found[number] for number in part if number in found)

    def parent(self, kind: str, parent: str) -> ItemParent | None:
        query = "SELECT parent, stamp, read_at, metadata FROM item_parents WHERE kind = ? AND parent = ?"
        return self._db.record(_parent, query, (kind, parent))

    def parents(self, kind: str, *, below: str = "") -> list[ItemParent]:
        """All of a kind by name, or those that are `below` a folder, and the folder itself."""
        return self._db.records(
            _parent,
            "SELECT parent, stamp, read_at, metadata FROM item_parents"
            " WHERE kind = ? AND (? = '' OR parent = ? OR (parent >= ? AND parent < ?)) ORDER BY parent",
            (kind, below, below, f"{below.rstrip('/')}/", f"{below.rstrip('/')}0"),  # "0" is what comes after "/"
        )

    def count(self) -> dict[str, int]:
        """Kind → how many, of those there are."""
        return dict(self._db.execute("SELECT kind, COUNT(*) FROM items GROUP BY kind ORDER BY kind").fetchall())

    def count_parents(self, kind: str, *, below: str = "") -> int:
        """How many things of a kind were read."""
        if below:
            return len(self.parents(kind, below=below))
        return int(self._db.value("SELECT COUNT(*) FROM item_parents WHERE kind = ?", (kind,)))

    def count_without_vectors(self) -> int:
        """Items that no encoder has seen yet."""
        return int(
            self._db.value(
                "SELECT COUNT(*) FROM items LEFT JOIN item_vectors v ON v.item_no = items.item_no AND v.part = 0"
                " WHERE v.item_no IS NULL"
            )
        )

    def without_vectors(self, kind: str, encoder: str) -> list[int]:
        """What this encoder has not seen yet, in order."""
        return self._db.column(
            "SELECT items.item_no FROM items"
            " LEFT JOIN item_vectors v ON v.item_no = items.item_no AND v.part = 0 AND v.encoder = ?"
            " WHERE items.kind = ? AND v.item_no IS NULL ORDER BY items.item_no",
            (encoder, kind),
        )

    def pending(self, numbers: Sequence[int]) -> list[PendingItem]:
        """What is to be embedded of these, in order; those that are gone are left out."""
        rows = self._db.rows_in("SELECT item_no, title, text, embedded FROM items WHERE item_no IN", numbers)
        found = {number: PendingItem(number, parts_of(*texts)) for number, *texts in rows}
        return [found[number] for number in numbers if number in found]

    def vectors(
        self, kind: str, encoder: str, numbers: Sequence[int] | None = None
    ) -> tuple[list[int], NDArray[np.float16]]:
        """Those that this encoder made, of all items of a kind or of these: the item of each, in order, and (n,
        dim)."""
        query = (
            "SELECT v.item_no, v.vector FROM items i JOIN item_vectors v ON v.item_no = i.item_no"
            " WHERE i.kind = ? AND v.encoder = ?"
        )
        if numbers is None:
            rows = self._db.execute(f"{query} ORDER BY v.item_no, v.part", (kind, encoder)).fetchall()
        else:
            then = "ORDER BY v.item_no, v.part"
            rows = self._db.rows_in(f"{query} AND i.item_no IN", sorted(numbers), then, first=(kind, encoder))
        return stacked(rows)

    def texts(self, numbers: Sequence[int]) -> list[tuple[int, str, str, str, str]]:
        """(item_no, kind, title, text, words) of these, as full-text search is made from them."""
        return self._db.rows_in("SELECT item_no, kind, title, text, words FROM items WHERE item_no IN", numbers)

    def keys_of(self, kind: str, parent: str) -> list[str]:
        return self._db.column("SELECT key FROM items WHERE kind = ? AND parent = ?", (kind, parent))

    def count_by_parent(self, kind: str) -> dict[str, int]:
        """Parent → how many items it has; also those that have none."""
        rows = self._db.execute(
            "SELECT p.parent, COUNT(i.item_no) FROM item_parents p"
            " LEFT JOIN items i ON i.kind = p.kind AND i.parent = p.parent WHERE p.kind = ?"
            " GROUP BY p.parent ORDER BY p.parent",
            (kind,),
        )
        return dict(rows.fetchall())
