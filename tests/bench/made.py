"""Indexes of any size, made without PDFs or an encoder: text with real word frequencies, vectors in clusters.

They are filled through the same calls as a run of `ctx ingest`, so what is measured on them is the real store.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from research.encoders import VOCABULARY as VOCABULARY_FILE
from research.encoders.minilm import MiniLMEncoder
from research.records import WHOLE_PAGE, Chunk, DocumentInfo, Page
from research.store import STOP_WORDS, Catalog, FileStamp, IndexPaths
from research.store import publish as writer

VOCABULARY = 60_000
WORDS_A_PAGE = 320
SHARE_OF_STOP_WORDS = 0.4
_STOP_WORDS = ("the", "of", "and", "to", "in", "a", "is", "for", "that", "on", "as", "with", "by", "at", "from", "are")
_PAGES_A_DOCUMENT = (4, 160)
_TOPICS = 400
_VECTORS_A_COMMIT = 20_000

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Filling:
    """Seconds each step of filling took."""

    text: float
    vectors: float
    publishing: float


class Words:
    """Makes text: one Zipf-like order of words for all, and one of its own for every topic."""

    def __init__(self, seed: int = 0) -> None:
        self._pick = np.random.default_rng(seed)
        self.vocabulary = _vocabulary()
        # Zipf–Mandelbrot: the commonest stands on nearly every page, most of the vocabulary on a few.
        weights = 1.0 / (np.arange(VOCABULARY) + 2.7)
        self._cumulated = np.cumsum(weights / weights.sum())

    def text(self, topic: int, count: int) -> str:
        """`count` words: stop words, words everybody uses, and words of the topic."""
        ranks = np.searchsorted(self._cumulated, self._pick.random(count))
        # A topic has its own favourites: the same frequencies over a shifted vocabulary.
        of_topic = self._pick.random(count) < 0.4
        ranks = np.where(of_topic, (ranks * 7 + topic * 131 + 500) % VOCABULARY, np.minimum(ranks, VOCABULARY - 1))
        stops = self._pick.random(count) < SHARE_OF_STOP_WORDS
        kinds = self._pick.integers(0, len(_STOP_WORDS), count)
        chosen = [
            _STOP_WORDS[kind] if stop else self.vocabulary[rank]
            for rank, stop, kind in zip(ranks.tolist(), stops.tolist(), kinds.tolist(), strict=True)
        ]
        chosen[14::15] = [f"{word}." for word in chosen[14::15]]
        return " ".join(chosen)

    def question(self, topic: int) -> str:
        """As people ask: a few common words, a few of the topic."""
        return f"What is the {self.text(topic, 12).replace('.', '')}?"


def _vocabulary() -> list[str]:
    """Words of the encoder's own list, which stands in order of frequency, and behind them compounds of two."""
    listed = VOCABULARY_FILE.read_text("utf-8").split()
    plain = [word for word in listed if word.isascii() and word.isalpha() and len(word) > 2 and word not in STOP_WORDS]
    pick, found = random.Random(0), dict.fromkeys(plain)
    while len(found) < VOCABULARY:
        found[pick.choice(plain) + pick.choice(plain)] = None
    return list(found)


def fill(root: Path, pages: int, chunks_a_page: int) -> Filling:
    """A published index of exactly `pages` pages."""
    with Catalog(IndexPaths(root), writable=True) as catalog:
        started = time.perf_counter()
        _write_text(catalog, pages, chunks_a_page)
        read = time.perf_counter()
        _write_vectors(catalog)
        embedded = time.perf_counter()
        writer.publish(catalog)
        return Filling(read - started, embedded - read, time.perf_counter() - embedded)


def _write_text(catalog: Catalog, pages: int, chunks_a_page: int) -> None:
    words, pick, left, number = Words(), np.random.default_rng(1), pages, 0
    while left:
        size = min(left, int(pick.integers(*_PAGES_A_DOCUMENT)))
        _add(catalog, words, number, size, chunks_a_page)
        left -= size
        number += 1


def _add(catalog: Catalog, words: Words, number: int, size: int, chunks_a_page: int) -> None:
    topic = number % _TOPICS
    title = words.text(topic, 6)
    name = f"{'-'.join(words.text(topic, 3).replace('.', '').split())}-{2000 + number % 26}-{number}.pdf"
    path = f"/made/{name}"
    sha256 = hashlib.sha256(path.encode()).hexdigest()
    info = DocumentInfo(sha256[:16], name, "pdf", title, size, "2026-01-01T00:00:00+00:00", path, 1, sha256)
    read = (_page(words, topic, title, page, chunks_a_page) for page in range(1, size + 1))
    catalog.documents.add(info, FileStamp(path, 1, 1, 1, number), read, reader_version=1)


def _page(words: Words, topic: int, title: str, number: int, chunks_a_page: int) -> tuple[Page, list[Chunk]]:
    section = words.text(topic, 3)
    parts = [words.text(topic, WORDS_A_PAGE // chunks_a_page) for _ in range(chunks_a_page)]
    page = Page(number, "\n\n".join([f"# {section}", *parts]), section_path=section, parent_heading=section)
    chunks = [Chunk(number, n, part, f"{title} > {section}", 200, WHOLE_PAGE) for n, part in enumerate(parts)]
    return page, chunks


def _write_vectors(catalog: Catalog) -> None:
    encoder = MiniLMEncoder()
    catalog.chunks.set_encoder(encoder.name, encoder.dim)
    catalog.visual.set_encoder(f"regions:{encoder.name}", encoder.dim)
    pick = np.random.default_rng(2)
    topics = pick.standard_normal((_TOPICS, encoder.dim)).astype(np.float32)
    waiting = (chunk.chunk_id for chunk in catalog.chunks.pending())
    while part := list(islice(waiting, _VECTORS_A_COMMIT)):
        catalog.chunks.write(part, _clustered(topics, len(part), pick))
    catalog.ledger.close()


def _clustered(topics: Floats, count: int, pick: np.random.Generator) -> Floats:
    """Chunks come document by document: runs of neighbours near one topic, each with something of its own."""
    runs = np.repeat(pick.integers(0, len(topics), count // 50 + 1), 50)[:count]
    found: Floats = topics[runs] + pick.standard_normal((count, topics.shape[1])).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def questions(count: int) -> Iterator[str]:
    words, pick = Words(), np.random.default_rng(3)
    return (words.question(int(topic)) for topic in pick.integers(0, _TOPICS, count))
