"""Files that are gone: documents were read from them, and nothing is there any more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ingest.scan import to_utf8
from ingest.stages.base import Work
from research.store.catalog.catalog import Catalog
from research.store.catalog.document_writes import forget_path
from research.store.catalog.documents import paths_below
from research.store.upkeep.gone_files import is_there


def find_gone(catalog: Catalog, paths: Sequence[Path]) -> list[str]:
    """The places below the folders among `paths` where documents were. A file that moved within them is not gone."""
    folders = [to_utf8(os.path.normpath(path.absolute())) for path in paths if path.is_dir()]
    known = {path for folder in folders for path in paths_below(catalog, folder)}
    return sorted(path for path in known if not is_there(path))


def tell_gone(work: Work, paths: Sequence[Path], *, prune: bool) -> None:
    """Note in the summary what is gone; with `prune` the index forgets it. A document that lies at another place, too,
    stays and goes by that one."""
    work.summary.gone = find_gone(work.catalog, paths)
    if not prune:
        return
    for path in work.summary.gone:
        removed = forget_path(work.catalog, path)
        if removed is not None:
            work.summary.removed.append(removed)
