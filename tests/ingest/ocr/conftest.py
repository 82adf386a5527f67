"""The engines of this machine: rapidocr always, tesseract where it is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ocr_tools import FakeTesseract

from ingest.ocr import choose_engine
from ingest.ocr.engine import OcrEngine

HERE = ["rapidocr", *(["tesseract"] if shutil.which("tesseract") else [])]


@pytest.fixture(scope="session", params=HERE)
def engine(request: pytest.FixtureRequest) -> OcrEngine:
    return choose_engine(request.param)


@pytest.fixture
def fake_tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTesseract:
    """Stands first on the path; nothing else is on it but the shell's own tools."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "sleep", "cat"):
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    return FakeTesseract(folder)
