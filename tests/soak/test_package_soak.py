"""Five hundred packages while their Redis is killed again and again: all are answered, and none is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.serving import allow_loopback
from tests.soak.package_building import PackageBuilding


def test_five_hundred_packages(of_everything: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow_loopback(monkeypatch)
    root = Path(shutil.copytree(of_everything, tmp_path / "index"))
    building = PackageBuilding(root, builds=500)
    building.run()
    print(dict(building.counts))
    assert building.problems == []
    assert building.counts["answered"] == 500
    assert building.counts["killed"] == building.counts["started"] == 3
