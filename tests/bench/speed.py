"""The contract's performance lines, in a warm process."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ingest import Observer, ingest
from research import ChromaClient, ContextBuilder, SearchEngine
from research.settings import Settings
from research.store import IndexPaths
from tests.bench.table import line, title

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
QUESTION = "How many weeks of parental leave does the 2025 handbook give?"


def run() -> None:
    title("Contract (warm process, best of 5)")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "index"
        ingest(IndexPaths(root), [SAMPLES], settings=Settings(), observer=Observer())
        with ChromaClient(root) as client:
            _measure(client)


def _measure(client: ChromaClient) -> None:
    builder = ContextBuilder(SearchEngine(client), client)
    pick = random.Random(0)
    results = [
        {"doc_id": f"d{pick.randrange(9)}", "page": pick.randrange(9), "score": pick.random()} for _ in range(100)
    ]
    text = asyncio.run(client.get_document_markdown(client.visual_collection.get(limit=1)["ids"][0].split(":")[0]))
    sample = ((text or "") * 50)[:10_000]
    asyncio.run(builder.build_context(QUESTION))
    line("deduplicate 100 results", f"{_best(lambda: builder.deduplicate_results(results)):.2f} ms", "< 10 ms")
    line("count tokens of 10,000 characters", f"{_best(lambda: builder.estimate_tokens(sample)):.2f} ms", "< 5 ms")
    context = _best(lambda: asyncio.run(builder.build_context(QUESTION)))
    line("context of 10 sources", f"{context:.1f} ms", "< 1,000 ms")
    doc_id, page = client.visual_collection.get(limit=1)["ids"][0].split(":")
    one = _best(lambda: asyncio.run(builder.get_source_metadata(doc_id, int(page))))
    line("metadata of one source", f"{one:.2f} ms", "< 100 ms")


def _best(action: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times) * 1000
