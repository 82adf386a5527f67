"""The language OCR reads in: from the flag or the setting to tesseract itself, through the real command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ocr_tools import FakeTesseract, draw, scan


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    return scan(tmp_path / "brief.pdf", [draw(300, 100, [(20, 50, "Hafenmeister")])], width=300, height=100)


def ingest(letter: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli.main", "ingest", str(letter), "--index", str(letter.parent / "index")]
    return subprocess.run(
        [*command, "--no-images", *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def asked_for(fake: FakeTesseract) -> str:
    return (fake.folder / "asked").read_text()


@pytest.mark.parametrize("given", ["flag", "variable"])
def test_the_language_reaches_tesseract(letter: Path, fake_tesseract: FakeTesseract, given: str) -> None:
    fake_tesseract.write(f'cat > /dev/null; echo "$@" > "{fake_tesseract.folder}/asked"', languages="eng deu")
    by_flag = given == "flag"
    done = ingest(letter, "--ocr-language", "deu+eng") if by_flag else ingest(letter, CTX_OCR_LANGUAGE="deu")
    assert done.returncode == 0, done.stderr
    assert f"-l {'deu+eng' if by_flag else 'deu'} " in asked_for(fake_tesseract)


def test_a_language_that_is_not_installed_is_one_clear_error(letter: Path, fake_tesseract: FakeTesseract) -> None:
    fake_tesseract.write("exit 1", languages="eng fra osd")
    done = ingest(letter, "--ocr-language", "deu")
    assert done.returncode == 1
    assert "no data for the language 'deu'; it has: eng, fra" in done.stderr
    assert "tesseract-ocr-deu" in done.stderr or "brew" in done.stderr
