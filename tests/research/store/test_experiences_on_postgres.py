"""Experiences and values on PostgreSQL as on SQLite."""

from __future__ import annotations

from pathlib import Path

from experience_history import experience
from postgres import PostgresCatalog, running_server

from research.store.catalog import Catalog
from research.store.paths import IndexPaths


def test_they_agree(tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "postgresql")
    with running_server() as address, Catalog(IndexPaths(tmp_path / "sqlite"), writable=True) as ours:
        paths.create()
        theirs = PostgresCatalog(address, paths)
        told = [experience(ours), experience(theirs)]
        theirs.close()
    assert told[0] == told[1]
