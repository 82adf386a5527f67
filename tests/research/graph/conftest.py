"""A fresh catalog for each test of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from graph_making import Graph


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    made = Graph(tmp_path / "index")
    yield made
    made.catalog.close()
