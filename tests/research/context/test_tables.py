"""The shipped token tables are the published ones, and every look-up says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.context import tokens as table
from research.context.tokens import TokenTable, open_table
from research.errors import CtxError
from tools import build_tables


@pytest.mark.parametrize("name", ["cl100k_base", pytest.param("o200k_base", marks=pytest.mark.slow)])
def test_the_shipped_table_is_the_published_one(name: str) -> None:
    published = build_tables.published_ranks(name)
    shipped = open_table(name)
    assert dict(shipped.items()) == published
    assert shipped.count == len(published)
    assert all(shipped.rank(token) == rank for token, rank in published.items())
    longer = [token + b"\x00" for token in published]
    assert not any(shipped.rank(token) is not None for token in longer if token not in published)
    assert shipped.rank(b"") is None


def test_a_small_table(tmp_path: Path) -> None:
    ranks = {b"a": 0, b"b": 70_000, b"ab": 2, "語".encode(): 3}
    path = tmp_path / "small.bin"
    path.write_bytes(build_tables.packed(ranks))
    assert dict(TokenTable(path).items()) == ranks
    assert {token: TokenTable(path).rank(token) for token in ranks} == ranks


@pytest.mark.parametrize("content", [None, b"", b"no table at all", bytes(200)])
def test_a_missing_or_damaged_table_is_told(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "o200k_base.bin").write_bytes(content)
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    open_table.cache_clear()
    with pytest.raises(CtxError, match="token table of o200k_base cannot be read"):
        open_table("o200k_base")
    open_table.cache_clear()
