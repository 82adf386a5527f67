"""int8 for weights, and the rescaling that moves outliers from activations into weights before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# AVX2 adds two u8*s8 products in a saturating int16. With 7-bit weights 2*255*63 fits, so the result is exact there
# and the same on every CPU; measured on AVX2, 8-bit weights are both no faster and further from fp32.
WEIGHT_RANGE = 63
TABLE_RANGE = 127  # the word table is only looked up, nothing there can saturate
SMOOTHING = 0.65  # how much of an activation's spread moves into the weights (SmoothQuant's alpha)


def quantize_columns(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(k, n) weights → int8 (k, n) and a scale for every output column (n,)."""
    scale = _scale(np.abs(matrix).max(axis=0), WEIGHT_RANGE)
    return np.rint(matrix / scale).astype(np.int8), scale


def quantize_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(words, dim) table → int8 (words, dim) and a scale for every word (words, 1)."""
    scale = _scale(np.abs(table).max(axis=1, keepdims=True), TABLE_RANGE)
    return np.rint(table / scale).astype(np.int8), scale


def smoothing_factors(
    activation_peaks: NDArray[np.float32], matrices: Sequence[NDArray[np.float32]]
) -> NDArray[np.float32]:
    """(k,) factors: divide the activation's channels by them, multiply the rows of its (n, k) matrices.

    Powers of two: exact in floating point, and the rounding hides the last-bit differences between CPUs, so a
    rebuild elsewhere gives the same file.
    """
    weight_peaks = np.maximum.reduce([np.abs(matrix).max(axis=0) for matrix in matrices])
    activations = np.log2(np.maximum(activation_peaks, activation_peaks.max() * 1e-3))
    weights = np.log2(np.maximum(weight_peaks, 1e-3))
    exponent = SMOOTHING * activations - (1 - SMOOTHING) * weights
    factors: NDArray[np.float32] = np.exp2(np.rint(exponent - exponent.mean())).astype(np.float32)
    return factors


def _scale(peaks: NDArray[np.float32], levels: int) -> NDArray[np.float32]:
    # A row of zeros (unused words) gets scale 1, not a division by zero.
    scale: NDArray[np.float32] = np.where(peaks > 0, peaks / np.float32(levels), np.float32(1)).astype(np.float32)
    return scale
