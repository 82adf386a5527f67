"""Fifty processes that record what was decided, killed at random moments: what was acknowledged is there, and the chain
holds."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.research.governance.audit_killing import kill_recorders
from tests.research.governance.audit_making import audited


def test_fifty_killed_recorders(tmp_path: Path) -> None:
    acknowledged, found = kill_recorders(tmp_path / "index", 50, Random(50))
    with audited(tmp_path / "index") as audit:
        there = {each.seq: each.decision for each in audit.entries(limit=1_000_000)}
    print(f"{len(acknowledged)} entries acknowledged, {len(there)} there, {found.entries} verified")
    assert found.ok, found.problems
    assert acknowledged.items() <= there.items()
