"""Bombs of full size, one `ctx ingest` each, with page images and OCR: bounded time and memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "ingest"))  # the short tests' own tools

import bombs
from bounded import ingest
from test_fuzz import make_damaged

# Reading gives a page 30 seconds, drawing 30, OCR 90 for each time it is touched, and each of them tries twice; a
# document of one page cannot take longer than all of them.
ONE_PAGE = 720.0
MEGABYTES = 1500.0

BOMBS: dict[str, Callable[[], bytes]] = {
    "annotations": bombs.annotations,
    "claimed_count": bombs.claimed_count,
    "cyclic_outline": lambda: bombs.outline(cyclic=True),
    "cyclic_pages": bombs.cyclic_pages,
    "declared_image": bombs.declared_image,
    "deep_forms": bombs.deep_forms,
    "deep_outline": bombs.outline,
    "deep_pages": bombs.deep_pages,
    "deflated_content": lambda: bombs.deflated_content(8),
    "deflated_image": bombs.deflated_image,
    "fonts": bombs.fonts,
    "huge_xref": bombs.huge_xref,
    "much_text": bombs.much_text,
    "nested_forms": bombs.nested_forms,
    "object_stream": bombs.object_stream,
    "operators": bombs.operators,
    "own_form": bombs.own_form,
    "patterns": bombs.patterns,
    "run_of_commas": lambda: bombs.one_line_of("1,234"),
    "run_of_digits": lambda: bombs.one_line_of("1"),
    "run_of_dots": lambda: bombs.one_line_of(". "),
    "run_of_letters": lambda: bombs.one_line_of("a"),
    "run_of_spaces": lambda: bombs.one_line_of(" "),
    "vast_page": bombs.vast_page,
    "xref_stream": bombs.xref_stream,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_bounded(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.pdf").write_bytes(BOMBS[name]())
    result = ingest(tmp_path / f"{name}.pdf", tmp_path / "index", "--ocr", "auto", seconds=ONE_PAGE)
    assert result.code in {0, 4}
    assert result.megabytes < MEGABYTES


def test_three_thousand_pages(tmp_path: Path) -> None:
    (tmp_path / "many.pdf").write_bytes(bombs.many_pages())
    result = ingest(tmp_path / "many.pdf", tmp_path / "index", seconds=1800)
    assert (result.code, result.summary["pages"]) == (0, 3000)
    assert result.megabytes < MEGABYTES


def test_two_hundred_damaged_files(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    make_damaged(folder, 200, seed=11)
    result = ingest(folder, tmp_path / "index", seconds=1800)
    assert len(result.summary["files"]) == 200
    assert result.code in {0, 4}
    assert result.megabytes < MEGABYTES
