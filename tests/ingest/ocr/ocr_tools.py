"""Images with known words in known places, and fake tesseracts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
from PIL import Image

from research.records import Box

Placed = tuple[float, float, str]  # x and baseline in points, and the words


def draw(width: float, height: float, words: Sequence[Placed], *, size: float = 12, scale: float = 2.5) -> Image.Image:
    """Words on white paper, rendered as a scanner would deliver them."""
    with pymupdf.open() as document:
        page: Any = document.new_page(width=width, height=height)
        for x, y, text in words:
            page.insert_text((x, y), text, fontsize=size)
        pixels = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csGRAY, alpha=False)
        return Image.frombytes("L", (pixels.width, pixels.height), bytes(pixels.samples))


def box_of(width: float, height: float, placed: Placed, *, size: float = 12) -> Box:
    """Where drawn words stand, from the top of the capitals to the baseline."""
    x, y, text = placed
    wide = pymupdf.get_text_length(text, fontsize=size)
    return (x / width, (y - 0.72 * size) / height, (x + wide) / width, y / height)


def noisy(image: Image.Image, *, seed: int = 7, strength: int = 28) -> Image.Image:
    """The image with grain, as of an old scanner."""
    grain = np.random.default_rng(seed).normal(0, strength, (image.height, image.width))
    return Image.fromarray(np.clip(np.asarray(image, dtype=float) + grain, 0, 255).astype(np.uint8))


def skewed(image: Image.Image, degrees: float) -> Image.Image:
    return image.rotate(degrees, resample=Image.Resampling.BICUBIC, fillcolor=255)


def scan(path: Path, images: Sequence[Image.Image], *, width: float = 612, height: float = 792) -> Path:
    """A PDF of pages that are nothing but a picture."""
    with pymupdf.open() as document:
        for image in images:
            page: Any = document.new_page(width=width, height=height)
            page.insert_image(page.rect, stream=png(image))
        document.save(path)
    return path


def png(image: Image.Image) -> bytes:
    import io

    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


@dataclass(frozen=True)
class FakeTesseract:
    """A program that answers like tesseract 5 until it is given an image."""

    folder: Path

    def write(self, on_image: str, *, version: str = "5.9.9", languages: str = "eng") -> Path:
        program = self.folder / "tesseract"
        listed = "\n".join(languages.split())
        program.write_text(
            "#!/bin/sh\n"
            f'case "$1" in\n--version) echo "tesseract {version}"; exit 0;;\n'
            f'--list-langs) printf "List of languages\\n{listed}\\n"; exit 0;;\nesac\n'
            f"{on_image}\n"
        )
        program.chmod(0o755)
        return program
