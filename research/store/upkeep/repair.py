"""Mending an index: look, mend, look again, and say honestly what came of it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from research.errors import BusyError, CtxError
from research.store.catalog.catalog import Catalog
from research.store.error_hints import DAMAGED
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths
from research.store.upkeep.integrity import THOROUGH, Look
from research.store.vectors.process import publish_apart, verify_apart


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was wrong, whether it is mended, and what is left for the user to do."""

    name: str
    message: str
    fixed: bool
    remedy: str = ""


def mend(paths: IndexPaths) -> list[Repair]:
    """Repair what can be repaired; an empty list means that nothing was wrong. Raises `BusyError`."""
    repairs: list[Repair] = []
    try:
        with write_lock(paths):
            repairs += _folder(paths)
            with Catalog(paths, writable=True) as catalog:
                for look in THOROUGH:
                    repairs += _mend(catalog, look)
                repairs += _collections(catalog)
    except BusyError:
        raise
    except CtxError as error:
        repairs.append(Repair("catalog", error.message, fixed=False, remedy=error.hint))
    except sqlite3.DatabaseError as error:
        repairs.append(Repair("catalog", f"damaged: {error}", fixed=False, remedy=DAMAGED))
    return repairs


def _mend(catalog: Catalog, look: Look) -> list[Repair]:
    repairs = []
    found = list(look(catalog))
    for ailment in found:
        if ailment.mend is not None:
            ailment.mend(catalog)
    left = {ailment.message for ailment in look(catalog)} if found else set()
    for ailment in found:
        fixed = ailment.message not in left
        repairs.append(Repair(ailment.name, ailment.message, fixed, ailment.afterwards if fixed else DAMAGED))
    return repairs


def _collections(catalog: Catalog) -> list[Repair]:
    empty = not catalog.connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone()
    if empty or verify_apart(catalog.paths):
        return []
    publish_apart(catalog.paths, anew=True)
    message = "the collections were damaged, lost or behind, and were built anew from the catalog"
    return [Repair("collections", message, fixed=True)]


def _folder(paths: IndexPaths) -> list[Repair]:
    mode = paths.root.stat().st_mode & 0o777
    if not mode & 0o077:
        return []
    paths.root.chmod(0o700)
    return [Repair("folder", f"the index could be read by others ({mode:o})", fixed=True)]
