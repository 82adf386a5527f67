"""Experiences and values in status, backup, restore and doctor."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_experiences import start

from research.errors import UsageError
from research.index import Index
from research.store import check_index


def test_status_counts_experiences_and_not_their_axes(own: Index) -> None:
    begun = start(own)
    assert own.admin.status().items == {"experience": 55}
    own.experiences.remove(begun.id)
    assert own.admin.status().items == {"experience": 54}
    assert own.admin.status().items_without_vectors == 0


def test_they_come_back_from_a_backup(own: Index, tmp_path: Path) -> None:
    begun = start(own)
    own.experiences.rebuild_values()
    own.admin.backup(tmp_path / "backup.zip")
    with Index(tmp_path / "restored") as restored:
        restored.admin.restore(tmp_path / "backup.zip")
        assert restored.experiences.list() == own.experiences.list()
        assert restored.experiences.values() == own.experiences.values() != []
        assert restored.experiences.get(begun.id) == begun
        asked = "prices on the web page are out of date though the import ran"
        assert restored.experiences.search(asked).results[0].experience.id == "cache-prices"
        assert [check.name for check in check_index(restored.paths) if check.severity == "error"] == []


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
