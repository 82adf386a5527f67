from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.ocr import OcrNeed, count_broken, ocr_need
from research.boxes import Box
from research.records import Block, Page

PROSE = "The harbour closed in March after forty ships were lost in a single night of storm. " * 4


def page(text: str = "", *pictures: Box, error: str = "") -> Page:
    blocks = [Block("paragraph", text, (0.1, 0.05, 0.9, 0.2))] if text else []
    blocks += [Block("picture", "", box) for box in pictures]
    return Page(1, text, blocks=tuple(blocks), error=error)


def test_a_page_of_prose_needs_nothing() -> None:
    assert ocr_need(page(PROSE)) is None


def test_a_scan_is_read_whole() -> None:
    assert ocr_need(page("", (0, 0, 1, 1))) == OcrNeed("page", "no text")
    assert ocr_need(page("12", (0, 0, 1, 1))) == OcrNeed("page", "no text")


def test_outlines_and_slices_are_read_whole_too() -> None:
    """Neither is a picture the reader counts; only what it knows to be blank paper is left."""
    assert ocr_need(page("")) == OcrNeed("page", "no text")
    assert ocr_need(replace(page(""), painted=False)) is None


@pytest.mark.parametrize("glyph", ["\ufffd", "\ue012", "\x03"])
def test_broken_glyphs_are_read_whole(glyph: str) -> None:
    assert ocr_need(page(f"Th{glyph} h{glyph}rb{glyph}ur " * 10)) == OcrNeed("page", "broken glyphs")
    assert ocr_need(page(PROSE + glyph * 3)) is None
    assert ocr_need(page("A short line, no more of it. " + glyph * 5)) is None


def test_line_breaks_and_tabs_are_not_broken() -> None:
    assert count_broken("one\ttwo\nthree\r\n") == 0
    assert count_broken("\x00\ufffd\uf0b7") == 3


def test_large_pictures_beside_text_are_read_largest_first() -> None:
    small, large, tiny = (0.1, 0.3, 0.5, 0.55), (0.1, 0.6, 0.9, 0.95), (0.6, 0.3, 0.8, 0.4)
    assert ocr_need(page(PROSE, small, tiny, large)) == OcrNeed("pictures", "pictures", (large, small))


@pytest.mark.parametrize("box", [(0.1, 0.3, 0.3, 0.5), (0.0, 0.3, 1.0, 0.38), (0.5, 0.5, 0.5, 0.5)])
def test_logos_rules_and_points_are_left(box: Box) -> None:
    assert ocr_need(page(PROSE, box)) is None


def test_a_picture_under_a_page_of_text_is_its_background() -> None:
    assert ocr_need(page(PROSE, (0, 0, 1, 0.98))) is None
    assert ocr_need(page("Quarterly report, confidential", (0, 0, 1, 0.98))) == OcrNeed(
        "pictures", "pictures", ((0, 0, 1, 0.98),)
    )


def test_slices_make_one_picture() -> None:
    slices = [(0.1, 0.3 + 0.05 * i, 0.9, 0.35 + 0.05 * i) for i in range(6)]
    need = ocr_need(page(PROSE, *slices))
    assert need
    assert len(need.boxes) == 1
    assert need.boxes[0] == pytest.approx((0.1, 0.3, 0.9, 0.6))


def test_pictures_side_by_side_stay_apart() -> None:
    left, right = (0.1, 0.3, 0.45, 0.6), (0.55, 0.3, 0.9, 0.6)
    need = ocr_need(page(PROSE, left, right))
    assert need
    assert set(need.boxes) == {left, right}


def test_no_more_than_eight_pictures_a_page() -> None:
    boxes = [(x / 4, y / 3, x / 4 + 0.2445, y / 3 + 0.328) for x in range(4) for y in range(3)]
    need = ocr_need(page(PROSE, *boxes))
    assert need
    assert len(need.boxes) == 8
    assert set(need.boxes) < set(boxes)


def test_a_page_that_failed_is_left_alone() -> None:
    assert ocr_need(page("", error="the page was skipped"), force=True) is None


def test_force_reads_every_page() -> None:
    assert ocr_need(page(PROSE), force=True) == OcrNeed("page", "forced")
