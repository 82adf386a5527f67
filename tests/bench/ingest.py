"""Ingest beside the bare encoder on the same chunks, and its memory."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import zlib
from pathlib import Path

import pymupdf

from research.encoders import load_text_encoder
from research.store import Catalog, IndexPaths
from research.text import embedding_text
from tests.bench.speed import SAMPLES
from tests.bench.table import line, median, title
from tests.bench.taken import Taken, watch

DOCUMENTS = 12
ROUNDS = 3
NO_OCR = ("--ocr", "off")
TEXT_ONLY = ("--no-images", *NO_OCR)


def run() -> None:
    title(
        f"Ingest of {DOCUMENTS} documents (all samples in one, in {DOCUMENTS} orders), beside the bare encoder"
        f" (median of {ROUNDS}, taken in turns)"
    )
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        _write_documents(docs)
        text_only, bare = [], []
        for number in range(ROUNDS):
            root = Path(folder) / f"index-{number}"
            text_only.append(_timed("ingest", str(docs), "--json", *TEXT_ONLY, "--index", str(root)))
            texts, pages = _chunk_texts(root)
            bare.append(_bare(texts))
        again = _timed("ingest", str(docs), "--json", *TEXT_ONLY, "--index", str(root))
        drawn = _timed("ingest", str(docs), "--json", *NO_OCR, "--index", str(Path(folder) / "drawn"))
    wall, bare_wall = median([taken.wall for taken in text_only]), median([wall for wall, _ in bare])
    line(
        "bare encoder, same chunks, both cores",
        f"{bare_wall:.1f} s",
        f"{pages / bare_wall:.1f} pages/s, {len(texts)} chunks",
    )
    line("ctx ingest --no-images --ocr off", f"{wall:.1f} s", f"{pages / wall:.1f} pages/s")
    of_cpu = median([cpu for _, cpu in bare]) / median([taken.cpu for taken in text_only])
    line("  its share of the bare encoder's speed", f"{bare_wall / wall:.2f}", f"aim: >= 0.8; in CPU time {of_cpu:.2f}")
    more = drawn.wall / wall
    line("ctx ingest --ocr off", f"{drawn.wall:.1f} s", f"{pages / drawn.wall:.1f} pages/s, {more:.2f} of --no-images")
    line("second run, nothing changed", f"{again.wall:.2f} s")
    line("peak memory of all its processes", f"{max(taken.memory for taken in text_only):.0f} MB")


def _bare(texts: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of embedding alone."""
    encoder = load_text_encoder()
    encoder.embed(texts[:2])
    started, cpu = time.perf_counter(), time.process_time()
    encoder.embed(texts)
    return time.perf_counter() - started, time.process_time() - cpu


def _write_documents(folder: Path) -> None:
    """Large enough that start-up does not rule the figure; no two alike."""
    folder.mkdir()
    samples = sorted(SAMPLES.glob("*.pdf"))
    for number in range(DOCUMENTS):
        with pymupdf.open() as whole:
            turned = samples[number // 2 :] + samples[: number // 2]
            for path in turned[:: -1 if number % 2 else 1]:
                with pymupdf.open(path) as part:
                    whole.insert_pdf(part)
            whole.save(folder / f"volume-{number}.pdf")


def _timed(*arguments: str) -> Taken:
    taken = watch([sys.executable, "-m", "cli.main", *arguments])
    assert json.loads(taken.stdout)["failed"] == 0
    return taken


def _chunk_texts(root: Path) -> tuple[list[str], int]:
    with Catalog(IndexPaths(root)) as catalog:
        rows = catalog.execute("SELECT context, text FROM chunks").fetchall()
        pages = catalog.execute("SELECT COUNT(*) FROM pages").fetchone()[0]
    return [embedding_text(context, zlib.decompress(text).decode()) for context, text in rows], int(pages)
