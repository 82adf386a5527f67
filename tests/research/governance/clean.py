"""Sentences of real pages in which nothing has to go."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pymupdf

_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def of_page(page: pymupdf.Page) -> list[str]:
    text = re.sub(r"\s+", " ", " ".join(block[4] for block in page.get_text("blocks") if block[6] == 0))
    return [each for each in _END.split(text) if 40 <= len(each) <= 300 and each.count(" ") >= 6]


def every(pdfs: Sequence[Path]) -> Iterator[str]:
    for path in pdfs:
        with pymupdf.open(path) as document:
            for page in document:
                yield from of_page(page)


def some(pdfs: Sequence[Path], count: int, seed: int) -> list[str]:
    """One sentence of each of so many pages, the same ones for the same seed."""
    pick = random.Random(seed)
    found: dict[str, None] = {}
    for _ in range(count * 30):
        if len(found) == count:
            break
        with pymupdf.open(pick.choice(pdfs)) as document:
            sentences = of_page(document[pick.randrange(len(document))])
        if sentences:
            found.setdefault(pick.choice(sentences))
    return list(found)
