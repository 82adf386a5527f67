"""Packages with what they need of an index: the gate and its policy, the audit, the cache, the events."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.governance.access import MemoryAccessDecision, Principal
from research.governance.gate import Gate, gate_for
from research.governance.policy import MemoryAccessPolicy
from research.packages.cache import cache_for
from research.packages.events import events_for
from research.packages.governor import Audit, Governor
from research.packages.packages import Packages, drop_from

if TYPE_CHECKING:
    from research.index import Index
    from research.index.base import IndexBase


def packages_of(index: Index) -> Packages:
    """Those of an index that acts for nobody: what a package may hold is decided for each, by whom it is for."""
    policy = MemoryAccessPolicy(index.settings.policy, index=index.paths.root)
    cache = cache_for(index.paths, lambda: index.catalog, index.settings)
    return Packages(index, partial(_governor, index, policy), cache=cache, events=events_for(index.settings))


def drop_left(index: IndexBase) -> None:
    """Texts of packages that are kept on another server go at once with what is gone from the index. The catalog serves
    none of them any more, whether this succeeds or not; what is missed goes with the next package, or with its time."""
    with suppress(CtxError):
        drop_from(cache_for(index.paths, lambda: index.catalog, index.settings), index.catalog)


def _governor(index: Index, policy: MemoryAccessPolicy, principal: Principal, trace_id: str) -> Governor:
    def audit(decision: MemoryAccessDecision, purpose: str) -> None:
        index.audit().record(decision, purpose, trace_id=trace_id)

    def gate(recorded: Audit) -> Gate | None:
        return gate_for(index.paths, settings, principal, recorder=index.recorder, audit=recorded, policy=policy)

    settings = index.settings
    return Governor(principal, gate, audit=audit, default=settings.default_classification)
