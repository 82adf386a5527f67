"""Reading processes that hang: what it costs, once and in later runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty import FaultyCtx

from research.store import Catalog, IndexPaths
from tests.conftest import write_pdf
from tests.ingest.test_deaths import (  # noqa: F401  fixtures among them
    PLACES,
    TEXT_ALONE,
    assert_whole,
    ctx,
    docs,
    failures,
    home,
    index,
    ingest,
    told,
)


@pytest.mark.slow
def test_pages_that_hung_twice_wait_for_retry(ctx: FaultyCtx, docs: Path, index: Path) -> None:  # noqa: F811
    ctx.set(**dict.fromkeys(PLACES, "hang"))
    said = ingest(ctx, docs)
    assert (said.code, ctx.met()) == (4, 6)
    assert sorted(failures(said)) == told("timeout")
    assert f"for: ctx ingest {docs} --index {index} --retry" in said.err
    later = ingest(ctx, docs)
    assert (later.code, later.document["unchanged"], failures(later)) == (0, 2, [])
    assert failures(later, "waiting_pages") == told("timeout")
    assert ctx.met() == 6, "none was tried"
    assert "ctx ingest PATH --retry" in ctx.run("status").out
    assert "animals.pdf p. 4) given up earlier, not tried in this run" in ctx.run("ingest", str(docs)).err

    ctx.clear()
    mended = ingest(ctx, docs, "--retry")
    assert (mended.code, failures(mended, "waiting_pages")) == (0, []), mended.err
    assert_whole(ctx, index)


@pytest.mark.slow
def test_what_waits_goes_on_waiting_while_another_page_is_tried_again(ctx: FaultyCtx, docs: Path, index: Path) -> None:  # noqa: F811
    ctx.set(read_1="kill", read_2="hang", ocr_3="hang")
    said = ingest(ctx, docs / "animals.pdf")
    assert sorted(failures(said)) == [
        ("animals.pdf", 1, "read", "killed"),
        ("animals.pdf", 2, "read", "timeout"),
        ("animals.pdf", 3, "ocr", "timeout"),
    ]
    ctx.clear()
    ctx.set(read_2="hang", ocr_3="hang")
    again = ingest(ctx, docs / "animals.pdf")
    assert (again.code, again.document["replaced"], ctx.met()) == (0, 1, 0)
    assert failures(again, "waiting_pages") == [
        ("animals.pdf", 2, "read", "timeout"),
        ("animals.pdf", 3, "ocr", "timeout"),
    ]
    with Catalog(IndexPaths(index)) as catalog:
        errors = [row[0] for row in catalog.connection.execute("SELECT error FROM pages ORDER BY page")]
    assert errors == ["", "the page was skipped", "OCR failed: a page took more than 0.3 seconds", ""]


@pytest.mark.slow
def test_a_file_that_hangs_as_a_whole_costs_its_time_once(ctx: FaultyCtx, docs: Path, index: Path) -> None:  # noqa: F811
    path = docs / "single.pdf"
    ctx.set(read_1="hang")
    said = ingest(ctx, path, *TEXT_ALONE)
    assert (said.code, said.document["files"][0]["code"], ctx.met()) == (4, "timeout", 2)
    later = ingest(ctx, path, *TEXT_ALONE)
    assert (later.code, later.document["files"][0]["code"], ctx.met()) == (4, "timeout", 2), "not tried"
    assert "it was not tried again" in later.err
    assert "given up     1 file (single.pdf); try again with: ctx ingest PATH --retry\n" in ctx.run("status").out
    ctx.set(read_1="hang once")
    retried = ingest(ctx, path, "--retry", *TEXT_ALONE)
    assert (retried.code, retried.document["added"], ctx.met()) == (0, 1, 3), retried.err
    assert ctx.run("status", "--json").document["given_up"] == []


def test_a_file_that_hung_is_tried_again_once_it_changes(ctx: FaultyCtx, docs: Path) -> None:  # noqa: F811
    path = docs / "single.pdf"
    ctx.set(read_1="hang")
    assert ingest(ctx, path, *TEXT_ALONE).code == 4
    ctx.clear()
    write_pdf(path, ["Another page."])
    assert ingest(ctx, path, *TEXT_ALONE).code == 0
    assert ctx.run("status", "--json").document["given_up"] == []
