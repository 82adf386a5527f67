"""Source files that are gone, or no longer taken: ignored by now, grown too large, passed over."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ingest.code.find import BEYOND, Found
from ingest.gone import folder_above, looks_unmounted
from ingest.report import IngestSummary
from ingest.scan import to_utf8
from research.store.catalog.catalog import Catalog
from research.store.catalog.item_writes import remove_parents
from research.store.catalog.items import ItemParent
from research.store.upkeep.gone_files import found_at

_AT_ONCE = 200  # files a transaction


def settle_gone(
    catalog: Catalog,
    given: Sequence[Path],
    found: Found,
    known: Mapping[str, ItemParent],
    *,
    summary: IngestSummary,
    prune: bool,
) -> None:
    """Tell what is gone from the folders given; with `prune` the index forgets it. What is there and no longer taken
    goes at once: it would be found as it was."""
    folders = [f"{to_utf8(os.path.normpath(path.absolute())).rstrip('/')}/" for path in given if path.is_dir()]
    taken = {to_utf8(file.path) for file in found.files}
    unseen = tuple(f"{to_utf8(path).rstrip('/')}/" for path, _ in found.unreadable)
    left = [
        path
        for path in known
        if path not in taken and path.startswith(tuple(folders)) and not f"{path}/".startswith(unseen or "\0")
    ]
    there = {path for path in left if found_at(path) is not None}
    summary.gone = sorted(path for path in left if path not in there and folder_above(path))
    if not found.passed_over[BEYOND]:
        _remove(catalog, sorted(there))
    if not prune:
        return
    above = {path: folder_above(path) for path in summary.gone}
    empty = {folder for folder in above.values() if looks_unmounted(folder, {})}
    summary.empty_folders = sorted(empty)
    removed = [path for path, folder in above.items() if folder not in empty]
    _remove(catalog, removed)
    if summary.code is not None:
        summary.code.removed = removed


def _remove(catalog: Catalog, paths: Sequence[str]) -> None:
    for start in range(0, len(paths), _AT_ONCE):
        remove_parents(catalog, "code", paths[start : start + _AT_ONCE])
