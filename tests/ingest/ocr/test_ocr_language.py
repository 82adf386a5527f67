"""The language OCR reads in: from the flag or the setting to tesseract itself, through the real command."""

from __future__ import annotations

from pathlib import Path

import pytest
from ocr_tools import FakeTesseract, draw, scan

from tests.in_process import Ran, run_in_process


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    return scan(tmp_path / "brief.pdf", [draw(300, 100, [(20, 50, "Hafenmeister")])], width=300, height=100)


def ingest(letter: Path, *options: str, **environment: str) -> Ran:
    at = ("--index", str(letter.parent / "index"))
    return run_in_process("ingest", str(letter), "--no-images", *options, *at, env=environment)


def asked_for(fake: FakeTesseract) -> str:
    return (fake.folder / "asked").read_text()


@pytest.mark.parametrize("given", ["flag", pytest.param("variable", marks=pytest.mark.slow)])
def test_the_language_reaches_tesseract(letter: Path, fake_tesseract: FakeTesseract, given: str) -> None:
    fake_tesseract.write(f'cat > /dev/null; echo "$@" > "{fake_tesseract.folder}/asked"', languages="eng deu")
    by_flag = given == "flag"
    done = ingest(letter, "--ocr-language", "deu+eng") if by_flag else ingest(letter, CTX_OCR_LANGUAGE="deu")
    assert done.code == 0, done.err
    assert f"-l {'deu+eng' if by_flag else 'deu'} " in asked_for(fake_tesseract)
