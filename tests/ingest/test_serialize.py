"""Pages survive the way from the reading process to the catalog unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.jobs import encode_page, read_pages
from research.context import packed_signals
from research.records import Block, Chunk, Page

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
