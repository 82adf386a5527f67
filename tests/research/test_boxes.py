"""Boxes: what the arithmetic promises, whatever comes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.records import (
    WHOLE_PAGE,
    Box,
    area,
    clamped,
    contains,
    contains_center,
    fractions,
    overlap,
    pack_boxes,
    placed,
    rounded,
    scaled,
    touches,
    turned_back,
    union,
    unpack_boxes,
)

edges = st.floats(0, 1)
spans = st.tuples(edges, edges).map(sorted)
boxes = st.tuples(spans, spans).map(lambda sides: (sides[0][0], sides[1][0], sides[0][1], sides[1][1]))
LEFT, RIGHT = (0.0, 0.0, 0.4, 1.0), (0.5, 0.0, 1.0, 1.0)


@given(boxes, boxes)
def test_union_and_overlap(a: Box, b: Box) -> None:
    both, common = union([a, b]), overlap(a, b)
    assert contains(both, a) and contains(both, b)
    assert area(common) == area(overlap(b, a)) <= min(area(a), area(b))
    if area(common):
        assert touches(a, b) and contains(a, common) and contains(b, common)


def test_apart_near_and_inside() -> None:
    assert not touches(LEFT, RIGHT) and touches(LEFT, RIGHT, slack=0.11)
    assert area(overlap(LEFT, RIGHT)) == 0
    assert contains(WHOLE_PAGE, LEFT) and not contains(LEFT, WHOLE_PAGE)
    assert not contains(LEFT, (0.1, 0.1, 0.41, 0.2)) and contains(LEFT, (0.1, 0.1, 0.41, 0.2), slack=0.02)
    assert contains_center(LEFT, (0.3, 0.1, 0.49, 0.2)) and not contains_center(LEFT, (0.3, 0.1, 0.6, 0.2))
    assert contains_center(LEFT, (0.3, 0.1, 0.6, 0.2), slack=0.06)


def test_a_box_turned_inside_out_covers_nothing() -> None:
    assert area((0.5, 0.5, 0.2, 0.9)) == 0


@given(st.tuples(*[st.floats()] * 4), st.floats(), st.floats())
def test_fractions_are_a_box_on_the_page_whatever_comes(box: Box, width: float, height: float) -> None:
    x0, y0, x1, y1 = fractions(box, width, height)
    assert 0 <= x0 <= x1 <= 1 and 0 <= y0 <= y1 <= 1


def test_fractions_and_scaled_are_each_others_way_back() -> None:
    assert fractions((60.0, 200.0, 300.0, 700.0), 600, 800) == (0.1, 0.25, 0.5, 0.875)
    assert scaled((0.1, 0.25, 0.5, 0.875), 600, 800) == pytest.approx((60.0, 200.0, 300.0, 700.0))
    assert fractions((60.0, 200.0, 300.0, 700.0), 0, 800) == (0.0, 0.25, 0.0, 0.875)
    assert clamped((-1.0, 0.5, math.nan, math.inf)) == (0.0, 0.5, 0.0, 1.0)
    assert rounded((1 / 3, 0.0, 2 / 3, 1.0), 2) == (0.33, 0.0, 0.67, 1.0)


def test_placed() -> None:
    assert placed((0.5, 0.0, 1.0, 0.5), (0.2, 0.4, 0.6, 0.8)) == pytest.approx((0.4, 0.4, 0.6, 0.6))
    assert placed(WHOLE_PAGE, RIGHT) == RIGHT


@given(boxes, st.sampled_from([0, 90, 180, 270]))
def test_turning_on_to_the_full_circle_changes_nothing(box: Box, turn: int) -> None:
    assert turned_back(turned_back(box, turn), 360 - turn) == pytest.approx(box, abs=2e-5)


@given(st.lists(boxes, max_size=5))
def test_stored_boxes_come_back(some: list[Box]) -> None:
    stored = pack_boxes(some)
    assert len(stored) == 8 * len(some)
    for before, after in zip(some, unpack_boxes(stored), strict=True):
        assert after == pytest.approx(before, abs=1 / 65535)


def test_boxes_outside_the_page_are_stored_at_its_edge() -> None:
    assert unpack_boxes(pack_boxes([(-0.1, 0.5, 1.1, 2.0)])) == [pytest.approx((0.0, 0.5, 1.0, 1.0), abs=1e-4)]
