"""An index that 0.1.0 made of two samples (`ctx ingest /samples --no-images` at commit b3c32e8): it is named as older,
with the command to type, and left as it is."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from backup_changing import bytes_of

from research.errors import OlderIndexError
from research.index import Index
from research.store.catalog import Catalog
from research.store.doctor import check_index, repair
from research.store.paths import IndexPaths

PACKED = Path(__file__).parent / "fixtures/index-0.1.0.tar.gz"


def test_it_is_named_with_the_command_that_makes_it_anew(tmp_path: Path) -> None:
    root = tmp_path / "index"
    with tarfile.open(PACKED) as packed:
        packed.extractall(root, filter="data")
    before = bytes_of(root)
    for open_it in (
        lambda: Index.open(root).prepare(),
        lambda: Catalog(IndexPaths(root)),
        lambda: Catalog(IndexPaths(root), writable=True),
        lambda: Index(root).prepare(),
    ):
        with pytest.raises(OlderIndexError, match="older ctx") as caught:
            open_it()
        assert "ctx ingest PATH --index" in caught.value.hint
        assert "ctx remember --import" in caught.value.hint
    for found in (check_index(IndexPaths(root))[-1], repair(IndexPaths(root))[-1]):
        assert (found.name, found.severity) == ("catalog", "error")
        assert "ctx ingest PATH --index" in found.remedy
    assert bytes_of(root) == before
