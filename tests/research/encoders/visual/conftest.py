"""Pages to look at."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Page images: portrait, landscape with a chart, and a square."""
    from PIL import Image, ImageDraw

    root = tmp_path_factory.mktemp("pages")
    found = []
    for number, size in enumerate(((900, 1280), (1280, 720), (600, 600))):
        image = Image.new("RGB", size, "white")
        draw = ImageDraw.Draw(image)
        for row in range(40, size[1] - 40, 30):
            draw.rectangle((60, row, size[0] - 60 - row % (90 + 40 * number), row + 12), fill="black")
        draw.ellipse((200, 200, 400 + 50 * number, 380), fill=("red", "green", "blue")[number])
        image.save(root / f"{number}.jpg")
        found.append(root / f"{number}.jpg")
    return found
