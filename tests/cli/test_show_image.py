"""`ctx show --image --for`: the picture is written, and its box is where the answer stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.in_process import Ran

HANDBOOK = "saltmarsh-handbook-2025.pdf"
QUESTION = "By when must I use up last year's leftover holidays?"


def test_the_box_is_where_the_answer_stands(call: Callable[..., Ran], sample_index: Path, tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.png", tmp_path / "marked.png"
    where = ("--index", str(sample_index))
    assert call("show", HANDBOOK, "7", "--image", str(plain), *where).code == 0
    ran = call("show", HANDBOOK, "7", "--image", str(marked), "--for", QUESTION, "--json", *where)
    assert ran.code == 0
    x0, y0, x1, y1 = ran.document["regions"][0]["box"]
    # "Up to three unused days move into the new year. They lapse if they are not taken by 30 April."
    assert (x0 < 0.15, x1 > 0.8) == (True, True)
    assert 0.25 < y0 < 0.29
    assert 0.31 < y1 < 0.35
    before, after = _pixels(plain), _pixels(marked)
    assert before.shape == after.shape
    assert max(before.shape[:2]) == 1280
    height, width = before.shape[:2]
    changed = np.abs(before - after).sum(axis=2) > 0
    assert changed[int((y0 + y1) / 2 * height), int((x0 + x1) / 2 * width)]
    assert not changed[: int(0.2 * height)].any()


def test_a_scan_is_marked_where_ocr_read_the_answer(call: Callable[..., Ran], sample_index: Path) -> None:
    question = "How long is the span of the bridge?"
    ran = call("show", "footbridge", "1", "--for", question, "--json", "--index", str(sample_index))
    assert ran.document["ocr"] is True
    _, y0, _, y1 = ran.document["regions"][0]["box"]
    assert 0.37 < y0 < y1 < 0.45


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (("--for", "anything"), 2, "--image"),
        (("--image", "page.txt"), 2, "no picture"),
        (("--image", "nowhere/page.png"), 2, "no folder"),
    ],
)
def test_what_makes_no_sense_is_said(
    call: Callable[..., Ran], sample_index: Path, args: tuple[str, ...], code: int, word: str
) -> None:
    ran = call("show", HANDBOOK, "7", *args, "--index", str(sample_index))
    assert (ran.code, word in ran.err) == (code, True)


def test_a_page_without_an_image(call: Callable[..., Ran], filled: Path, tmp_path: Path) -> None:
    ran = call("show", "crisis.pdf", "1", "--image", str(tmp_path / "p.png"), "--index", str(filled))
    assert ran.code == 3
    assert "no image" in ran.err
    assert not (tmp_path / "p.png").exists()


def _pixels(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(np.int64)
