"""One encoder for all tests here, and a fresh catalog for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_index import open_catalog

from research.encoders import TextEncoder, load_text_encoder
from research.store import Catalog


@pytest.fixture(scope="session")
def encoder() -> TextEncoder:
    return load_text_encoder()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path / "index") as catalog:
        yield catalog
