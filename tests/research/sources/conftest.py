"""An index with something of every kind, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from research.index import Index


@pytest.fixture(scope="module")
def everything(of_everything: Path) -> Iterator[Index]:
    """To be read."""
    with Index.open(of_everything) as index:
        yield index
