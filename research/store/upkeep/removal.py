"""Taking documents out of an index. Their files are never touched, but for those that were uploaded into it."""

from __future__ import annotations

from collections.abc import Sequence

from research.errors import IndexUnusableError, NothingFoundError
from research.records import DocumentInfo
from research.reports import Removal
from research.store.catalog.catalog import Catalog
from research.store.catalog.document_names import ambiguous, is_pattern, select_documents
from research.store.catalog.document_writes import remove_document
from research.store.catalog.documents import get_document
from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths
from research.store.vectors import generations
from research.store.vectors.process import publish_in_subprocess


def plan_removal(paths: IndexPaths, names: Sequence[str], folder: str = "") -> Removal:
    """What these names, paths, patterns and ids mean. Only a pattern may mean several: a short name takes no shelf with
    it; and a title means none, for anybody may write one into a file."""
    chosen: dict[str, DocumentInfo] = {}
    wide = ""
    with Catalog(paths) as catalog:
        for name in names:
            found = select_documents(catalog, [name], folder, cautious=True)
            if len(found) > 1:
                if not is_pattern(name, found):
                    raise ambiguous(name, found)
                wide = wide or name
            chosen.update((document.doc_id, document) for document in found)
    return Removal(tuple(chosen.values()), wide)


def remove(paths: IndexPaths, documents: Sequence[DocumentInfo], *, wait: float = 0.0) -> Removal:
    """Remove these documents from the catalog, and then from the collections."""
    with write_lock(paths, wait=wait), Catalog(paths, writable=True) as catalog:
        gone = [d.filename for d in documents if get_document(catalog, d.doc_id) is None]
        if gone:  # another process was quicker
            raise NothingFoundError(f"{', '.join(gone)} is no longer in the index", hint="see: ctx list")
        for document in documents:
            remove_document(catalog, document.doc_id)
        return Removal(tuple(documents), published=_publish(catalog))


def _publish(catalog: Catalog) -> bool:
    # Collections that were never built have nothing to forget.
    if generations.state_of(catalog).generation is None:
        return True
    try:
        publish_in_subprocess(catalog.paths)
    except IndexUnusableError:  # no room for another copy, perhaps; no answer comes from what the catalog lacks
        return False
    return True
