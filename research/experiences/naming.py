"""A cluster of experiences told by the most typical sentence of its members: the one nearest the centroid, as it
stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.experiences.axes import KIND, axis_fields
from research.experiences.clusters import NEAR, Cluster
from research.experiences.records import Experience, Value
from research.store.catalog.items import get_parent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders.base import TextEncoder
    from research.store.catalog.reader import Reader

_ASKED = 12  # members nearest the centroid that are asked for a sentence
_SENTENCES = 8  # of each
_LONGEST = 600  # characters of a sentence
_SHORTEST = 12
_MEMBERS_ROOM = 40_000  # characters of ids that are kept with a value
_COMMON = 1 / 3  # of the members have a domain that a value is found by


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
