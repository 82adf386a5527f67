"""An index with something of every kind, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from research.index import Index
from tests.conftest import built_once
from tests.research.sources.everything import NAME, fill


@pytest.fixture(scope="session")
def of_everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, NAME, fill)


@pytest.fixture(scope="module")
def everything(of_everything: Path) -> Iterator[Index]:
    """To be read."""
    with Index.open(of_everything) as index:
        yield index
