"""Arithmetic of boxes on a page."""

from __future__ import annotations

from collections.abc import Iterable

from research.records import Box


def union(boxes: Iterable[Box]) -> Box:
    """The box around them all."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return (min(left), min(top), max(right), max(bottom))


def area(box: Box) -> float:
    """The share of the page; nothing for a box turned inside out."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
