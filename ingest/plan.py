"""Deciding what a file needs: nothing, a new name, or to be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ingest.pdf.version import READER_VERSION
from ingest.report import FileOutcome
from ingest.scan import hash_of, stamp_of, storable
from research.errors import DocumentError
from research.store.catalog import Catalog
from research.store.documents import (
    FileStamp,
    document_at_path,
    document_of_hash,
    note_file,
    rename_document,
)


@dataclass(frozen=True, slots=True)
class ToRead:
    """A file whose content the catalog does not have; `replaces` if its path held something else before."""

    path: Path
    stamp: FileStamp
    sha256: str
    replaces: bool

    @property
    def doc_id(self) -> str:
        return self.sha256[:16]


def plan(catalog: Catalog, path: Path) -> FileOutcome | ToRead:
    """Settle a file whose content is known, at once; otherwise say that it must be read."""
    try:
        stamp = stamp_of(path)
        known = document_at_path(catalog, stamp.path)
        if known is not None and known[1] == stamp and _current(catalog, known[0]):
            return FileOutcome(stamp.path, "unchanged", known[0])
        sha256 = hash_of(path)
    except DocumentError as error:
        return FileOutcome(storable(path), "failed", code=error.code, reason=error.message)
    same = document_of_hash(catalog, sha256)
    if same is None or same[1] != READER_VERSION:
        return ToRead(path, stamp, sha256, replaces=known is not None)
    document = same[0]
    if known is not None and known[0] == document.doc_id:
        note_file(catalog, document.doc_id, stamp)
        return FileOutcome(stamp.path, "unchanged", document.doc_id)
    if not Path(document.source_path).exists():
        rename_document(catalog, document.doc_id, document.source_path, stamp, storable(path.name))
        return FileOutcome(stamp.path, "renamed", document.doc_id)
    note_file(catalog, document.doc_id, stamp)
    return FileOutcome(stamp.path, "copy", document.doc_id)


def _current(catalog: Catalog, doc_id: str) -> bool:
    row = catalog.connection.execute("SELECT reader_version FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    return row is not None and int(row[0]) == READER_VERSION
