"""Documents of an index: pages, outlines, files, names and tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import NothingFoundError
from research.models import (
    DocumentOutline,
    PageView,
    Question,
    labelled,
)
from research.units import Structure

if TYPE_CHECKING:
    from research.index.index import Index
    from research.records import CodeTree, DocumentInfo, RepositoryInfo
    from research.store import Reader


class Documents:
    """The documents of an index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def page(self, document: str, page: int | None = None, *, question: str | None = None) -> PageView:
        """One page as it is stored; with a question also the places on it that match. `document` is a name or an id;
        or a ref, which says which page unless `page` does. A name alone means the first."""
        from research.store import page_of_ref

        named = page_of_ref(document) if page is None else page
        with self._index.catalog.snapshot() as reader:
            return self._view(
                reader, self._index.one_document(reader, document), 1 if named is None else named, question
            )

    def pages(
        self, document: str, ranges: Sequence[tuple[int, int]] = (), *, question: str | None = None
    ) -> list[PageView]:
        """Several pages, given as first and last of each range, in that order and each once; without ranges all, or the
        one that a ref names. A last page of `filters.LAST_PAGE` is the document's. Raises NothingFoundError if one is
        not there."""
        from research.filters import LAST_PAGE
        from research.store import page_of_ref

        if not ranges and (named := page_of_ref(document)) is not None:
            ranges = [(named, named)]
        with self._index.catalog.snapshot() as reader:
            info = self._index.one_document(reader, document)
            wanted: dict[int, None] = {}
            for first, last in ranges or [(1, LAST_PAGE)]:
                end = max(first, info.num_pages) if last == LAST_PAGE else last
                if not 0 < first <= end <= info.num_pages:
                    raise _no_pages(info, first, end)
                wanted.update(dict.fromkeys(range(first, end + 1)))
            return [self._view(reader, info, page, question) for page in wanted]

    def outline(self, document: str) -> DocumentOutline:
        """A document's table of contents: its headings with their pages, or how its pages begin if it has none."""
        from research.context import document_outline

        with self._index.catalog.snapshot() as reader:
            info = self._index.one_document(reader, document)
            outline = document_outline(info, reader.pages.texts(info.doc_id))
        shown = {entry.page for entry in outline.entries} | {page.page for page in outline.pages}
        self._index.access.shown([f"page:{info.doc_id}#{page}" for page in sorted(shown)], "outline")
        return outline

    def file_of(self, document: str) -> str | None:
        """Where a document's file is, at any place it was seen; None if it is at none of them. It shows everything, so
        all of the document has to be readable."""
        from research.store import file_of

        with self._index.catalog.snapshot() as reader:
            info = self._index.one_document(reader, document)
            refs = [f"page:{info.doc_id}#{page}" for page in range(1, info.num_pages + 1)]
            if not all(_is_plain(reader, ref) for ref in refs):
                raise _not_whole(info)
            self._index.access.shown(refs, "file")
            return file_of(reader, info.doc_id)

    def picture_path(self, document: str, page: int, *, small: bool = False) -> Path:
        """Where a page's picture is, or would be. It shows everything, so the page has to be readable as it is."""
        with self._index.catalog.snapshot() as reader:
            info = self._index.one_document(reader, document)
            ref = f"page:{info.doc_id}#{page}"
            if 0 < page <= info.num_pages:
                if not _is_plain(reader, ref):
                    raise _not_whole(info)
                self._index.access.shown([ref], "picture")
        return Path((self._index.paths.thumbnail_path if small else self._index.paths.image_path)(info.doc_id, page))

    def matches(self, text: str, question: str) -> list[tuple[int, int]]:
        """Where in a text the words stand that fit the question: what a view marks."""
        from research.search import matches

        return matches(text, question)

    def get(self, doc_id: str) -> DocumentInfo:
        """The document that an id means: today's, its file's lasting one, or one it had before. Names are none."""

        with self._index.catalog.snapshot() as reader:
            found = reader.documents.get_many(reader.names.current_ids([doc_id]))
        if not found:
            raise NothingFoundError(f"no document has the id {doc_id}", hint="see them all with: ctx list")
        return self._index.access.shown(found, "document", _ref_of)[0]

    def repositories(self) -> list[RepositoryInfo]:
        """The repositories whose commits are in the index."""
        from research.sources import repositories_of

        if not self._index.exists:
            return []
        with self._index.catalog.snapshot() as reader:
            return repositories_of(reader)

    def code_trees(self) -> list[CodeTree]:
        """The folders whose source code is in the index."""
        from research.sources import trees_of

        if not self._index.exists:
            return []
        with self._index.catalog.snapshot() as reader:
            return trees_of(reader)

    def totals(self) -> tuple[int, int]:
        """How many documents and pages there are."""
        with self._index.catalog.snapshot() as reader:
            found = reader.pages.totals()
        return found.documents, found.pages

    def markdown(self, doc_id: str) -> str | None:
        """A document's whole markdown, pages joined by form feeds; None if it is unknown."""

        with self._index.catalog.snapshot() as reader:
            found = reader.names.current_ids([doc_id])
            pages = reader.pages.document_markdown(found[0]) if found else []
        self._index.access.shown([f"page:{found[0]}#{page}" for page, _ in pages], "markdown")
        return "\f".join(text for _, text in pages) if pages else None

    def tag(self, document: str, *tags: str) -> list[DocumentInfo]:
        """Give a document tags, or all that a pattern means. A short write: accepted within a second, also while an
        ingest runs, or BusyError."""

        chosen = self._one_or_pattern(document)
        self._index.catalog.labels.add_tags([info.doc_id for info in chosen], tags)
        return chosen

    def untag(self, document: str, *tags: str) -> list[DocumentInfo]:
        """Take tags away; those it has not are no fault."""

        chosen = self._one_or_pattern(document)
        self._index.catalog.labels.remove_tags([info.doc_id for info in chosen], tags)
        return chosen

    def tags(self, document: str) -> list[str]:
        """A document's tags, in alphabetical order."""

        with self._index.catalog.snapshot() as reader:
            return reader.labels.tags(self._index.one_document(reader, document).doc_id)

    def all_tags(self) -> dict[str, list[DocumentInfo]]:
        """Every tag in use and the documents that have it."""

        with self._index.catalog.snapshot() as reader:
            found = {tag: reader.documents.get_many(ids) for tag, ids in reader.labels.all_tags().items()}
        self._index.access.shown([info for documents in found.values() for info in documents], "tags", _ref_of)
        return found

    def _view(self, reader: Reader, info: DocumentInfo, page: int, question: str | None) -> PageView:
        from research.sources import page_item

        stored = reader.pages.get(info.doc_id, page) if 0 < page <= info.num_pages else None
        if stored is None:
            raise _no_pages(info, page, page)
        text = Structure(reader.pages.markdown(info.doc_id, page) or "")
        [item], problem = labelled([page_item(stored, text)], reader.masks.labels), ""
        self._index.access.shown([stored.ref], "page")
        if question is not None:
            passages, problem = self._index.source.places(reader, Question(question), item)
            item = replace(item, passages=tuple(passages))
        return PageView(item, info.num_pages, stored.error, problem=problem)

    def _one_or_pattern(self, document: str) -> list[DocumentInfo]:
        from research.store import ambiguous, is_pattern

        found = self.list(document)
        if len(found) > 1 and not is_pattern(document, found):
            raise ambiguous(document, found)
        return found

    def list(self, *names: str) -> list[DocumentInfo]:
        """All documents, or those that names, paths, patterns, titles or ids mean. A name that means none raises
        NothingFoundError."""

        with self._index.catalog.snapshot() as reader:
            found = reader.names.select(names, self._index.relative_to) if names else reader.documents.all()
        return list(self._index.access.shown(found, "list", _ref_of))


def _ref_of(info: DocumentInfo) -> str:
    return f"document:{info.doc_id}"


def _is_plain(reader: Reader, ref: str) -> bool:
    """Whether a page may be seen as it is: its picture and its file show everything."""
    if not reader.masks.view:
        return True
    key, _, page = ref.removeprefix("page:").rpartition("#")
    return ref not in reader.masks.labels and bool(reader.pages.ids_at([f"{key}:{page}"]))


def _not_whole(info: DocumentInfo) -> NothingFoundError:
    return NothingFoundError(
        f"not all of {info.filename} may be seen as it is", hint="see what may be with: ctx show, and ctx policy try"
    )


def _no_pages(info: DocumentInfo, first: int, last: int) -> NothingFoundError:
    which = f"page {first}" if first == last else f"pages {first} to {last}"
    return NothingFoundError(f"{info.filename} has no {which}", hint=f"its pages are 1 to {info.num_pages}")
