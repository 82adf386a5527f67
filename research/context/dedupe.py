"""One page, one result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

R = TypeVar("R", bound=Mapping[str, Any])


def deduplicate(results: Iterable[R]) -> list[R]:
    """The best-scored result of every (doc_id, page), best first; equal scores keep their order."""
    best: dict[tuple[str, int], R] = {}
    for result in results:
        key = (result["doc_id"], result["page"])
        if key not in best or result["score"] > best[key]["score"]:
            best[key] = result
    return sorted(best.values(), key=lambda result: -result["score"])
