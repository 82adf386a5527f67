"""Experiences that say the same, found by density: HDBSCAN of scikit-learn on the vectors there are.

What HDBSCAN calls a cluster may still be loose; only members that are near its centroid stay, and only clusters that
have enough of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from research.errors import CtxError
from research.store.catalog.experience_removal import LEAST_MEMBERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    found = [each for rows in _rows_by_label(_labels(vectors)) if (each := _tight(vectors, rows)) is not None]
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
    clustering = HDBSCAN(
        min_cluster_size=least_members(len(vectors)),
        min_samples=_MIN_SAMPLES,
        copy=True,
    )
    labels: NDArray[Any] = clustering.fit_predict(searched)
    return labels


def _rows_by_label(labels: NDArray[Any]) -> list[NDArray[Any]]:
    import numpy as np

    return [np.flatnonzero(labels == label) for label in range(int(labels.max(initial=-1)) + 1)]


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
