"""ChromaClient: the open index. The one object a search and a context builder share."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import IndexUnusableError
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import document_markdown
from research.store.files.paths import IndexPaths
from research.store.vectors.chroma import open_client
from research.store.vectors.generations import TEXT, VISUAL, Generation
from research.store.vectors.index import VectorIndex

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection


class ChromaClient:
    """An index opened for reading, given by its folder. Nothing heavy loads before it is used."""

    def __init__(self, index: str | Path) -> None:
        self.paths = IndexPaths(Path(index))
        self.catalog = Catalog(self.paths)
        self.vectors = VectorIndex(self.paths)
        self._lock = threading.Lock()
        self._clients: list[tuple[Generation, Client]] = []  # the newest generation's last

    @property
    def text_collection(self) -> Collection:
        """Chroma's own collection object: one record a chunk."""
        return self._public().get_collection(TEXT, embedding_function=None)

    @property
    def visual_collection(self) -> Collection:
        """Chroma's own collection object: one record a page, with all metadata."""
        return self._public().get_collection(VISUAL, embedding_function=None)

    async def get_document_markdown(self, doc_id: str) -> str | None:
        """A document's whole markdown, pages joined by form feeds; None if it is unknown."""
        from research.store.catalog.document_names import current_ids

        found = current_ids(self.catalog, [doc_id])
        pages = document_markdown(self.catalog, found[0]) if found else []
        return "\f".join(markdown for _, markdown in pages) if pages else None

    def generation(self) -> Generation | None:
        """The newest published collections."""
        return self.vectors.generation(self.catalog)

    def refresh(self) -> None:
        """Close what is open of the collections; the next question opens the newest."""
        self.vectors.refresh()
        with self._lock:
            self._close_clients(keep=0)

    def close(self) -> None:
        self.refresh()
        self.catalog.close()

    def __enter__(self) -> ChromaClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _public(self) -> Client:
        generation = self.generation()
        if generation is None:
            raise IndexUnusableError("the collections are not built", hint="build them with: ctx doctor --reindex")
        with self._lock:
            if not self._clients or self._clients[-1][0] != generation:
                self._clients.append((generation, open_client(generation.path)))
                # A collection that the caller holds lives one publication longer, as its files do.
                self._close_clients(keep=2)
            return self._clients[-1][1]

    def _close_clients(self, keep: int) -> None:
        while len(self._clients) > keep:
            self._clients.pop(0)[1].close()
