"""Repairing an index: check, fix, check again, and say honestly what came of it."""

from __future__ import annotations

import sqlite3

from research.errors import DAMAGED, BusyError, CtxError
from research.reports import Check
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import all_documents
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths
from research.store.upkeep.checks import remedy_of
from research.store.upkeep.integrity import FULL, IntegrityCheck
from research.store.vectors.process import publish_in_subprocess, verify_in_subprocess


def repair(paths: IndexPaths) -> list[Check]:
    """Repair what can be repaired, and tell of each thing whether it is well now ("ok") or could not be ("error"); an
    empty list means that nothing was wrong. Raises `BusyError`."""
    if not paths.exists:
        return []
    repairs: list[Check] = []
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
        repairs.append(Check("catalog", "error", error.message, remedy_of(error)))
    except sqlite3.DatabaseError as error:
        repairs.append(Check("catalog", "error", f"damaged: {error}", DAMAGED))
    return repairs


def _repair(catalog: Catalog, check: IntegrityCheck) -> list[Check]:
    repairs = []
    found = list(check(catalog))
    for problem in found:
        if problem.fix is not None:
            problem.fix(catalog)
    left = {problem.message for problem in check(catalog)} if found else set()
    for problem in found:
        if problem.message in left:
            repairs.append(Check(problem.name, "error", problem.message, DAMAGED))
        else:
            repairs.append(Check(problem.name, "ok", problem.message, problem.remedy, fixable=True))
    return repairs


def _collections(catalog: Catalog) -> list[Check]:
    if not all_documents(catalog) or verify_in_subprocess(catalog.paths):
        return []
    publish_in_subprocess(catalog.paths, rebuild=True)
    message = "the collections were damaged, lost or behind, and were built anew from the catalog"
    return [Check("collections", "ok", message, fixable=True)]


def _folder(paths: IndexPaths) -> list[Check]:
    mode = paths.root.stat().st_mode & 0o777
    if not mode & 0o077:
        return []
    paths.root.chmod(0o700)
    return [Check("folder", "ok", f"the index could be read by others ({mode:o})", fixable=True)]
