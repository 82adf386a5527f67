"""Writing items, and removing experiences with what was made of them. All of a parent's items are replaced in one
transaction: they are there as they were, or as they are; an experience goes in one with its values.

An item that stays what it was keeps its number and its vectors, so a file in which one function changed is embedded
for one function. Words are analysed before a transaction begins, which takes most of the time: short writes wait for a
transaction to end.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from operator import add
from typing import TYPE_CHECKING, Any

from research.errors import UsageError
from research.store.items import LONGEST_KEY, LONGEST_TEXT, Items, NewItem, parts_of
from research.store.reader import Writer, pack_vectors
from research.store.words import KINDS, ItemWords

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ParentItems:
    """A parent with all of its items, to be put in place of those it had. `before`: only if its stamp is still this,
    or, if empty, if it is not there. `needs`: only if these parents are there, by their kind. Else it stays as it is,
    and `Written.outdated` counts it."""

    parent: str
    stamp: str
    items: Sequence[NewItem]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    before: str | None = None
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of items."""

    added: int = 0
    changed: int = 0  # in any way; whether they are embedded again is another question
    kept: int = 0
    removed: int = 0
    elsewhere: int = 0  # left out: another parent has an item of that key
    outdated: int = 0  # parents that were left as they are, because something had changed

    def __add__(self, other: Written) -> Written:
        return Written(*map(add, astuple(self), astuple(other)))


_STORED = "title, text, words, embedded, created_at, metadata, prior"


@dataclass(frozen=True, slots=True)
class _Row:
    """An item to be written: its key, its columns `_STORED`, and its words."""

    key: str
    stored: tuple[Any, ...]
    analysed: ItemWords

    @property
    def measured(self) -> tuple[Any, ...]:
        return self.analysed.length, self.analysed.title_length, *self.stored


def _rows(given: ParentItems, kind: str) -> list[_Row]:
    """Ready to be written; raises for what no row may hold."""
    _check("the name of what was read", given.parent, LONGEST_KEY, least=1)
    _check("a stamp", given.stamp, LONGEST_TEXT)
    rows: dict[str, _Row] = {}
    for item in given.items:
        _check("a key", item.key, LONGEST_KEY, least=1)
        for value in (item.title, item.text, item.words, item.embedded, metadata := _json(item.metadata)):
            _check("an item", value, LONGEST_TEXT)
        created_at = item.created_at or datetime.now(UTC).isoformat()
        stored = (item.title, item.text, item.words, item.embedded, created_at, metadata)
        analysed = ItemWords.of(item.title, item.text, item.words)
        rows[item.key] = _Row(item.key, (*stored, min(1.0, max(-1.0, item.prior))), analysed)
    return list(rows.values())


def _owners_of(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """What packages know items by, from their kind, parent and key."""
    return [name for kind, parent, key in rows for name in (f"{kind}:{parent}", f"{kind}:{key.partition('#')[0]}")]


def _parts(stored: Sequence[Any]) -> tuple[str, ...]:
    title, text, _, embedded, *_ = stored
    return parts_of(title, text, embedded)


def _json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False, sort_keys=True)


def _check(what: str, value: str, most: int, *, least: int = 0) -> None:
    if not least <= len(value) <= most:
        raise UsageError(f"{what} has {len(value):,} characters", hint=f"at most {most:,} are kept; shorten it")


LEAST_MEMBERS = 3
"""Experiences that a value is made of, at least."""


def _quoted(metadata: str) -> str:
    try:
        return str(json.loads(metadata)["experience"])
    except (ValueError, KeyError, TypeError):  # of a damaged catalog
        return ""


class ItemWrites(Items):
    """Items, and what changes them."""

    def put_parents(self, kind: str, parents: Sequence[ParentItems], *, short: bool = False) -> Written:
        """All items of these parents, in place of those they had, in one transaction: the caller sees to it that they
        are few. `short`: as a short write beside whoever holds the write lock, accepted within a second or BusyError;
        without it the caller holds that lock."""
        return self._write(kind, parents, short=short, replace=True)

    def put(
        self,
        kind: str,
        parent: str,
        stamp: str,
        items: Iterable[NewItem],
        *,
        metadata: Mapping[str, Any] | None = None,
        short: bool = False,
        replace: bool = True,
    ) -> Written:
        """The same of one parent. Without `replace` its other items stay: of a parent with many items, a part in each
        transaction."""
        given = ParentItems(parent, stamp, list(items), metadata or {})
        return self._write(kind, [given], short=short, replace=replace)

    def remove(self, kind: str, keys: Iterable[str]) -> int:
        """Some items of parents that stay. How many there were."""
        with self._db.transaction() as connection:
            query = "SELECT item_no FROM items WHERE kind = ? AND key IN"
            return connection.items.remove_numbers([row[0] for row in connection.rows_in(query, keys, first=(kind,))])

    def remove_parents(self, kind: str, parents: Iterable[str]) -> int:
        """Parents with all their items: words, vectors and all. How many items there were."""
        with self._db.transaction() as connection:
            return connection.items._remove_parents(kind, parents)[1]

    def _remove_parents(self, kind: str, parents: Iterable[str]) -> tuple[list[str], int]:
        """Remove these parents; returns which of them were there, and how many items went with them."""
        these, names = "WHERE kind = ? AND parent IN", list(parents)
        there, numbers = (
            [row[0] for row in self._db.rows_in(f"SELECT {column} FROM {table} {these}", names, first=(kind,))]
            for column, table in (("parent", "item_parents"), ("item_no", "items"))
        )
        gone = self.remove_numbers(numbers)
        self._db.rows_in(f"DELETE FROM item_parents {these}", names, first=(kind,))
        self._db.labels.leave_parents([f"{kind}:{each}" for each in names])
        return there, gone

    def write_vectors(
        self, encoder: str, numbers: Sequence[int], vectors: NDArray[np.float32], *, short: bool = False
    ) -> None:
        """Vectors (n, dim), one a part: an item's number stands once for each of its parts, one after another. Of those
        that are gone by now none is written."""
        rows: list[tuple[int, int, bytes]] = []
        last, part = 0, 0
        for number, vector in zip(numbers, pack_vectors(vectors), strict=True):
            last, part = number, part + 1 if number == last else 0
            rows.append((number, part, vector))
        with self._transaction(short=short) as connection:
            there = {row[0] for row in connection.rows_in("SELECT item_no FROM items WHERE item_no IN", numbers)}
            connection.rows_in("DELETE FROM item_vectors WHERE item_no IN", numbers)
            kept = [(number, part, encoder, blob) for number, part, blob in rows if number in there]
            connection.put_rows("item_vectors", "item_no, part, encoder, vector", kept)

    def _write(self, kind: str, parents: Sequence[ParentItems], *, short: bool, replace: bool) -> Written:
        if kind not in KINDS:
            raise ValueError(f"{kind} is no kind of items; known: {', '.join(KINDS)}")
        prepared = [(given, _rows(given, kind)) for given in parents]
        now = datetime.now(UTC).isoformat()
        total = Written()
        with self._transaction(short=short) as connection:
            for given, rows in prepared:
                if not connection.items._is_as_expected(kind, given):
                    total += Written(outdated=1)
                    continue
                parent = (kind, given.parent, given.stamp, now, _json(given.metadata))
                columns = "kind, parent, stamp, read_at, metadata"
                connection.put_rows("item_parents", columns, [parent], over="kind, parent")
                total += connection.items._put(kind, given.parent, rows, replace=replace)
        return total

    def _is_as_expected(self, kind: str, given: ParentItems) -> bool:
        if given.before is not None:
            query = "SELECT stamp FROM item_parents WHERE kind = ? AND parent = ?"
            if (self._db.value(query, (kind, given.parent)) or "") != given.before:
                return False
        query = "SELECT parent FROM item_parents WHERE kind = ? AND parent IN"
        return all(
            len(self._db.rows_in(query, parents, first=(other,))) == len(set(parents))
            for other, parents in given.needs.items()
        )

    def _put(self, kind: str, parent: str, rows: Sequence[_Row], *, replace: bool) -> Written:
        before = self._before(kind, parent, None if replace else [row.key for row in rows])
        held = self._held_elsewhere(kind, parent, [row.key for row in rows if row.key not in before])
        wanted = {row.key: row for row in rows if row.key not in held}
        gone = [number for key, (number, _) in before.items() if key not in wanted]
        # A function that is gone from its file may come back, and be no less confidential then.
        removed = self.remove_numbers(gone, labels=kind != "code")
        changed = [(*before[key], row) for key, row in wanted.items() if key in before and before[key][1] != row.stored]
        added = [row for key, row in wanted.items() if key not in before]
        first = self._db.reserve_sequence("items", len(changed) + len(added)) if changed or added else 0
        if changed:
            self._db.packages.leave(_owners_of((kind, parent, row.key) for *_, row in changed))
        elif added:
            self._db.labels.content_changed()
        columns = f"length, title_length, {_STORED}"
        for seq, (item_no, stored, row) in enumerate(changed, start=first):
            self._db.execute(
                f"UPDATE items SET (seq, {columns}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE item_no = ?",
                (seq, *row.measured, item_no),
            )
            if stored[:3] != row.stored[:3]:
                self._db.words.forget("item_words", [item_no])
                self._db.words.write("item_words", [(item_no, row.analysed.signed(kind))])
            if _parts(stored) != _parts(row.stored):
                self._db.execute("DELETE FROM item_vectors WHERE item_no = ?", (item_no,))
        numbered = list(enumerate(added, start=first + len(changed)))
        new = [(number, kind, parent, row.key, number, *row.measured) for number, row in numbered]
        self._db.put_rows("items", f"item_no, kind, parent, key, seq, {columns}", new)
        self._db.words.write("item_words", [(number, row.analysed.signed(kind)) for number, row in numbered])
        return Written(len(added), len(changed), len(wanted) - len(added) - len(changed), removed, len(held))

    def _before(self, kind: str, parent: str, keys: Sequence[str] | None) -> dict[str, tuple[int, tuple[Any, ...]]]:
        """Read a parent's items, all or those of some keys: key → number and columns `_STORED`."""
        query, of = f"SELECT item_no, key, {_STORED} FROM items WHERE kind = ? AND parent = ?", (kind, parent)
        rows = self._db.execute(query, of) if keys is None else self._db.rows_in(f"{query} AND key IN", keys, first=of)
        return {str(key): (int(number), tuple(stored)) for number, key, *stored in rows}

    def _held_elsewhere(self, kind: str, parent: str, keys: Sequence[str]) -> set[str]:
        """Those of these keys under which another parent has an item: it stays there."""
        query = "SELECT key FROM items WHERE kind = ? AND parent <> ? AND key IN"
        return {str(row[0]) for row in self._db.rows_in(query, keys, first=(kind, parent))}

    def remove_numbers(self, numbers: Sequence[int], *, labels: bool = True) -> int:
        """Items with their words, vectors and, unless they are to stay, labels; part of the caller's transaction."""
        self._db.words.forget("item_words", numbers)
        rows = self._db.rows_in("SELECT kind, parent, key FROM items WHERE item_no IN", numbers)
        if rows:
            self._db.packages.leave(_owners_of(rows))
        if labels:
            self._db.labels.leave_targets([("", f"{kind}:{key}") for kind, _, key in rows])
        self._db.rows_in("DELETE FROM items WHERE item_no IN", numbers)
        return len(numbers)

    def _transaction(self, *, short: bool) -> AbstractContextManager[Writer]:
        return self._db.short_write() if short else self._db.transaction()

    def remove_experiences(self, ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """The experiences that were there, and the values that went with them. A short write; what goes is overwritten
        in the file: also what full-text search still holds of it, and the log, where all of it stands."""
        with self._db.short_write(erase=True) as connection:
            gone, values = connection.items.drop_experiences(ids)
        left, first = bool(gone), True
        while left:
            with self._db.short_write(erase=True) as connection:
                left, first = connection.item_words.merge_some(first=first), False
        if gone:
            self._db.shrink_log()
        return gone, values

    def drop_experiences(self, ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """The same as part of the caller's transaction."""
        gone, _ = self._remove_parents("experience", ids)
        return gone, self.drop_from_values(set(gone)) if gone else []

    def drop_from_values(self, gone: Collection[str]) -> list[str]:
        """Values that quote one of these go, and those that are left with few members; the others become smaller. The
        keys of those that went. Part of the caller's transaction."""
        removed: list[tuple[int, str]] = []
        for number, key, written in self._db.execute(
            "SELECT item_no, key, metadata FROM items WHERE kind = 'value' ORDER BY item_no"
        ).fetchall():
            metadata = json.loads(written)
            members = [str(each) for each in metadata.get("members") or ()]
            left = [each for each in members if each not in gone]
            size = int(metadata.get("cluster_size") or 0) - len(members) + len(left)
            if metadata.get("experience") in gone or (len(left) < len(members) and size < LEAST_MEMBERS):
                removed.append((int(number), str(key)))
            elif len(left) < len(members):
                changed = json.dumps(
                    {**metadata, "members": left, "cluster_size": size}, ensure_ascii=False, sort_keys=True
                )
                self._db.execute(
                    "UPDATE items SET metadata = ?, seq = ? WHERE item_no = ?",
                    (changed, self._db.reserve_sequence("items", 1), int(number)),
                )
        self.remove_numbers([number for number, _ in removed])
        return [key for _, key in removed]

    def values_of_nobody(self) -> list[int]:
        """The numbers of values that quote an experience which is not there."""
        there = set(self._db.column("SELECT parent FROM item_parents WHERE kind = 'experience'"))
        rows = self._db.execute("SELECT item_no, metadata FROM items WHERE kind = 'value'").fetchall()
        return [int(number) for number, written in rows if _quoted(written) not in there]
