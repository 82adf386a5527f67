"""Packages with what they need of an index: what decides for whom, the audit, the cache, the events."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.governance.access import MemoryAccessDecision, Principal
from research.packages.cache import cache_for
from research.packages.events import events_for
from research.packages.governor import Governor
from research.packages.packages import Packages, drop_from

if TYPE_CHECKING:
    from research.index import Index
    from research.index.base import IndexBase


def packages_of(index: Index) -> Packages:
    """Those of a whole index: what a package may hold is decided for each, by whom it is for."""
    cache = cache_for(index.paths, lambda: index.catalog, index.settings)
    return Packages(index, partial(_governor, index), cache=cache, events=events_for(index.settings))


def drop_left(index: IndexBase) -> None:
    """Texts of packages that are kept on another server go at once with what is gone from the index. The catalog serves
    none of them any more, whether this succeeds or not; what is missed goes with the next package, or with its time."""
    with suppress(CtxError):
        drop_from(cache_for(index.paths, lambda: index.catalog, index.settings), index.catalog)


def _governor(index: Index, principal: Principal, trace_id: str) -> Governor:
    def audit(decision: MemoryAccessDecision, purpose: str) -> None:
        index.audit().record(decision, purpose, trace_id=trace_id)

    access = index.acting_as(principal).access
    return Governor(principal, access, lambda: index.catalog, audit, index.settings.default_classification)
