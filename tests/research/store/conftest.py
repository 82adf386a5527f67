"""A fresh catalog made by hand for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from index_making import Making


@pytest.fixture
def making(tmp_path: Path) -> Iterator[Making]:
    made = Making(tmp_path / "index")
    yield made
    made.catalog.close()
