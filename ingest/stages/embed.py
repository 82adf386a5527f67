"""A vector for every chunk, in batches, each batch a commit."""

from __future__ import annotations

from collections.abc import Iterator

from ingest.stages.base import Work, has_unfinished
from research.encoders import TextEncoder
from research.encoders.openai import OpenAIEncoder
from research.errors import CtxError
from research.store.catalog import ledger, vectors
from research.store.catalog.catalog import Catalog
from research.store.catalog.ledger import STAGE_VECTORS

_BATCH = 128  # chunks a commit: a few seconds of work, all that a kill can cost


class EmbedStage:
    name = "embed"

    def pending(self, work: Work) -> bool:
        return has_unfinished(work, STAGE_VECTORS) or work.encoder.is_other_than(work.catalog)

    def run(self, work: Work) -> None:
        if ledger.count_pending(work.catalog) or work.encoder.is_other_than(work.catalog):
            encoder = work.encoder.load()
            _check_window(work.catalog, encoder)
            if work.encoder.declare(work.catalog):
                work.observer.on_note(f"another model answers as {encoder.name} now; all documents are embedded anew")
            total = ledger.count_pending(work.catalog)
            if total:
                _embed(work, encoder, total)
            if isinstance(encoder, OpenAIEncoder) and encoder.halved:
                _tell_halved(work, encoder)
        ledger.close_ledger(work.catalog)


def _embed(work: Work, encoder: TextEncoder, total: int) -> None:
    done = 0
    work.observer.on_embed(done, total)
    for batch in _batches(vectors.pending_chunks(work.catalog), _BATCH):
        matrix = encoder.embed([chunk.text for chunk in batch])
        vectors.write_vectors(work.catalog, [chunk.chunk_id for chunk in batch], matrix)
        work.embedded.extend(chunk.chunk_id for chunk in batch)
        done += len(batch)
        work.observer.on_embed(done, total)


def _tell_halved(work: Work, encoder: OpenAIEncoder) -> None:
    texts, encoder.halved = encoder.halved, 0
    work.observer.on_note(
        f"passages longer than {encoder.name} takes: {texts}; the vector of each is the mean of its parts"
    )


def _check_window(catalog: Catalog, encoder: TextEncoder) -> None:
    """Chunks were cut for the encoder that first filled the index; one with a smaller window cannot take them."""
    longest = vectors.longest_chunk(catalog)
    if longest > encoder.max_tokens:
        raise CtxError(
            f"chunks of this index have up to {longest} tokens, and {encoder.name} takes {encoder.max_tokens}",
            hint="ingest into an index of its own: ctx ingest PATH --index DIR",
        )


def _batches(chunks: Iterator[vectors.PendingChunk], size: int) -> Iterator[list[vectors.PendingChunk]]:
    batch: list[vectors.PendingChunk] = []
    for chunk in chunks:
        batch.append(chunk)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
