"""Late interaction beside one bare matmul on the same data, and what packing page vectors costs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from research.encoders import PackedPages, pack, score, stack
from research.encoders.maxsim import Bits, maxsim
from tests.bench.table import line, title

PAGES, VECTORS, DIM, TOKENS = 1000, 800, 128, 20
ROUNDS = 15
Floats = NDArray[np.float32]


def run() -> None:
    title(f"MaxSim, 1 question × {PAGES} pages × {VECTORS} × {DIM} (best of {ROUNDS}, taken in turns)")
    pages, question = _made()
    offsets = np.arange(0, len(pages) + 1, VECTORS)
    packed = {bits: _packed(pages, bits) for bits in (16, 1)}
    half = pages.astype(np.float16)
    took = _best(
        {
            "bare": lambda: question @ pages.T,
            "f32": lambda: maxsim(question, pages, offsets),
            "f16": lambda: maxsim(question, half, offsets),
            **{f"{bits} bit": lambda kept=kept: score(question, kept) for bits, kept in packed.items()},
        }
    )
    bare, exact = took["bare"], maxsim(question, pages, offsets)
    line("one bare matmul", f"{bare * 1e3:.0f} ms")
    line("MaxSim of float32 vectors", f"{took['f32'] * 1e3:.0f} ms", f"{took['f32'] / bare:.2f} of it; aim: <= 1.5")
    off = _farthest(exact, maxsim(question, half, offsets))
    line("MaxSim of float16", f"{took['f16'] * 1e3:.0f} ms", f"{took['f16'] / bare:.2f}, {_size(half)}, {off}")
    for bits, kept in packed.items():
        off = _farthest(exact, score(question, kept))
        size, ms = _size(kept.values, kept.scales), took[f"{bits} bit"] * 1e3
        line(f"MaxSim of {bits} bits", f"{ms:.0f} ms", f"{ms / bare / 1e3:.2f}, {size}, {off}")
    sketch, best = score(question, packed[1]), np.argsort(-exact)[:10]
    rank = np.argsort(np.argsort(-sketch))[best].max() + 1
    line("exact top 10 among the sketches' first", f"{rank}")


def _made() -> tuple[Floats, Floats]:
    """Pages with a topic and words of their own, and a question about one of them."""
    pick = np.random.default_rng(0)
    words = pick.standard_normal((400, DIM), dtype=np.float32)
    pages = np.empty((PAGES * VECTORS, DIM), np.float32)
    for page in range(PAGES):
        own = words[pick.choice(pick.integers(0, 400, 24), VECTORS)]
        topic = 0.3 * pick.standard_normal(DIM, dtype=np.float32)
        pages[page * VECTORS : (page + 1) * VECTORS] = own + topic + 0.8 * pick.standard_normal(own.shape)
    _unit(pages)
    question = pages[pick.integers(0, VECTORS, TOKENS)] + 0.06 * pick.standard_normal((TOKENS, DIM), dtype=np.float32)
    _unit(question)
    return pages, question


def _unit(vectors: Floats) -> None:
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)


def _packed(pages: Floats, bits: Bits) -> PackedPages:
    return stack([pack(part, bits=bits) for part in pages.reshape(PAGES, VECTORS, DIM)])


def _best(tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of the quickest round each; in turns, so that a busy moment of the machine meets all of them."""
    found = dict.fromkeys(tasks, float("inf"))
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            found[name] = min(found[name], time.perf_counter() - started)
    return found


def _size(*arrays: NDArray[np.generic]) -> str:
    return f"{sum(array.nbytes for array in arrays) / PAGES / 1e3:.0f} kB a page"


def _farthest(exact: Floats, other: Floats) -> str:
    return f"scores off by {np.abs(exact - other).max():.0e}"
