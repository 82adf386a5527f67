"""Values: what clusters of experiences have in common on an axis, each told by a sentence of one of its members.

Nothing is invented: the sentence is the one nearest the cluster's centroid, as it stands in the experience. A value
keeps its id while most of its members stay together. All of them are replaced in one transaction.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from research.errors import BusyError, NothingFoundError
from research.experiences.clusters import (
    INSTALL,
    LEAST_EXPERIENCES,
    MOST_EXPERIENCES,
    NamedCluster,
    centroid_of,
    find_clusters,
    is_installed,
    name_clusters,
)
from research.experiences.intake import axis_of
from research.experiences.records import AXES, KIND, AxisValues, Rebuilt, Value
from research.store import (
    NewItem,
    ParentItems,
    StoredItem,
    changed_after,
    get_items,
    get_parent,
    item_metadata,
    kind_state,
    list_items,
    put_parents,
    write_item_vectors,
)
from research.text import stored_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder
    from research.search import ItemSearch
    from research.store import Catalog, Reader

VALUES = "value"

_TRIES = 3  # where an experience is removed meanwhile
_SAME = 0.5  # share of a value's members that are still together


class Values:
    """The values of an index. May be used by many threads."""

    def __init__(
        self, catalog: Callable[[], Catalog], search: ItemSearch, encoder: Callable[[Reader], TextEncoder]
    ) -> None:
        self._catalog = catalog
        self._search = search
        self._encoder = encoder

    def listed(self, axis: str | None = None) -> list[Value]:
        """Of an axis or of all, in the order of the axes, the largest first."""
        wanted = AXES if axis is None else (axis_of(axis),)
        with self._catalog().snapshot() as reader:
            found = [value_of(item) for item in list_items(reader, VALUES)]
        kept = [value for value in found if value.axis in wanted]
        return sorted(kept, key=lambda value: (AXES.index(value.axis), -value.cluster_size, value.id))

    def get(self, id: str) -> Value:
        found = next((value for value in self.listed() if value.id == id), None)
        if found is None:
            raise NothingFoundError(f"there is no value {id[:80]!r}", hint="see them with: ctx experience values")
        return found

    def is_due(self, after: int) -> bool:
        """Whether so many experiences came, changed or went since values were last looked for; 0 is never. For the
        first time, as soon as there are enough."""
        if not after:
            return False
        with self._catalog().snapshot() as reader:
            built, state = get_parent(reader, VALUES, "full"), kind_state(reader, KIND)
            if built is None:
                return state.count >= LEAST_EXPERIENCES and len(_of_full(reader)) >= LEAST_EXPERIENCES
            seq, items, experiences = (_number(built.metadata, name) for name in ("seq", "items", "experiences"))
            changed = changed_after(reader, KIND, seq)
            if len(changed) + max(0, items + len(changed) - state.count) < after:
                return False  # an experience has two items and more: it cannot be, and need not be counted
            now = _of_full(reader)
        new = len(now.intersection(changed))
        return new + max(0, experiences + new - len(now)) >= after

    def why_none(self) -> str:
        """Where nobody has looked for values yet; empty where somebody has."""
        with self._catalog().snapshot() as reader:
            if get_parent(reader, VALUES, "full") is not None:
                return ""
            closed = len(_of_full(reader))
        if closed < LEAST_EXPERIENCES:
            return f"too few: {closed} experiences are closed, and {LEAST_EXPERIENCES} are needed"
        if not is_installed():
            return f"values are found by scikit-learn, which is not installed; {INSTALL}"
        return "nobody has looked for values yet; ctx experience values --rebuild does"

    def rebuild(self, *, seconds: float = 60.0) -> Rebuilt:
        """Look for values anew, of every axis. For about `seconds` what has no vector yet is embedded first; the rest
        is left out."""
        started = time.monotonic()
        waiting = self._embed(started + seconds)
        for _ in range(_TRIES):
            with self._catalog().snapshot() as reader:
                built, reports = self._build(reader)
            if self._write(built):
                return Rebuilt(True, "", reports, waiting, time.monotonic() - started)
        raise BusyError("experiences are being removed meanwhile", hint="run the same command again")

    def _embed(self, until: float) -> int:
        """How many items are left without a vector."""
        while True:
            with self._catalog().snapshot() as reader:
                fresh = self._search.embed(reader, max(0.0, min(2.0, until - time.monotonic())))
            if fresh is not None:
                write_item_vectors(self._catalog(), fresh.encoder, fresh.numbers, fresh.vectors, short=True)
            with self._catalog().snapshot() as reader:
                left = kind_state(reader, KIND).count - len(set(self._search.vectors(reader)[0]))
            if left <= 0 or fresh is None or time.monotonic() > until:
                return max(0, left)

    def _build(self, reader: Reader) -> tuple[list[tuple[ParentItems, list[NamedCluster]]], list[AxisValues]]:
        encoder, state = self._encoder(reader), kind_state(reader, KIND)
        owners, vectors = self._search.vectors(reader)
        items = get_items(reader, sorted(set(owners)))
        before = [value_of(item) for item in list_items(reader, VALUES)]
        by_axis = _by_axis(items, owners, vectors)
        now = stored_time(datetime.now(UTC))
        experiences = len(by_axis["full"][0])
        metadata = {"seq": state.last_seq, "items": state.count, "experiences": experiences, "built_at": now}
        built: list[tuple[ParentItems, list[NamedCluster]]] = []
        reports: list[AxisValues] = []
        for axis, (ids, rows) in by_axis.items():
            named = name_clusters(reader, encoder, axis, ids, find_clusters(rows))
            found = _with_ids(named, [value for value in before if value.axis == axis])
            needs = {KIND: sorted({member for each in found for member in each.members})}
            kept = [_new_item(each) for each in found]
            built.append((ParentItems(axis, now, kept, metadata, needs=needs), found))
            reports.append(AxisValues(axis, len(ids), len(found), _note(len(ids), len(found))))
        return built, reports

    def _write(self, built: Sequence[tuple[ParentItems, Sequence[NamedCluster]]]) -> bool:
        """Whether all experiences that values are made of were still there."""
        import numpy as np

        if put_parents(self._catalog(), VALUES, [parent for parent, _ in built], short=True).outdated:
            return False
        vectors = {each.value.id: each.vector for _, found in built for each in found}
        with self._catalog().snapshot() as reader:
            numbers = {item.key: item.item_no for item in list_items(reader, VALUES) if item.key in vectors}
            encoder = self._encoder(reader).name
        if numbers:
            stacked = np.stack([vectors[key] for key in numbers])
            write_item_vectors(self._catalog(), encoder, list(numbers.values()), stacked, short=True)
        return True


def _of_full(reader: Reader) -> set[int]:
    """The items of closed experiences, one of each."""
    return {number for number, metadata in item_metadata(reader, KIND) if metadata.get("axis") == "full"}


def _number(metadata: Mapping[str, Any], name: str) -> int:
    value = metadata.get(name)
    return value if type(value) is int else 0


def value_of(item: StoredItem) -> Value:
    """From the catalog, which may have come from anywhere."""
    metadata = item.metadata
    size, similarity, members = (metadata.get(name) for name in ("cluster_size", "similarity_to_centroid", "members"))
    axis = str(metadata.get("axis"))
    return Value(
        id=item.key,
        axis=axis if axis in AXES else "full",
        text=item.text,
        experience=str(metadata.get("experience") or ""),
        cluster_id=str(metadata.get("cluster_id") or ""),
        cluster_size=size if type(size) is int else 0,
        similarity_to_centroid=float(similarity) if isinstance(similarity, int | float) else 0.0,
        members=tuple(str(each) for each in members) if isinstance(members, list) else (),
        built_at=item.created_at,
    )


def _by_axis(
    items: Mapping[int, StoredItem], owners: Sequence[int], vectors: NDArray[np.float32]
) -> dict[str, tuple[list[str], NDArray[np.float32]]]:
    """The experiences of each axis and a vector for each: the mean of its parts."""
    import numpy as np

    rows: dict[str, dict[str, list[int]]] = {axis: {} for axis in AXES}
    for row, number in enumerate(owners):
        item = items.get(number)
        if item is not None and item.metadata.get("axis") in rows:
            rows[str(item.metadata["axis"])].setdefault(item.parent, []).append(row)
    found: dict[str, tuple[list[str], NDArray[np.float32]]] = {}
    for axis, by_id in rows.items():
        newest = dict(list(by_id.items())[-MOST_EXPERIENCES:])
        means = [centroid_of(vectors[own]) for own in newest.values()]
        found[axis] = list(newest), np.stack(means) if means else np.zeros((0, 0), np.float32)
    return found


def _with_ids(found: Sequence[NamedCluster], before: Sequence[Value]) -> list[NamedCluster]:
    """Each with the id of the value that it was before, if most of that one's members are together in it."""
    shared = sorted(
        (
            (-len(set(each.members) & set(old.members)), place, old)
            for place, each in enumerate(found)
            for old in before
            if old.members and len(set(each.members) & set(old.members)) >= _SAME * len(old.members)
        ),
        key=lambda entry: (entry[0], entry[1], entry[2].id),
    )
    given: dict[int, Value] = {}
    for _, place, old in shared:
        if place not in given and old.id not in {value.id for value in given.values()}:
            given[place] = old
    now = stored_time(datetime.now(UTC))
    kept = []
    for place, each in enumerate(found):
        same = given.get(place)
        id, built_at = (same.id, same.built_at) if same else (uuid.uuid4().hex[:12], now)
        kept.append(replace(each, value=replace(each.value, id=id, built_at=built_at)))
    return kept


def _new_item(found: NamedCluster) -> NewItem:
    value = found.value
    metadata: dict[str, Any] = {**value.metadata(), "experience": value.experience, "members": list(value.members)}
    return NewItem(value.id, "", value.text, value.built_at, metadata, words=found.words)


def _note(experiences: int, values: int) -> str:
    if experiences < LEAST_EXPERIENCES:
        return f"too few: {experiences} experiences have something on this axis, and {LEAST_EXPERIENCES} are needed"
    return "" if values else "no group of experiences says the same"
