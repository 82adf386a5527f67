"""What is installed is really looked at: a damaged file of ours is named."""

from __future__ import annotations

import shutil
from pathlib import Path

from research.context import TokenCounter
from research.context.tokens import FOLDER, SHIPPED
from research.index.checks import PACKAGES, check_encoder, check_packages, check_token_tables

ROOT = Path(__file__).parent.parent.parent


def test_token_tables_with_a_hole_are_told(tmp_path: Path) -> None:
    for name in (*SHIPPED, "SHA256SUMS"):
        shutil.copy(FOLDER / name, tmp_path)
    assert [check.severity for check in check_token_tables(tmp_path)] == ["ok"]
    with (tmp_path / "o200k_base.bin").open("r+b") as file:
        file.seek(1_500_000)
        file.write(bytes(399_000))
    [check] = check_token_tables(tmp_path)
    assert check.severity == "error"
    assert "o200k_base.bin is damaged" in check.message
    assert "cl100k" not in check.message
    assert "reinstall" in check.remedy


def test_the_tables_that_count_are_the_ones_looked_at() -> None:
    assert [check.severity for check in check_token_tables()] == ["ok"]
    assert {f"{name}.bin" for name in ("o200k_base", "cl100k_base")} == set(SHIPPED)
    assert TokenCounter().count("seventeen tokens") == 3


def test_a_missing_package_is_named() -> None:
    [check] = check_packages(("typer", "no-such-package"))
    assert (check.severity, check.message) == ("error", "not installed: no-such-package")


def test_every_declared_package_is_looked_for() -> None:
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {name.partition(">")[0].partition("=")[0] for name in declared} == set(PACKAGES)


def test_a_damaged_model_is_named(tmp_path: Path) -> None:
    assert [check.severity for check in check_encoder()] == ["ok"]
    [check] = check_encoder(tmp_path)
    assert check.severity == "error"
