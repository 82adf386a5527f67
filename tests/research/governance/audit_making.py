"""An index with an audit, and decisions to record in it. Run as a program it records decisions until it is killed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from research.governance.access import Effect, MemoryAccessDecision, Principal, Resource, Ruling
from research.governance.audit import Audit
from research.settings import Settings
from research.store import Catalog, IndexPaths

ANN = Principal("ann", "lab")
EFFECTS: tuple[Effect, ...] = ("allow", "redact", "deny")


def decision(name: str, *, principal: Principal = ANN, refs: int = 3, problem: str = "") -> MemoryAccessDecision:
    rulings = tuple(
        Ruling(Resource(f"page:{number}", "page", path="/secret/path.pdf"), EFFECTS[number % 3], ("rule",))
        for number in range(refs)
    )
    return MemoryAccessDecision(name, principal, "read", rulings, policy="r1", problem=problem, policies=("rule",))


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 6, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def audited(root: Path, clock: Clock | None = None, *, days: int = 90) -> Iterator[Audit]:
    paths = IndexPaths(root)
    if not paths.exists:
        Catalog(paths, writable=True).close()
    with Catalog(paths) as catalog:
        yield Audit(paths, lambda: catalog, Settings(audit_days=days), now=clock or (lambda: datetime.now(UTC)))


def record_for_ever(root: Path, name: str) -> None:
    """Each entry is told on stdout as soon as it is acknowledged."""
    with audited(root) as audit:
        number = 0
        while True:
            number += 1
            entry = audit.record(decision(f"{name}-{number}"), "ask")
            sys.stdout.write(f"{entry.seq} {entry.decision}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    record_for_ever(Path(sys.argv[1]), sys.argv[2])
