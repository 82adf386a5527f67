"""An index with something of every kind, to be written into, and policies for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from research.index import Index
from research.settings import Settings

Governed = Callable[[str], Index]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, Redis and the catalog are waited for. A test of one that hangs sets its own time."""
    monkeypatch.setattr("research.packages.cache._SECONDS", 30.0)
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 30.0)


@pytest.fixture
def root(of_everything: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(of_everything, tmp_path / "index"))


@pytest.fixture
def index(root: Path) -> Iterator[Index]:
    with Index.open(root) as opened:
        yield opened


@pytest.fixture
def governed(root: Path, tmp_path: Path) -> Iterator[Governed]:
    """The index under a policy."""
    opened: list[Index] = []

    def open_under(policy: str) -> Index:
        file = tmp_path / "policies" / "policy.cedar"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(policy)
        file.chmod(0o600)
        opened.append(Index.open(root, Settings(policy=str(file))))
        return opened[-1]

    yield open_under
    for each in opened:
        each.close()
