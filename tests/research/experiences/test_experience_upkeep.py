"""Experiences and values in status, backup, restore and doctor."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_experiences import start

from research.errors import UsageError
from research.index import Index


def test_status_counts_experiences_and_not_their_axes(own: Index) -> None:
    begun = start(own)
    assert own.admin.status().items == {"experience": 55}
    own.experiences.remove(begun.id)
    assert own.admin.status().items == {"experience": 54}
    assert own.admin.status().items_without_vectors == 0


def test_an_index_of_open_experiences_alone_is_not_replaced(empty: Index, own: Index, tmp_path: Path) -> None:
    start(empty)
    own.admin.backup(tmp_path / "backup.zip")
    with pytest.raises(UsageError, match="holds 1 experiences"):
        empty.admin.restore(tmp_path / "backup.zip")


def test_reindex_keeps_them(own: Index) -> None:
    own.admin.reindex()
    found = own.experiences.search("cache key without a version", axis="root_cause")
    assert found.results[0].experience.id == "cache-prices"
    assert found.without_vectors == 0
