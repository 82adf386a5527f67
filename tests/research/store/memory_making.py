"""Memories made by hand, for the catalog."""

from __future__ import annotations

import hashlib
from typing import Any

from research.memories import Outcome
from research.store.catalog import Catalog
from research.store.memories import words_of
from research.store.memory_writes import Told

TIME = "2026-01-01T00:00:00.000000+00:00"


def told(text: str, **given: Any) -> Told:
    """A memory as it is written; whatever is not given is plain."""
    fields: dict[str, Any] = {
        "id": hashlib.sha256(text.encode()).hexdigest()[:12],
        "given_id": "id" in given,
        "key": "",
        "digest": hashlib.sha256(text.lower().encode()).hexdigest()[:40],
        "type": "memory",
        "category": "",
        "importance": 0.5,
        "namespace": "",
        "session": "",
        "persona": "",
        "speaker": "",
        "created_at": TIME,
        "expires_at": "",
        "tags": "[]",
        "metadata": "{}",
        "body": words_of(text, str(given.get("speaker", ""))),
    }
    return Told(text=text, **fields | given)


def tell(catalog: Catalog, tenant: str, *memories: Told) -> list[tuple[int, Outcome]]:
    with catalog.short_write() as connection:
        return connection.memories.tell(tenant, memories)
