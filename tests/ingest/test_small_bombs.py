"""Files that ask for too much, through the whole command: reading, drawing and OCR. Longer ones are in tests/soak."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import bombs
import pytest
from bounded import Bounded, ingest

from ingest.pdf.reader import PdfReader
from tests.in_process import run_in_process

LEAST = ("added", "")

# What becomes of each. Sizes are such that a reader without bounds is noticed and a bounded one is quick.
EXPECTED = {
    "annotations": (lambda: bombs.annotations(400), LEAST),
    "claimed_count": (bombs.claimed_count, ("failed", "damaged")),
    "cyclic_outline": (lambda: bombs.outline(cyclic=True), LEAST),
    "cyclic_pages": (bombs.cyclic_pages, LEAST),
    "declared_image": (bombs.declared_image, LEAST),
    "deep_forms": (lambda: bombs.deep_forms(5_000), ("failed", "damaged")),
    "deep_outline": (lambda: bombs.outline(3_000), LEAST),
    "deep_pages": (lambda: bombs.deep_pages(2_000), LEAST),
    "deflated_content": (lambda: bombs.deflated_content(0.05), LEAST),
    "deflated_image": (lambda: bombs.deflated_image(9_000), LEAST),
    "fonts": (lambda: bombs.fonts(800), LEAST),
    "huge_xref": (bombs.huge_xref, LEAST),
    "nested_forms": (lambda: bombs.nested_forms(10), LEAST),
    "operators": (lambda: bombs.operators(400), LEAST),
    "own_form": (bombs.own_form, LEAST),
    "run_of_dots": (lambda: bombs.one_line_of(". ", 0.5), LEAST),
    "run_of_digits": (lambda: bombs.one_line_of("1", 0.5), LEAST),
    "vast_page": (bombs.vast_page, LEAST),
    "xref_stream": (lambda: bombs.xref_stream(3 << 20), ("failed", "no_pages")),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bounded, Path]:
    folder = tmp_path_factory.mktemp("bombs")
    for name, (make, _) in EXPECTED.items():
        (folder / f"{name}.pdf").write_bytes(make())
    index = tmp_path_factory.mktemp("index") / "index"
    return ingest(folder, index, "--ocr", "auto", seconds=240), index


@pytest.mark.slow
def test_each_bomb_costs_itself_at_most(ran: tuple[Bounded, Path]) -> None:
    result, _ = ran
    assert result.outcomes() == {name: expected for name, (_, expected) in EXPECTED.items()}
    assert result.code == 4


@pytest.mark.slow
def test_memory_stays_small(ran: tuple[Bounded, Path]) -> None:
    assert ran[0].megabytes < 1000  # two readers at once, each within its bound, and what measures coverage in them


def test_a_few_bombs_cost_themselves_at_most(tmp_path: Path) -> None:
    few = {name: EXPECTED[name] for name in ("cyclic_pages", "huge_xref", "nested_forms", "own_form", "xref_stream")}
    for name, (make, _) in few.items():
        (tmp_path / f"{name}.pdf").write_bytes(make())
    ran = run_in_process(
        "ingest", str(tmp_path), "--no-images", "--ocr", "off", "--json", "--index", str(tmp_path / "index")
    )
    outcomes = {Path(file["source_path"]).stem: (file["result"], file["code"]) for file in ran.document["files"]}
    assert outcomes == {name: expected for name, (_, expected) in few.items()}


def test_a_page_of_a_book_s_length_is_kept_in_part_and_told(tmp_path: Path) -> None:
    (tmp_path / "much.pdf").write_bytes(bombs.much_text(0.2))
    with PdfReader(tmp_path / "much.pdf") as reader:
        [page] = reader.pages()
        assert reader.warnings == ["page 1: text beyond 100,000 characters is left out"]
    assert 90_000 < len(page.markdown) < 120_000
    assert page.markdown.startswith("the first of them")


@pytest.mark.slow
def test_what_can_be_read_is_found(ran: tuple[Bounded, Path]) -> None:
    command = [sys.executable, "-m", "cli.main", "search", "snake strokes", "--mode", "lexical", "--json"]
    done = subprocess.run([*command, "--index", str(ran[1])], capture_output=True, check=True, timeout=60)
    found = {result["filename"] for result in json.loads(done.stdout)["results"]}
    assert found == {"own_form.pdf", "operators.pdf"}
