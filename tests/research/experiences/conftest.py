"""An index of our own experiences, made once; and a fresh one for whoever writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from research.index import Index
from tests.conftest import built_once
from tests.research.experiences.recurring import records


def _make(root: Path) -> None:
    with Index(root) as index:
        index.experiences.put(records())
        while index.experiences.embed():
            pass


@pytest.fixture(scope="session")
def _experienced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, "experienced", _make)


@pytest.fixture(scope="module")
def experienced(_experienced: Path) -> Iterator[Index]:
    """To be read."""
    with Index.open(_experienced) as index:
        yield index


@pytest.fixture
def own(_experienced: Path, tmp_path: Path) -> Iterator[Index]:
    """To be written."""
    shutil.copytree(_experienced, tmp_path / "own")
    with Index.open(tmp_path / "own") as index:
        yield index


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Index]:
    with Index(tmp_path / "empty") as index:
        yield index
