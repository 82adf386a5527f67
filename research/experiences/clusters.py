"""Experiences that say the same, found by density (HDBSCAN of scikit-learn on the vectors there are), each such cluster
told by the most typical sentence of its members: the one nearest the centroid, as it stands.

What HDBSCAN calls a cluster may still be loose; only members that are near its centroid stay, and only clusters that
have enough of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from research.errors import CtxError
from research.experiences.records import KIND, Experience, Value, axis_fields
from research.store import LEAST_MEMBERS, get_parent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder
    from research.store import Reader

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
    parent = get_parent(reader, KIND, id)
    return Experience.of_stored(id, parent.metadata if parent else {})
