"""One index of everything in data/: samples, the no-harm set and the documents with named parts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ingest import Observer, ingest
from research.settings import Settings
from research.store import IndexPaths
from tests.conftest import built_once

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="session")
def data_index(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests only read it."""

    def make(root: Path) -> None:
        shutil.copytree(sample_index, root)
        pdfs = [DATA / "no-harm/pdfs", DATA / "parts/pdfs"]
        summary = ingest(IndexPaths(root), pdfs, settings=Settings(images=False), observer=Observer())
        assert not summary.failed

    return built_once(tmp_path_factory, "data-index", make)
