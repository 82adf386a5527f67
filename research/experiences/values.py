"""Values: what clusters of experiences have in common on an axis, each told by a sentence of one of its members.

Nothing is invented: the sentence is the one nearest the cluster's centroid, as it stands in the experience. A value
keeps its id while most of its members stay together. All of them are replaced in one transaction.

Experiences that say the same, found by density (HDBSCAN of scikit-learn on the vectors there are), each such cluster
told by the most typical sentence of its members: the one nearest the centroid, as it stands.

What HDBSCAN calls a cluster may still be loose; only members that are near its centroid stay, and only clusters that
have enough of them.
"""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from research.errors import BusyError, CtxError, NothingFoundError
from research.experiences.intake import axis_of
from research.experiences.records import AXES, KIND, AxisValues, Experience, Rebuilt, Value, axis_fields
from research.store import (
    LEAST_MEMBERS,
    NewItem,
    ParentItems,
    StoredItem,
)
from research.text import stored_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder
    from research.search import ItemSearch
    from research.store import Catalog, Reader

INSTALL = "pip install 'ctx-research[values]'"

LEAST_EXPERIENCES = 10
"""Of an axis; fewer have no clusters worth the name."""

MOST_EXPERIENCES = 20_000
"""Of an axis, the newest: time grows with the square."""

NEAR = 0.6
"""Cosine with the centroid; sentences that say the same in other words have 0.67 and more."""

_MIN_SAMPLES = 2
_EXACT = 1_000  # vectors; of more only what differs most among them is compared, which is ten times as quick
_PRINCIPAL = 48  # dimensions that are left of them

_ASKED = 12  # members nearest the centroid that are asked for a sentence
_SENTENCES = 8  # of each
_LONGEST = 600  # characters of a sentence
_SHORTEST = 12
_MEMBERS_ROOM = 40_000  # characters of ids that are kept with a value
_COMMON = 1 / 3  # of the members have a domain that a value is found by


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows of the vectors that were given, those nearest the centroid first."""

    rows: tuple[int, ...]
    centroid: NDArray[np.float32]  # (dim,), unit length


def is_installed() -> bool:
    """Without loading it."""
    from importlib.util import find_spec

    return find_spec("sklearn") is not None


def find_clusters(vectors: NDArray[np.float32]) -> list[Cluster]:
    """The largest first. `vectors`: (n, dim), unit length. Raises CtxError where scikit-learn is missing."""
    import numpy as np

    if len(vectors) < LEAST_EXPERIENCES:
        return []
    labels = _labels(vectors)
    groups = (np.flatnonzero(labels == label) for label in range(int(labels.max(initial=-1)) + 1))
    found = [each for rows in groups if (each := _tight(vectors, rows)) is not None]
    if not found:  # where all say the same, density tells nothing apart
        whole = _tight(vectors, np.arange(len(vectors)))
        found = [whole] if whole is not None and len(whole.rows) * 2 >= len(vectors) else []
    return sorted(found, key=lambda each: (-len(each.rows), each.rows))


def least_members(count: int) -> int:
    """That a cluster needs among so many experiences: of ten thousand, three that agree are no value yet."""
    return max(LEAST_MEMBERS, int(math.sqrt(count) / 3))


def _labels(vectors: NDArray[np.float32]) -> NDArray[Any]:
    """The cluster of each vector, -1 for none. (n,)"""
    try:
        from sklearn.cluster import HDBSCAN
    except ImportError as error:
        raise CtxError("values are found by scikit-learn, which is not installed", hint=INSTALL) from error
    import numpy as np

    searched = vectors.astype(np.float64)
    if len(vectors) > _EXACT:
        centred = searched - searched.mean(axis=0)
        _, axes = np.linalg.eigh(centred.T @ centred)
        searched = centred @ axes[:, -_PRINCIPAL:]
    clustering = HDBSCAN(min_cluster_size=least_members(len(vectors)), min_samples=_MIN_SAMPLES, copy=True)
    labels: NDArray[Any] = clustering.fit_predict(searched)
    return labels


def _tight(vectors: NDArray[np.float32], rows: NDArray[Any]) -> Cluster | None:
    """What is near the centroid; None if that is too little."""
    near = rows[vectors[rows] @ centroid_of(vectors[rows]) >= NEAR]
    if len(near) < least_members(len(vectors)):
        return None
    centroid = centroid_of(vectors[near])
    order = (-(vectors[near] @ centroid)).argsort(kind="stable")
    return Cluster(tuple(near[order].tolist()), centroid)


def centroid_of(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Their mean at unit length. (dim,)"""
    import numpy as np

    mean = vectors.mean(axis=0)
    found: NDArray[np.float32] = (mean / max(float(np.linalg.norm(mean)), 1e-9)).astype(np.float32)
    return found


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A value without an id, the further words that it is found by, its sentence's vector, and all of its members."""

    value: Value
    words: str
    vector: NDArray[np.float32]  # (dim,)
    members: Sequence[str]


def name_clusters(
    reader: Reader, encoder: TextEncoder, axis: str, ids: Sequence[str], clusters: Sequence[Cluster]
) -> list[NamedCluster]:
    """Of each cluster that has a sentence to be told by, as near to its centroid as its members are. `ids`: the
    experience of each row."""
    asked = [[_stored(reader, ids[row]) for row in cluster.rows[:_ASKED]] for cluster in clusters]
    candidates = [_sentences(axis, experiences) for experiences in asked]
    texts = [text for each in candidates for _, text in each]
    vectors = encoder.embed(texts) if texts else None
    found: list[NamedCluster] = []
    start = 0
    for cluster, experiences, told in zip(clusters, asked, candidates, strict=True):
        if not told or vectors is None:
            continue
        own = vectors[start : start + len(told)]
        start += len(told)
        similar = own @ cluster.centroid
        best = int(similar.argmax())
        if similar[best] < NEAR:  # it would not say what the members do
            continue
        members = [ids[row] for row in cluster.rows]
        experience, text = told[best]
        value = Value(
            id="",
            axis=axis,
            text=text,
            experience=experience,
            cluster_id=f"{axis}-{len(found) + 1}",
            cluster_size=len(members),
            similarity_to_centroid=round(min(1.0, float(similar[best])), 4),
            members=_kept_members(experience, members),
        )
        found.append(NamedCluster(value, _words(experiences), own[best], members))
    return found


def _sentences(axis: str, experiences: Sequence[Experience]) -> list[tuple[str, str]]:
    """(experience, sentence) that may tell what these have in common. What experiences teach stands in their lessons;
    where nobody has any, whatever the axis says."""
    from research.units import split

    fields: list[tuple[str, ...]] = [axis_fields(each, axis) for each in experiences]
    if axis in ("full", "strategy"):
        lessons = any(each.lesson for each in experiences)
        named = int(axis == "strategy")  # the first field of this axis is ours
        fields = [(each.lesson,) if lessons else own[named:] for each, own in zip(experiences, fields, strict=True)]
    found: dict[tuple[str, str], None] = {}
    for experience, texts in zip(experiences, fields, strict=True):
        own = [text[unit.start : unit.end].strip() for text in texts for unit in split(text)]
        fitting = [text for text in own if _SHORTEST <= len(text) <= _LONGEST][:_SENTENCES]
        found.update(dict.fromkeys((experience.id, text) for text in fitting))
    return list(found)


def _kept_members(experience: str, members: Sequence[str]) -> tuple[str, ...]:
    """As many as there is room for, the one that is quoted among them."""
    kept, room = {experience}, _MEMBERS_ROOM - len(experience)
    for member in members:
        room -= len(member) + 4
        if room < 0:
            break
        kept.add(member)
    return tuple(member for member in members if member in kept)


def _words(experiences: Sequence[Experience]) -> str:
    """The domains and strategies that many of the members have: a value is found by them, too."""
    counts = Counter(name for each in experiences for name in (each.domain, each.strategy) if name != "other")
    return " ".join(name for name, count in sorted(counts.items()) if count >= _COMMON * len(experiences))


def _stored(reader: Reader, id: str) -> Experience:
    parent = reader.items.parent(KIND, id)
    return Experience.of_stored(id, parent.metadata if parent else {})


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
            found = [value_of(item) for item in reader.items.all(VALUES)]
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
            built, state = reader.items.parent(VALUES, "full"), reader.items.state(KIND)
            if built is None:
                return state.count >= LEAST_EXPERIENCES and len(_of_full(reader)) >= LEAST_EXPERIENCES
            seq, items, experiences = (_number(built.metadata, name) for name in ("seq", "items", "experiences"))
            changed = reader.items.changed_after(KIND, seq)
            if len(changed) + max(0, items + len(changed) - state.count) < after:
                return False  # an experience has two items and more: it cannot be, and need not be counted
            now = _of_full(reader)
        new = len(now.intersection(changed))
        return new + max(0, experiences + new - len(now)) >= after

    def why_none(self) -> str:
        """Where nobody has looked for values yet; empty where somebody has."""
        with self._catalog().snapshot() as reader:
            if reader.items.parent(VALUES, "full") is not None:
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
                self._catalog().items.write_vectors(fresh.encoder, fresh.numbers, fresh.vectors, short=True)
            with self._catalog().snapshot() as reader:
                left = reader.items.state(KIND).count - len(set(self._search.vectors(reader)[0]))
            if left <= 0 or fresh is None or time.monotonic() > until:
                return max(0, left)

    def _build(self, reader: Reader) -> tuple[list[tuple[ParentItems, list[NamedCluster]]], list[AxisValues]]:
        encoder, state = self._encoder(reader), reader.items.state(KIND)
        owners, vectors = self._search.vectors(reader)
        items = reader.items.get(sorted(set(owners)))
        before = [value_of(item) for item in reader.items.all(VALUES)]
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

        if self._catalog().items.put_parents(VALUES, [parent for parent, _ in built], short=True).outdated:
            return False
        vectors = {each.value.id: each.vector for _, found in built for each in found}
        with self._catalog().snapshot() as reader:
            numbers = {item.key: item.item_no for item in reader.items.all(VALUES) if item.key in vectors}
            encoder = self._encoder(reader).name
        if numbers:
            stacked = np.stack([vectors[key] for key in numbers])
            self._catalog().items.write_vectors(encoder, list(numbers.values()), stacked, short=True)
        return True


def _of_full(reader: Reader) -> set[int]:
    """The items of closed experiences, one of each."""
    return {number for number, metadata in reader.items.metadata(KIND) if metadata.get("axis") == "full"}


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
