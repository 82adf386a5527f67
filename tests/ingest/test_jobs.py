"""What a reading process does with a job, in this process: the pool's own die by SIGKILL, and tell no coverage. Pages
survive the way from it to the catalog unchanged."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.jobs import Job, encode_page, read_pages
from ingest.worker import Worker
from research.context import packed_signals
from research.records import Block, Chunk, Page
from tests.conftest import MakePdf

TEXT = st.text(max_size=30)
BOX = st.tuples(*[st.floats(0, 1)] * 4)
BLOCK = st.builds(Block, st.sampled_from(["heading", "paragraph", "table"]), TEXT, BOX, st.integers(0, 6))
PAGE = st.builds(
    Page, st.integers(1, 9), TEXT, TEXT, TEXT, TEXT, st.integers(0, 9), blocks=st.lists(BLOCK, max_size=3).map(tuple)
)
CHUNK = st.builds(Chunk, st.integers(1, 9), st.integers(0, 9), TEXT, TEXT, st.integers(0, 256), BOX)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(PAGE, st.lists(CHUNK, max_size=3)), max_size=4))
def test_pages_come_back_as_they_were_sent(tmp_path: Path, pages: list[tuple[Page, list[Chunk]]]) -> None:
    spool = tmp_path / "spool.jsonl"
    spool.write_text("".join(encode_page(page, chunks) + "\n" for page, chunks in pages), encoding="utf-8")
    looked_at = [(replace(page, signals=packed_signals(page.markdown)), chunks) for page, chunks in pages]
    assert list(read_pages(spool)) == looked_at


def test_a_page_is_one_line() -> None:
    assert "\n" not in encode_page(Page(1, "a\nb\u2028c\rd\x85e"), [])
    assert encode_page(Page(1, "☃"), []).isascii()


def told(job: Job) -> list[dict[str, Any]]:
    """What a process says of a job, without its news of each page."""
    out = io.StringIO()
    Worker(out).run(Job.from_json(job.to_json()))
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert said[0] == {"event": "started"}
    return [message for message in said[1:] if message["event"] != "page"]


def test_pages_are_rendered(make_pdf: MakePdf, tmp_path: Path) -> None:
    path = make_pdf("a.pdf", ["One", "Two", "Three"])
    said = told(Job("render", path, "d", tmp_path / "images", skip_pages=(2,)))
    assert said == [{"event": "done", "pages": [1, 3]}]
    assert len(list((tmp_path / "images").iterdir())) == 4, "an image and a thumbnail each"


def test_pages_are_read_by_ocr(tmp_path: Path, reading_tesseract: str) -> None:
    with pymupdf.open() as written, pymupdf.open() as scanned:
        page = written.new_page(width=420, height=160)
        page.insert_text((30, 60), "Harbour master", fontsize=24)
        for _ in range(2):
            scanned.new_page(width=420, height=160).insert_image(page.rect, pixmap=page.get_pixmap(dpi=110))
        scanned.save(tmp_path / "scan.pdf")
    job = Job("ocr", tmp_path / "scan.pdf", "d", tmp_path / "spool", pages=(2,), engine="tesseract")
    read, done = told(job)
    assert (read["event"], done["event"]) == ("ocr", "done")
    assert reading_tesseract in read["page"]["markdown"]
