"""What packages take from their neighbours: the gate, labels and the audit of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from research.governance.access import Principal, Resource
from research.models import Ref
from research.packages.governor import Governor

if TYPE_CHECKING:
    from research.index import Index
    from research.store.catalog.reader import Reader


def governor_for(index: Index, principal: Principal) -> Governor:
    return Governor(principal, None, resolve=_plain)


def _plain(reader: Reader, refs: Sequence[str], principal: Principal) -> list[Resource]:
    return [Resource(ref, Ref.parse(ref).kind) for ref in refs]
