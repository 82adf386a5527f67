"""Repairing an index: check, fix, check again, and say honestly what came of it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from research.errors import BusyError, CtxError
from research.store.catalog.catalog import Catalog
from research.store.error_hints import DAMAGED
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths
from research.store.upkeep.integrity import FULL, IntegrityCheck
from research.store.vectors.process import publish_in_subprocess, verify_in_subprocess


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was wrong, whether it is fixed, and what is left for the user to do."""

    name: str
    message: str
    fixed: bool
    remedy: str = ""


def repair(paths: IndexPaths) -> list[Repair]:
    """Repair what can be repaired; an empty list means that nothing was wrong. Raises `BusyError`."""
    repairs: list[Repair] = []
    try:
        with write_lock(paths):
            repairs += _folder(paths)
            with Catalog(paths, writable=True) as catalog:
                for check in FULL:
                    repairs += _repair(catalog, check)
                repairs += _collections(catalog)
    except BusyError:
        raise
    except CtxError as error:
        repairs.append(Repair("catalog", error.message, fixed=False, remedy=error.hint))
    except sqlite3.DatabaseError as error:
        repairs.append(Repair("catalog", f"damaged: {error}", fixed=False, remedy=DAMAGED))
    return repairs


def _repair(catalog: Catalog, check: IntegrityCheck) -> list[Repair]:
    repairs = []
    found = list(check(catalog))
    for problem in found:
        if problem.fix is not None:
            problem.fix(catalog)
    left = {problem.message for problem in check(catalog)} if found else set()
    for problem in found:
        fixed = problem.message not in left
        repairs.append(Repair(problem.name, problem.message, fixed, problem.remedy if fixed else DAMAGED))
    return repairs


def _collections(catalog: Catalog) -> list[Repair]:
    empty = not catalog.connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone()
    if empty or verify_in_subprocess(catalog.paths):
        return []
    publish_in_subprocess(catalog.paths, rebuild=True)
    message = "the collections were damaged, lost or behind, and were built anew from the catalog"
    return [Repair("collections", message, fixed=True)]


def _folder(paths: IndexPaths) -> list[Repair]:
    mode = paths.root.stat().st_mode & 0o777
    if not mode & 0o077:
        return []
    paths.root.chmod(0o700)
    return [Repair("folder", f"the index could be read by others ({mode:o})", fixed=True)]
