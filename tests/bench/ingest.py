"""Ingest beside the bare encoder on the same chunks, and its memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import pymupdf

from research.encoders.registry import load_text_encoder
from research.store.catalog import Catalog
from research.store.paths import IndexPaths
from tests.bench.speed import SAMPLES
from tests.bench.table import line, title

DOCUMENTS = 6


def run() -> None:
    title(f"Ingest of {DOCUMENTS} documents (all samples in one, in {DOCUMENTS} orders), beside the bare encoder")
    with tempfile.TemporaryDirectory() as folder:
        docs, root = Path(folder) / "docs", Path(folder) / "index"
        _write_documents(docs)
        text_only = _timed("ingest", str(docs), "--json", "--no-images", "--index", str(root))
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        texts, pages = _chunk_texts(root)
        again = _timed("ingest", str(docs), "--json", "--no-images", "--index", str(root))
        drawn = _timed("ingest", str(docs), "--json", "--index", str(Path(folder) / "second"))
    encoder = load_text_encoder()
    encoder.embed(texts[:2])
    started = time.perf_counter()
    encoder.embed(texts)
    bare = time.perf_counter() - started
    line("bare encoder, same chunks, both cores", f"{bare:.1f} s", f"{pages / bare:.1f} pages/s, {len(texts)} chunks")
    line("ctx ingest --no-images", f"{text_only:.1f} s", f"{pages / text_only:.1f} pages/s")
    line("  its share of the bare encoder's speed", f"{bare / text_only:.2f}", "aim: >= 0.8, start-up included")
    line("ctx ingest", f"{drawn:.1f} s", f"{pages / drawn:.1f} pages/s, {drawn / text_only:.2f} of --no-images")
    line("second run, nothing changed", f"{again:.2f} s")
    line("peak memory of one process", f"{memory:.0f} MB")


def _write_documents(folder: Path) -> None:
    """Large enough that start-up does not rule the figure; no two alike."""
    folder.mkdir()
    samples = sorted(SAMPLES.glob("*.pdf"))
    for number in range(DOCUMENTS):
        with pymupdf.open() as whole:
            for path in samples[number:] + samples[:number]:
                with pymupdf.open(path) as part:
                    whole.insert_pdf(part)
            whole.save(folder / f"volume-{number}.pdf")


def _timed(*arguments: str) -> float:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "cli.main", *arguments], capture_output=True, text=True, check=True)
    took = time.perf_counter() - started
    assert json.loads(done.stdout)["failed"] == 0
    return took


def _chunk_texts(root: Path) -> tuple[list[str], int]:
    with Catalog(IndexPaths(root)) as catalog:
        rows = catalog.connection.execute("SELECT context, text FROM chunks").fetchall()
        pages = catalog.connection.execute("SELECT COUNT(*) FROM pages").fetchone()[0]
    return [f"{context}\n{zlib.decompress(text).decode()}" for context, text in rows], int(pages)
