"""Page vectors as bytes for the catalog: small integers with one scale a vector.

Measured on 1,000 pages × 800 × 128 with 20 question vectors (tests/bench/maxsim.py): 16 bits keep MaxSim scores
within 4e-5 and decode faster than float16, which is as large and off by 5e-4; 8 bits halve the size but move scores
by 1e-2, more than the 1e-3 within which a score equals the model's own. One bit, the sign alone, is a sketch: a
thirteenth of the size, good enough to choose candidates whose scores are then computed from the full vectors.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Bits = Literal[1, 8, 16]
FULL: Bits = 16
SKETCH: Bits = 1

_HEAD = struct.Struct("<BxHI")  # bits, dim, number of vectors
_LARGEST = {8: 127, 16: 32767}
_TYPES = {1: "u1", 8: "i1", 16: "<i2"}


@dataclass(frozen=True, slots=True)
class PackedPages:
    """Vectors of many pages in one block: page i owns the rows from `offsets[i]` to `offsets[i + 1]`.
    `values` is (total_vectors, dim), or (total_vectors, dim / 8) bytes of sketches."""

    bits: Bits
    dim: int
    values: NDArray[Any]
    scales: NDArray[np.float32]  # (total_vectors,)
    offsets: NDArray[np.int64]  # (n_pages + 1,)


def pack(vectors: NDArray[np.float32], *, bits: Bits = FULL) -> bytes:
    """Vectors (n_vectors, dim) as a blob that knows its own shape."""
    import numpy as np

    count, dim = vectors.shape
    if bits == 1:
        scales = np.sqrt(np.mean(np.square(vectors, dtype=np.float32), axis=1)).astype("<f4")
        values = np.packbits(vectors > 0, axis=1)
    else:
        scales = (np.abs(vectors).max(axis=1, initial=0.0) / _LARGEST[bits]).astype("<f4")
        divisors = np.where(scales > 0, scales, 1.0)
        values = np.rint(vectors / divisors[:, None]).astype(_TYPES[bits])
    return b"".join((_HEAD.pack(bits, dim, count), scales.tobytes(), values.tobytes()))


def unpack(blob: bytes) -> NDArray[np.float32]:
    """The vectors of one blob, (n_vectors, dim), as near as its bits allow."""
    import numpy as np

    pages = stack([blob])
    vectors = decode(pages.values, pages.bits, np.empty((len(pages.values), pages.dim), np.float32))
    vectors *= pages.scales[:, None]
    return vectors


def shape_of(blob: bytes) -> tuple[int, int, int]:
    """Bits, dim and number of vectors. Raises ValueError for a blob that `pack` did not make of unit vectors."""
    import numpy as np

    if len(blob) < _HEAD.size:
        raise ValueError("a page's vectors have no head")
    bits, dim, count = (int(value) for value in _HEAD.unpack_from(blob))
    body = _HEAD.size + 4 * count
    if bits not in _TYPES or not dim or len(blob) != body + -(-dim * bits // 8) * count:
        raise ValueError(f"a page's vectors are not {count} of {dim} dimensions in {bits} bits")
    scales = np.frombuffer(blob[_HEAD.size : body], dtype="<f4")
    if not np.all((scales >= 0) & (scales <= 1)):  # false for NaN, too
        raise ValueError("a page's vectors have scales that are none")
    return bits, dim, count


def stack(blobs: Sequence[bytes]) -> PackedPages:
    """Many pages' blobs side by side, still packed. All must have the same bits and dim."""
    import numpy as np

    heads = [_HEAD.unpack_from(blob) for blob in blobs]
    kinds = {(bits, dim) for bits, dim, _ in heads}
    if len(kinds) > 1:
        raise ValueError(f"pages of different encoders or packings: {sorted(kinds)}")
    bits, dim = kinds.pop() if kinds else (FULL, 1)
    width = -(-dim * bits // 8)
    scales, values = [], []
    for blob, (_, _, count) in zip(blobs, heads, strict=True):
        body = _HEAD.size + 4 * count
        if len(blob) != body + width * count:
            raise ValueError(f"a page's vectors are cut off: {len(blob)} bytes of {body + width * count}")
        scales.append(blob[_HEAD.size : body])
        values.append(blob[body:])
    kind = np.dtype(_TYPES[bits])
    return PackedPages(
        bits=bits,
        dim=dim,
        values=np.frombuffer(b"".join(values), dtype=kind).reshape(-1, width // kind.itemsize),
        scales=np.frombuffer(b"".join(scales), dtype="<f4"),
        offsets=np.cumsum([0, *(count for _, _, count in heads)], dtype=np.int64),
    )


def decode(values: NDArray[Any], bits: Bits | None, out: NDArray[np.float32]) -> NDArray[np.float32]:
    """Packed rows as float32 in the first rows of `out` (n, dim), scales not yet applied."""
    import numpy as np

    part = out[: len(values)]
    if bits == 1:
        np.copyto(part, np.unpackbits(values, axis=1, count=part.shape[1]), casting="unsafe")
        part *= 2
        part -= 1
    else:
        np.copyto(part, values, casting="unsafe")
    return part
