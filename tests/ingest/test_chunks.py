"""Chunks: nothing lost, nothing over the window, nothing empty, reading order kept."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.chunks import MAX_CONTEXT, chunk_page, context_line
from research.encoders.minilm import MiniLMEncoder
from research.records import Block, BlockKind, Box, Chunk, Page
from research.text import embedding_text
from tests.pace import draws

ENCODER = MiniLMEncoder(threads=1)
count = ENCODER.count_tokens
BOX: Box = (0.1, 0.1, 0.9, 0.2)
SENTENCE = "The committee reviewed the figures for the northern region and asked for a second opinion. "


def page_of(*blocks: Block, section: str = "") -> Page:
    return Page(7, "\n\n".join(block.text for block in blocks), section_path=section, blocks=blocks)


def paragraph(text: str, box: Box = BOX) -> Block:
    return Block("paragraph", text, box)


def heading(text: str) -> Block:
    return Block("heading", f"## {text}", BOX, level=2)


def chunks_of(page: Page, title: str = "", window: int = 256) -> list[Chunk]:
    return chunk_page(page, title=title, count=count, window=window)


def dense(text: str) -> str:
    return re.sub(r"\s", "", text)


words = st.one_of(
    st.sampled_from(
        ["water", "supply", "Grüße", "e.g.", "3.14", "end.", "Why?", "漢字仮名。", "a|b", "…", "\u00a0", "ﬁ", "각"]
    ),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
    st.sampled_from(["x" * 300, "漢" * 400, "." * 350, "ab-" * 150]),
)
texts = st.lists(words, max_size=120).map(" ".join)
lines = st.lists(texts, max_size=6).map("\n".join)
kinds = st.sampled_from(["heading", "paragraph", "list", "code", "picture"])
boxes = st.tuples(*[st.floats(0, 1)] * 4)
blocks = st.builds(Block, kinds, st.one_of(texts, lines), boxes)


@draws(50)
@given(st.lists(blocks, max_size=8), texts, texts, st.integers(32, 256))
def test_nothing_lost_nothing_too_long(some: list[Block], title: str, section: str, window: int) -> None:
    page = page_of(*some, section=section)
    chunks = chunks_of(page, title, window)
    assert dense("".join(chunk.text for chunk in chunks)) == dense("".join(block.text for block in some))
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.text.strip()
        assert chunk.page == 7
        assert chunk.tokens == count(embedding_text(chunk.context, chunk.text)) <= window - 2
        assert count(chunk.context) <= MAX_CONTEXT


@draws(30)
@given(st.lists(st.lists(texts, min_size=1, max_size=4).map(" | ".join), min_size=1, max_size=12), st.integers(48, 256))
def test_tables_keep_every_row_in_order(rows: list[str], window: int) -> None:
    table = "\n".join(f"| {row} |" for row in rows)
    chunks = chunks_of(page_of(Block("table", table, BOX)), window=window)
    # The header may be there more than once, so the table is a subsequence of what the chunks hold.
    found = iter(dense("".join(chunk.text for chunk in chunks)))
    assert all(character in found for character in dense(table))
    assert all(chunk.text.strip() and chunk.tokens <= window - 2 for chunk in chunks)


@draws(200)
@given(st.lists(texts, max_size=5), st.sampled_from([" ", "\n", "\n\n", "\t", " \r\n"]))
def test_token_counts_add_up_across_blanks(parts: list[str], blank: str) -> None:
    assert count(blank.join(parts)) == sum(count(part) for part in parts)


def test_a_short_page_is_one_chunk_with_context_and_box() -> None:
    first, second = (0.1, 0.1, 0.5, 0.2), (0.2, 0.3, 0.9, 0.4)
    page = page_of(paragraph("One idea.", first), paragraph("Another one.", second), section="Intro > Scope")
    (chunk,) = chunks_of(page, "Annual report")
    assert chunk.text == "One idea.\n\nAnother one."
    assert chunk.context == "Annual report > Intro > Scope"
    assert embedding_text(chunk.context, chunk.text) == "Annual report > Intro > Scope\nOne idea.\n\nAnother one."
    assert chunk.box == (0.1, 0.1, 0.9, 0.4)


def test_a_heading_stays_with_what_follows() -> None:
    body = SENTENCE * 8
    chunks = chunks_of(page_of(paragraph(body), heading("Budget"), paragraph(body), heading("Risks"), paragraph(body)))
    assert len(chunks) == 3
    assert chunks[1].text.startswith("## Budget")
    assert chunks[2].text.startswith("## Risks")
    assert not any(chunk.text.rstrip().endswith(("Budget", "Risks")) for chunk in chunks)


def test_a_later_part_of_a_section_names_its_heading_in_the_context() -> None:
    chunks = chunks_of(page_of(heading("Budget"), paragraph(SENTENCE * 40), section="Plan"), "Report")
    assert chunks[0].context == "Report > Plan"
    assert all(chunk.context == "Report > Plan > Budget" for chunk in chunks[1:])


def test_long_text_breaks_between_sentences_and_fills_the_window() -> None:
    chunks = chunks_of(page_of(paragraph(SENTENCE * 60)))
    assert all(chunk.text.startswith("The committee") and chunk.text.rstrip().endswith(".") for chunk in chunks)
    assert all(chunk.tokens > 200 for chunk in chunks[:-1])


def test_a_few_words_at_the_end_do_not_stand_alone() -> None:
    chunks = chunks_of(page_of(paragraph(SENTENCE * 16), paragraph("Thank you all.")))
    assert len(chunks) == 2
    assert chunks[1].tokens > 50


def test_short_blocks_merge() -> None:
    assert len(chunks_of(page_of(*[paragraph(f"Short line {i}.") for i in range(20)]))) == 1


def test_a_table_repeats_its_header() -> None:
    rows = "\n".join(f"| region {i} | {i * 17} | {i * 3} % |" for i in range(60))
    chunks = chunks_of(page_of(Block("table", f"| Region | Sales | Growth |\n|---|---|---|\n{rows}", BOX)))
    assert len(chunks) > 2
    assert all(chunk.text.startswith("| Region | Sales | Growth |\n|") for chunk in chunks)
    assert sum(chunk.text.count("| region 31 |") for chunk in chunks) == 1


def test_code_breaks_between_lines_and_keeps_its_indents() -> None:
    code = "\n".join(f"    if value_{i} > {i}:\n        return compute(value_{i})" for i in range(60))
    chunks = chunks_of(page_of(Block("code", code, BOX)))
    lines_found = [line for chunk in chunks for line in chunk.text.split("\n")]
    assert lines_found == code.split("\n")


def test_a_blank_page_has_no_chunks() -> None:
    assert chunks_of(page_of(Block("picture", "", BOX), paragraph("  \n "))) == []
    assert chunks_of(Page(1, "")) == []


def test_context_keeps_title_and_innermost_section() -> None:
    sections = ["Part one of the long story", "Chapter two and what it tells", "Section three"]
    line = context_line("Handbook", sections, count, 9)
    assert line == "Handbook > Section three"
    assert context_line("", [], count, 48) == ""
    assert context_line("Plan", ["Plan", "Costs"], count, 48) == "Plan > Costs"
    assert 0 < count(context_line("漢" * 500, ["word " * 500], count, 48)) <= 48


def test_counts_that_do_not_add_up_still_fit() -> None:
    def joining(text: str) -> int:  # as if every blank were a token of its own
        return len(text.split()) + len(re.findall(r"\s", text))

    chunks = chunk_page(page_of(paragraph("word " * 900)), title="T", count=joining, window=64)
    assert all(chunk.tokens == joining(embedding_text(chunk.context, chunk.text)) <= 62 for chunk in chunks)
    assert dense("".join(chunk.text for chunk in chunks)) == "word" * 900


def test_a_window_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        chunks_of(page_of(paragraph("text")), window=8)


def counted(page: Page) -> int:
    """Characters handed to the tokenizer while a page is cut, the cost that could run away."""
    seen = 0

    def counting(text: str) -> int:
        nonlocal seen
        seen += len(text)
        return count(text)

    chunk_page(page, title="", count=counting)
    return seen


def test_the_tokenizer_sees_the_text_a_few_times_at_most() -> None:
    page = page_of(*[paragraph(SENTENCE * 12) for _ in range(50)])
    assert counted(page) < 4 * len(page.markdown)


@pytest.mark.parametrize("kind", ["paragraph", "code", "table"])
def test_hostile_blanks_and_long_runs_stay_linear(kind: BlockKind) -> None:
    text = "a" + " " * 20_000 + "b" + "\n \n" * 5_000 + "。" * 2_000
    page = page_of(Block(kind, text, BOX))
    assert counted(page) < 8 * len(text)
    assert dense("".join(chunk.text for chunk in chunks_of(page))).count("。") == 2_000
