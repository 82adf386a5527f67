"""What memories cost as they grow: telling them, and recalling among 1,000, 10,000 and 100,000 of one tenant.

The sizes are asked in turns, so that a machine's mood meets all of them. Vectors are made up; words are not.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from research.encoders.minilm import MiniLMEncoder
from research.index import Index
from research.memories import NewMemory
from tests.bench.made import Words
from tests.bench.table import line, median, title

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 40
A_BATCH = 2_000
_WORDS = 22  # of a memory, as in LoCoMo
_TOPICS = 400
_A_SESSION = 25
_MOST_GROWTH = 6.0


def run(sizes: tuple[int, ...] = SIZES) -> None:
    title("Memories: told in batches, and recalled warm as a tenant has more of them")
    words = Words()
    with tempfile.TemporaryDirectory() as folder, Index(Path(folder) / "index") as index:
        for size in sizes:
            took = _tell(index, words, size)
            line(f"{size:,} memories told", f"{size / took:.0f} a second", "aim: >= 200")
        taken = _recall(index, words, sizes)
        least = median(taken[sizes[0]])
        for size in sizes:
            times = sorted(taken[size])
            grown = f"p95 {times[int(0.95 * len(times))]:.1f} ms, {median(times) / least:.1f} of the smallest"
            line(f"warm recall among {size:,}", f"{median(times):.1f} ms", grown + f", aim: <= {_MOST_GROWTH:.0f}")
        after = _told_and_recalled(index, words, sizes)
        for size in sizes:
            line(f"one more told and recalled, {size:,}", f"{median(after[size]):.1f} ms")


def _tell(index: Index, words: Words, size: int) -> float:
    """Through the library, in batches; seconds. What is never acknowledged slowly, the vectors, are put there after."""
    taken = 0.0
    for start in range(0, size, A_BATCH):
        batch = [_memory(words, number) for number in range(start, min(size, start + A_BATCH))]
        started = time.perf_counter()
        index.memories.remember_batch(batch, tenant=str(size))
        taken += time.perf_counter() - started
    pick = np.random.default_rng(size)
    with index.catalog.snapshot() as reader:
        numbers = [number for number, _, _ in reader.memories.pending_vectors(str(size), MiniLMEncoder.name, size)]
    for start in range(0, len(numbers), A_BATCH):
        part = numbers[start : start + A_BATCH]
        made = pick.standard_normal((len(part), MiniLMEncoder.dim)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        with index.catalog.short_write() as connection:
            connection.memories.write_vectors(str(size), MiniLMEncoder.name, part, made)
    return taken


def _recall(index: Index, words: Words, sizes: tuple[int, ...]) -> dict[int, list[float]]:
    pick = np.random.default_rng(3)
    taken: dict[int, list[float]] = {size: [] for size in sizes}
    for size in sizes:
        index.memories.recall("warm", tenant=str(size))
    for topic in pick.integers(0, _TOPICS, ROUNDS).tolist():
        question = words.question(topic)
        for size in sizes:
            started = time.perf_counter()
            found = index.memories.recall(question, tenant=str(size))
            taken[size].append((time.perf_counter() - started) * 1e3)
            assert found.memories and not found.without_vectors
    return taken


def _told_and_recalled(index: Index, words: Words, sizes: tuple[int, ...]) -> dict[int, list[float]]:
    """As in a conversation: each turn tells something and asks something."""
    taken: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(10):
        for size in sizes:
            started = time.perf_counter()
            index.memories.remember_batch([_memory(words, size + number)], tenant=str(size))
            index.memories.recall(words.question(number), tenant=str(size))
            taken[size].append((time.perf_counter() - started) * 1e3)
    return taken


def _memory(words: Words, number: int) -> NewMemory:
    session = number // _A_SESSION
    speaker = ("Ann", "Bob")[number % 2]
    return NewMemory(f"{words.text(session % _TOPICS, _WORDS)} {number}", session=str(session), speaker=speaker)
