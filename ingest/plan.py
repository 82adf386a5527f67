"""Deciding what a file needs: nothing, a new name, or to be read."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

from ingest.pdf import READER_VERSION
from ingest.report import FileOutcome
from ingest.scan import hash_of, stamp_of, to_utf8
from research.errors import DocumentError
from research.records import DocumentInfo, FailedPage
from research.store.catalog.catalog import Catalog
from research.store.catalog.document_writes import note_file, rename_document
from research.store.catalog.documents import FileStamp, document_at_path, document_of_hash, reader_version_of
from research.store.catalog.failures import failed_file, failures_of, to_read_again


@dataclass(frozen=True, slots=True)
class ToRead:
    """A file whose content the catalog does not have, or not whole; `replaces` if its path is known already.

    `failed`: what earlier runs gave up of the same content.
    """

    path: Path
    stamp: FileStamp
    sha256: str
    replaces: bool
    failed: tuple[FailedPage, ...] = ()

    @property
    def doc_id(self) -> str:
        return self.sha256[:16]


@dataclass(frozen=True, slots=True)
class Again:
    """What is to be read although it is known: documents with pages to try again; with `retry` whatever waits."""

    documents: Container[str] = ()
    retry: bool = False


def read_again(catalog: Catalog, *, retry: bool) -> Again:
    return Again(to_read_again(catalog, waiting=retry), retry)


def plan(catalog: Catalog, path: Path, again: Again | None = None) -> FileOutcome | ToRead:
    """Settle a file whose content is known, at once; otherwise say that it must be read."""
    again = again or Again()
    try:
        stamp = stamp_of(path)
        known = document_at_path(catalog, stamp.path)
        unchanged = known is not None and known[1] == stamp and known[0] not in again.documents
        if known is not None and unchanged and reader_version_of(catalog, known[0]) == READER_VERSION:
            return FileOutcome(stamp.path, "unchanged", known[0])
        sha256 = hash_of(path)
    except DocumentError as error:
        return FileOutcome(to_utf8(path), "failed", code=error.code, reason=error.message)
    same = document_of_hash(catalog, sha256)
    if same is None:
        return _unless_hopeless(catalog, ToRead(path, stamp, sha256, replaces=known is not None), again)
    document = same[0]
    if same[1] != READER_VERSION or document.doc_id in again.documents:
        keep = same[1] == READER_VERSION and not again.retry
        failed = tuple(failures_of(catalog, document.doc_id)) if keep else ()
        if (known is None or known[0] != document.doc_id) and not Path(document.source_path).exists():
            # It moved, and is read again: the place it left is no copy of it.
            rename_document(catalog, document.doc_id, document.source_path, stamp, to_utf8(path.name))
        return ToRead(path, stamp, sha256, replaces=True, failed=failed)
    return _settle(catalog, path, stamp, document, known[0] if known is not None else "")


def _settle(catalog: Catalog, path: Path, stamp: FileStamp, document: DocumentInfo, known: str) -> FileOutcome:
    """Note where a document is now. `known`: the document that was at this path before."""
    if known == document.doc_id:
        note_file(catalog, document.doc_id, stamp)
        return FileOutcome(stamp.path, "unchanged", document.doc_id)
    if not Path(document.source_path).exists():
        rename_document(catalog, document.doc_id, document.source_path, stamp, to_utf8(path.name))
        return FileOutcome(stamp.path, "renamed", document.doc_id)
    note_file(catalog, document.doc_id, stamp)
    return FileOutcome(stamp.path, "copy", document.doc_id)


def _unless_hopeless(catalog: Catalog, step: ToRead, again: Again) -> FileOutcome | ToRead:
    """A file that ran out of its time twice would do it again: it is told, and costs no time."""
    failed = failed_file(catalog, step.stamp.path)
    same = failed is not None and (failed.sha256, failed.reader_version) == (step.sha256, READER_VERSION)
    if failed is None or not same or failed.tries < 2 or again.retry:
        return step
    reason = f"{failed.reason}, in an earlier run; it was not tried again"
    return FileOutcome(step.stamp.path, "failed", step.doc_id, code=failed.code, reason=reason)
