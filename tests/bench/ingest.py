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

from research.encoders.registry import load_text_encoder
from research.store.catalog import Catalog
from research.store.paths import IndexPaths
from tests.bench.speed import SAMPLES
from tests.bench.table import line, title


def run() -> None:
    title("Ingest of data/samples, beside the bare encoder on the same chunks")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "index"
        started = time.perf_counter()
        summary = _ctx("ingest", str(SAMPLES), "--json", "--index", str(root))
        whole = time.perf_counter() - started
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        texts = _chunk_texts(root)
        again = time.perf_counter()
        _ctx("ingest", str(SAMPLES), "--json", "--index", str(root))
        second = time.perf_counter() - again
    encoder = load_text_encoder()
    encoder.embed(texts[:2])
    started = time.perf_counter()
    encoder.embed(texts)
    bare = time.perf_counter() - started
    pages = int(str(summary["pages"]))
    line("whole command", f"{whole:.1f} s", f"{pages} pages, {len(texts)} chunks: {pages / whole:.1f} pages/s")
    line("bare encoder, same chunks, both cores", f"{bare:.1f} s", f"{pages / bare:.1f} pages/s")
    line("ingest speed as share of the bare encoder", f"{bare / whole:.2f}", "aim: >= 0.8 (start-up included)")
    line("second run, nothing changed", f"{second:.2f} s")
    line("peak memory of the command", f"{memory:.0f} MB")


def _ctx(*arguments: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-m", "cli.main", *arguments], capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _chunk_texts(root: Path) -> list[str]:
    with Catalog(IndexPaths(root)) as catalog:
        rows = catalog.connection.execute("SELECT context, text FROM chunks").fetchall()
    return [f"{context}\n{zlib.decompress(text).decode()}" for context, text in rows]
