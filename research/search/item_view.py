"""What is held in memory of the items of a kind, and how it follows the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from research.store.catalog.items import KindState, changed_after, item_measures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from research.store.catalog.reader import Reader

Floats: TypeAlias = "NDArray[np.float64]"

_BLOCK = 8192  # vectors that are widened at once


@dataclass(frozen=True, slots=True)
class View:
    """The items of a kind, ready to be searched. A row is a place in the order of their numbers. It never changes."""

    state: KindState
    numbers: NDArray[np.int64]
    lengths: NDArray[np.float64]  # words
    title_lengths: NDArray[np.float64]
    priors: NDArray[np.float64]
    owners: NDArray[np.int64]  # of each vector, its row; in order
    vectors: NDArray[np.float16]  # (n, dim)
    columns: dict[str, NDArray[np.object_]] = field(default_factory=dict)  # metadata that was asked for

    def __len__(self) -> int:
        return len(self.numbers)

    def places(self, numbers: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The rows of those that are there, and which these are."""
        wanted = np.asarray(numbers, np.int64)
        if not len(self):
            return wanted[:0], np.zeros(len(wanted), bool)
        rows = np.minimum(np.searchsorted(self.numbers, wanted), len(self) - 1)
        here = self.numbers[rows] == wanted
        return rows[here], here

    @property
    def without_vectors(self) -> NDArray[np.int64]:
        missing = np.ones(len(self), bool)
        missing[self.owners] = False
        return np.flatnonzero(missing)

    def with_vectors(self, numbers: Sequence[int], vectors: NDArray[Any]) -> View:
        """Also with these, of items that have none yet; those of items that are not there are left out."""
        rows, here = self.places(numbers)
        new = np.isin(rows, self.without_vectors)
        if not new.any():
            return self
        rows, more = rows[new], vectors[here][new].astype(np.float16)
        if not len(self.owners):
            return replace(self, owners=rows, vectors=more)
        if self.vectors.shape[1] != more.shape[1]:
            return self
        owners = np.concatenate([self.owners, rows])
        order = np.argsort(owners, kind="stable")
        return replace(self, owners=owners[order], vectors=np.concatenate([self.vectors, more])[order])

    def cosines(self, asked: NDArray[np.float32], *, heading: bool) -> dict[str, Floats]:
        """With a unit vector, of the best part of each item, and of its first; 0 without a vector. `heading`: the first
        is none of the others, unless it is the only one."""
        found, first = np.zeros(len(self)), np.zeros(len(self))
        if not len(self.owners) or self.vectors.shape[1] != len(asked):
            return {"vectors": found, "heading": first}
        each = np.empty(len(self.owners), np.float32)
        for start in range(0, len(each), _BLOCK):
            block = self.vectors[start : start + _BLOCK].astype(np.float32)
            # Not by BLAS: its threads go on spinning for a while, on the core where another source is at work.
            np.einsum("ij,j->i", block, asked, out=each[start : start + _BLOCK])
        firsts = np.flatnonzero(np.diff(self.owners, prepend=-1))
        first[self.owners[firsts]] = each[firsts]
        if heading:
            several = np.diff(np.append(firsts, len(each))) > 1
            each[firsts[several]] = -1.0
        found[self.owners[firsts]] = np.maximum.reduceat(each, firsts)
        return {"vectors": found, "heading": first}


def read_view(reader: Reader, kind: str, state: KindState, before: View | None) -> View:
    """Numbers and lengths are read anew; vectors of items that did not change are taken over."""
    rows = item_measures(reader, kind)
    numbers = np.array([row[0] for row in rows], np.int64)
    lengths, title_lengths, priors = np.array([row[1:] for row in rows], float).reshape(-1, 3).T
    view = View(
        state,
        numbers,
        lengths,
        np.maximum(1.0, title_lengths),
        priors,
        np.zeros(0, np.int64),
        np.zeros((0, 0), np.float16),
    )
    if before is None or before.state.catalog != state.catalog or not len(before.owners):
        return view
    changed = changed_after(reader, kind, before.state.last_seq)
    owners = before.numbers[before.owners]
    kept = ~np.isin(owners, np.array(changed, np.int64))
    places, here = view.places(owners[kept])
    return replace(view, owners=places, vectors=before.vectors[kept][here])
