"""A program that stands in for tesseract, which need not be installed; and a real engine takes seconds to load."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SetTesseract = Callable[[str], None]


@pytest.fixture
def set_tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetTesseract:
    """Put a tesseract first on the path that does this with every image: a line of shell."""
    program = tmp_path / "bin" / "tesseract"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def write(on_image: str) -> None:
        program.write_text(
            '#!/bin/sh\ncase "$1" in\n--version) echo "tesseract 5.9.9"; exit 0;;\n'
            f'--list-langs) printf "List\\neng\\n"; exit 0;;\nesac\n{on_image}\n'
        )
        program.chmod(0o755)

    return write


@pytest.fixture
def blind_tesseract(set_tesseract: SetTesseract) -> None:
    """A tesseract that finds nothing in any image, at once."""
    set_tesseract("cat > /dev/null")


@pytest.fixture
def reading_tesseract(set_tesseract: SetTesseract) -> str:
    """A tesseract that reads the same line in every image; returns that line."""
    line = "The harbour fee is 42 euros"
    rows = (
        f"5\\t1\\t1\\t1\\t1\\t{n}\\t{60 + 90 * n}\\t60\\t80\\t30\\t95\\t{word}\\n"
        for n, word in enumerate(line.split())
    )
    set_tesseract(f"cat > /dev/null; printf '{''.join(rows)}'")
    return line


@pytest.fixture
def endless_tesseract(set_tesseract: SetTesseract, tmp_path: Path) -> Path:
    """A tesseract that never comes back from an image; the file it makes tells that it has begun."""
    set_tesseract(f"touch {tmp_path}/begun\nexec sleep 600")
    return tmp_path / "begun"
