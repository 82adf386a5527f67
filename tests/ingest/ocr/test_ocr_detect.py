from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.ocr import Boxes, ocr_need
from research.records import Block, Box, Page

PROSE = "The harbour closed in March after forty ships were lost in a single night of storm. " * 4
SMALL, LARGE, TINY = (0.1, 0.3, 0.5, 0.55), (0.1, 0.6, 0.9, 0.95), (0.6, 0.3, 0.8, 0.4)
LOGO = (0.1, 0.3, 0.3, 0.5)


def page(text: str = "", *pictures: Box, error: str = "") -> Page:
    blocks = [Block("paragraph", text, (0.1, 0.05, 0.9, 0.2))] if text else []
    blocks += [Block("picture", "", box) for box in pictures]
    return Page(1, text, blocks=tuple(blocks), error=error)


@pytest.mark.parametrize(
    ("read", "force", "need"),
    [
        (page(PROSE), False, None),
        (page(PROSE), True, ()),
        (page("", (0, 0, 1, 1)), False, ()),
        (page("12", (0, 0, 1, 1)), False, ()),
        # Outlines and slices are no pictures that the reader counts; only what it knows to be blank paper is left.
        (page(""), False, ()),
        (replace(page(""), painted=False), False, None),
        (page("", error="the page was skipped"), True, None),
        (page(PROSE, LOGO), False, None),
        (page(PROSE, (0.0, 0.3, 1.0, 0.38)), False, None),
        (page(PROSE, (0.5, 0.5, 0.5, 0.5)), False, None),
        (page(PROSE, SMALL, TINY, LARGE), False, (LARGE, SMALL)),
        # Under a page of text a picture is its background.
        (page(PROSE, (0, 0, 1, 0.98)), False, None),
        (page("Quarterly report, confidential", (0, 0, 1, 0.98)), False, ((0, 0, 1, 0.98),)),
    ],
)
def test_what_is_read_of_a_page(read: Page, force: bool, need: Boxes | None) -> None:
    assert ocr_need(read, force=force) == need


@pytest.mark.parametrize("glyph", ["\ufffd", "\ue012", "\x03"])
def test_broken_glyphs_are_read_whole(glyph: str) -> None:
    assert ocr_need(page(f"Th{glyph} h{glyph}rb{glyph}ur " * 10)) == ()
    assert ocr_need(page(PROSE + glyph * 3)) is None
    assert ocr_need(page("A short line, no more of it. " + glyph * 5)) is None
    assert ocr_need(page("one\ttwo\nthree\r\n" * 10)) is None


def test_slices_make_one_picture() -> None:
    slices = [(0.1, 0.3 + 0.05 * i, 0.9, 0.35 + 0.05 * i) for i in range(6)]
    need = ocr_need(page(PROSE, *slices))
    assert need
    assert len(need) == 1
    assert need[0] == pytest.approx((0.1, 0.3, 0.9, 0.6))


def test_pictures_side_by_side_stay_apart() -> None:
    left, right = (0.1, 0.3, 0.45, 0.6), (0.55, 0.3, 0.9, 0.6)
    need = ocr_need(page(PROSE, left, right))
    assert need
    assert set(need) == {left, right}


def test_no_more_than_eight_pictures_a_page() -> None:
    boxes = [(x / 4, y / 3, x / 4 + 0.2445, y / 3 + 0.328) for x in range(4) for y in range(3)]
    need = ocr_need(page(PROSE, *boxes))
    assert need
    assert len(need) == 8
    assert set(need) < set(boxes)
