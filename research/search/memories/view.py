"""What is held in memory of a tenant's memories, and how it follows the catalog.

A view never changes: what was told since makes a new one, which shares what stayed. Views are kept by tenant and
encoder, the last used; what another tenant has is in another view, so no search, count or comparison can meet it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from research.search.memories.words import Columns, Floats, Rows, Segment, norms_of
from research.store import Reader, SearchedRow, TenantState, analyze, cosines, rows_after, tenant_state, vectors_of

_MOST_ROWS = 250_000  # of all views together; about 400 MB. One tenant with more is held nevertheless
_MOST_PARTS = 8  # segments or blocks of a view, before small ones are put together
_LARGE = 4  # times as large as all the others: one that is left as it is

P = TypeVar("P", bound=Sized)


@dataclass(frozen=True, slots=True)
class Block:
    """Vectors of some memories: their rows, and (n, dim)."""

    rows: Rows
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def together(cls, blocks: Sequence[Block]) -> Block:
        return cls(np.concatenate([b.rows for b in blocks]), np.concatenate([b.vectors for b in blocks]))


@dataclass(frozen=True, slots=True)
class View:
    """A tenant's memories, ready to be searched."""

    tenant: str
    state: TenantState
    columns: Columns
    segments: tuple[Segment, ...]
    blocks: tuple[Block, ...]
    earlier: Rows
    later: Rows
    norms: Floats
    without_vectors: Rows  # those that are searched and have none

    def __len__(self) -> int:
        return len(self.columns.numbers)

    def find(self, word: str) -> tuple[Rows, int]:
        """The rows where a word stands, once for each time, and in how many."""
        found = [segment.find(word) for segment in self.segments]
        rows = found[0] if len(found) == 1 else np.concatenate([*found, np.zeros(0, np.int64)])
        rows = rows[self.columns.live[rows]]
        # A memory's words are all in one segment, and there in order.
        return rows, int(np.count_nonzero(np.diff(rows))) + 1 if len(rows) else 0

    def named(self, words: Iterable[str]) -> dict[str, set[str]]:
        """Speaker → the words of the name that are among these, for those that are named."""
        asked = set(words)
        found = {name: set(analyze(name)) & asked for name in self.columns.values["speaker"] if name}
        return {name: own for name, own in found.items() if own}

    def cosines(self, asked: NDArray[np.float32]) -> Floats:
        """With a unit vector, of each row; 0 without a vector."""
        found = np.zeros(len(self))
        for block in self.blocks:
            if block.vectors.shape[1] == len(asked):
                found[block.rows] = cosines(block.vectors, asked)
        return found

    def with_vectors(self, numbers: Sequence[int], vectors: NDArray[np.float32]) -> View:
        """Also with these; those of memories that are not searched are left out."""
        held = {int(number) for number in self.columns.numbers[self.without_vectors]}
        kept = [place for place, number in enumerate(numbers) if number in held]
        if not kept:
            return self
        rows = self.columns.rows_of([numbers[place] for place in kept])
        block = Block(rows, vectors if len(kept) == len(numbers) else vectors[kept])
        blocks = _few((*self.blocks, block), Block.together)
        return replace(self, blocks=blocks, without_vectors=_missing(self.columns, blocks))

    def close_pairs(
        self, numbers: Sequence[int], vectors: NDArray[np.float32], least: float, most: int
    ) -> list[tuple[int, int]]:
        """(number, number of one told before it) of memories whose vectors have a cosine of `least` or more, and that
        are of one speaker and kind; the closest first, `most` of each."""
        found: list[tuple[int, int]] = []
        same = ("speaker", "persona", "namespace", "type")
        for number, vector in zip(numbers, vectors, strict=True):
            rows = self.columns.rows_of([number])
            if not len(rows):
                continue
            cosines = self.cosines(vector)
            cosines[rows[0] :] = 0.0
            close = np.flatnonzero(self.columns.live & (cosines >= least))
            close = close[np.argsort(-cosines[close], kind="stable")]
            alike = [
                row for row in close if all(self.columns.codes[c][row] == self.columns.codes[c][rows[0]] for c in same)
            ]
            found += [(number, int(self.columns.numbers[row])) for row in alike[:most]]
        return found


class Views:
    """The views of an open index. Many threads may ask for them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], View] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, reader: Reader, tenant: str, encoder: str) -> View | None:
        """The tenant's memories as this reader sees them; None if there are none. `encoder`: whose vectors."""
        state = tenant_state(reader, tenant)
        if state is None:
            self.drop(tenant)
            return None
        with self._turn:
            known = self._kept.get((tenant, encoder))
        if known is None or known.state.version != state.version or known.state.last_seq > state.last_seq:
            view = _read(reader, tenant, state)
        else:
            view = known if known.state == state else _followed(known, reader, state)
        missing = view.without_vectors
        if encoder and len(missing):  # what is stored by now, by this process or another
            wanted = [int(number) for number in view.columns.numbers[missing]] if view.blocks else None
            view = view.with_vectors(*vectors_of(reader, tenant, encoder, wanted))
        self.keep(view, encoder)
        return view

    def keep(self, view: View, encoder: str) -> None:
        """In place of the one before."""
        with self._turn:
            key = (view.tenant, encoder)
            self._kept[key] = view
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > _MOST_ROWS:
                self._kept.popitem(last=False)

    def drop(self, tenant: str | None = None) -> None:
        """Let go of a tenant's, or of all."""
        with self._turn:
            for key in [key for key in self._kept if tenant in (None, key[0])]:
                del self._kept[key]


def _read(reader: Reader, tenant: str, state: TenantState) -> View:
    rows = rows_after(reader, tenant, 0)
    return _view(tenant, state, Columns.of(rows), _segments((), 0, rows), ())


def _followed(view: View, reader: Reader, state: TenantState) -> View:
    """With what was told or changed since."""
    rows = rows_after(reader, view.tenant, view.state.last_seq)
    known = set(view.columns.numbers[view.columns.rows_of([row.memory_no for row in rows])].tolist())
    changed = [row for row in rows if row.memory_no in known]
    new = [row for row in rows if row.memory_no not in known]
    segments = _segments(view.segments, len(view), new)
    return _view(view.tenant, state, view.columns.followed(changed, new), segments, view.blocks)


def _view(
    tenant: str, state: TenantState, columns: Columns, segments: tuple[Segment, ...], blocks: tuple[Block, ...]
) -> View:
    earlier, later = columns.neighbours()
    norms = norms_of(columns.lengths, earlier, later)
    return View(tenant, state, columns, segments, blocks, earlier, later, norms, _missing(columns, blocks))


def _missing(columns: Columns, blocks: tuple[Block, ...]) -> Rows:
    missing = columns.live.copy()
    for block in blocks:
        missing[block.rows] = False
    return np.flatnonzero(missing).astype(np.int64)


def _segments(before: tuple[Segment, ...], first: int, new: Sequence[SearchedRow]) -> tuple[Segment, ...]:
    held = [(place, row.body) for place, row in enumerate(new, start=first) if row.body]
    if not held:
        return before
    segment = Segment.of([place for place, _ in held], [body for _, body in held])
    return _few((*before, segment), Segment.together)


def _few(parts: tuple[P, ...], together: Callable[[Sequence[P]], P]) -> tuple[P, ...]:
    """Each part costs every search something. A large one is not copied for the sake of small ones."""
    if len(parts) <= _MOST_PARTS:
        return parts
    first, *others = sorted(parts, key=len, reverse=True)
    if len(first) > _LARGE * sum(map(len, others)):
        return first, together(others)
    return (together(parts),)
