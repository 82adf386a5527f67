"""ChromaClient: the open index. The one object a search and a context builder share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import IndexUnusableError
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import document_markdown
from research.store.files.paths import IndexPaths
from research.store.vectors import generations, sync_state
from research.store.vectors.chroma import open_client
from research.store.vectors.generations import Generation
from research.store.vectors.reader import Neighbours, open_neighbours

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection


class ChromaClient:
    """An index opened for reading, given by its folder. Nothing heavy loads before it is used."""

    def __init__(self, index: str | Path) -> None:
        self.paths = IndexPaths(Path(index))
        self.catalog = Catalog(self.paths)
        self._generation: Generation | None = None
        self._neighbours: Neighbours | None = None
        self._client: Client | None = None

    @property
    def text_collection(self) -> Collection:
        """Chroma's own collection object: one record a chunk."""
        return self._public().get_collection(sync_state.TEXT, embedding_function=None)

    @property
    def visual_collection(self) -> Collection:
        """Chroma's own collection object: one record a page, with all metadata."""
        return self._public().get_collection(sync_state.VISUAL, embedding_function=None)

    async def get_document_markdown(self, doc_id: str) -> str | None:
        """A document's whole markdown, pages joined by form feeds; None if it is unknown."""
        pages = document_markdown(self.catalog, doc_id)
        return "\f".join(markdown for _, markdown in pages) if pages else None

    def generation(self) -> Generation | None:
        """The published collections in use; looked up again while there are none."""
        if self._generation is None:
            self._generation = sync_state.current(self.catalog)
        return self._generation

    def neighbours(self) -> Neighbours | None:
        """The reader of the published collections."""
        generation = self.generation()
        if self._neighbours is None and generation is not None:
            self._neighbours = open_neighbours(generation)
        return self._neighbours

    def condemn(self) -> None:
        """The published collections cannot be read: let the next repair build them from the catalog."""
        if self._generation is not None:
            generations.condemn(self._generation)

    def refresh(self) -> None:
        """Forget the open generation, so that the next question sees what was published since."""
        self._generation = None
        self._neighbours = None
        self._close_client()

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
            raise IndexUnusableError("the collections are not built", hint="build them with: ctx reindex")
        if self._client is None:
            self._client = open_client(generation.path)
        return self._client

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
