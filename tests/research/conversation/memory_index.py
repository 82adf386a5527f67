"""Indexes that only remember, with one real encoder for all tests of a process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from research.encoders.minilm import MiniLMEncoder
from research.index import Index

TABLES = (
    "memory_tenants", "memories", "memory_words", "memory_vectors", "memory_sources", "memory_feedback",
)  # fmt: skip


@cache
def encoder() -> MiniLMEncoder:
    return MiniLMEncoder()


def open_index(folder: Path) -> Index:
    return Index(folder / "index", encoder=encoder())


def counts(index: Index, tenant: str = "") -> dict[str, int]:
    """How many rows each table has of a tenant; those without any are left out."""
    with closing(sqlite3.connect(index.paths.catalog)) as connection:
        found = {
            table: connection.execute(f"SELECT COUNT(*) FROM {table} WHERE tenant = ?", (tenant,)).fetchone()[0]
            for table in TABLES
        }
    return {table: count for table, count in found.items() if count}


def ids(index: Index, query: str, **more: object) -> list[str]:
    """What is recalled, by id."""
    return [each.memory.id for each in index.memories.recall(query, **more).memories]  # type: ignore[arg-type]
