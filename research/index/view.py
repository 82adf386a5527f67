"""What every part of an index needs: the folder, what is open of it, for whom it acts, and what may leave."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from research.errors import BusyError, NothingFoundError
from research.index.rooms import Rooms
from research.models import Item, Question
from research.observe import NULL_RECORDER, Recorders
from research.settings import Settings, check, confidence_value
from research.store import Catalog, IndexPaths

if TYPE_CHECKING:
    from research.context import Thresholds, TokenCounter
    from research.conversation import Memories, Sessions
    from research.encoders import TextEncoder
    from research.experiences import Experiences, Values
    from research.filters import Filters
    from research.governance import AllowAll, PolicyAccess, Principal
    from research.observe import Recorder
    from research.parallel import Workers
    from research.records import DocumentInfo
    from research.request import AskRequest
    from research.search import FoundItems
    from research.sources import DocumentsSource, ItemsSource, MemoriesSource
    from research.store import ChromaClient, Reader, VectorIndex

S = TypeVar("S", bound="ItemsSource")


class View:
    """What is open of an index and for whom. Nothing is opened before it is needed."""

    def __init__(
        self,
        folder: str | Path,
        settings: Settings | None = None,
        *,
        encoder: TextEncoder | None = None,
        recorder: Recorder | None = None,
        relative_to: str | Path = "",
    ) -> None:
        """`encoder` stands in for the one that filled the index; `recorder` hears of times and counts; `relative_to` is
        the folder that relative paths of documents and folders are looked for in first."""
        self.paths = IndexPaths(Path(folder))
        self.settings = settings or Settings()
        self.principal: Principal | None = None
        self._sees_all = False
        self.relative_to = str(relative_to)
        self.rooms = Rooms(self.paths, self.settings, encoder, _harmless(recorder))
        self.renewing = threading.Lock()

    @classmethod
    def open(cls, folder: str | Path, settings: Settings | None = None, *, recorder: Recorder | None = None) -> Self:
        """The index in this folder, ready to be asked. Raises NothingFoundError if there is none."""
        index = cls(folder, settings, recorder=recorder)
        index.catalog  # noqa: B018  opens it
        return index

    @classmethod
    def of(cls, client: ChromaClient, settings: Settings, encoder: TextEncoder | None = None) -> Self:
        """The index that a client of the contract has open; it is the client's to close."""
        index = cls(client.paths.root, settings, encoder=encoder)
        index.rooms.take(client.catalog, client.vectors)
        return index

    @property
    def root(self) -> Path:
        """The folder."""
        return self.paths.root

    @property
    def exists(self) -> bool:
        return self.paths.exists

    def nothing_found(self) -> NothingFoundError:
        """What there is to say of an index without documents."""
        return self.paths.nothing_found()

    def create(self) -> bool:
        """Make the folder, readable by its owner alone. False if it was there already."""
        return self.paths.make_private()

    @property
    def recorder(self) -> Recorder:
        return self.rooms.recorder

    @recorder.setter
    def recorder(self, recorder: Recorder) -> None:
        self.rooms.recorder = recorder

    @property
    def room(self) -> Rooms:
        """What is open, as far as it may be seen by whom the index acts for."""
        return self.rooms if self._sees_all else self.rooms.seen_by(self.principal)

    @property
    def access(self) -> AllowAll | PolicyAccess:
        """What decides about what is seen, and has it on record."""
        return self.room.access

    @property
    def catalog(self) -> Catalog:
        """To be read: as far as it may be seen. Short writes go into all of it."""
        return self.room.catalog

    @property
    def vectors(self) -> VectorIndex:
        return self.rooms.vectors

    @property
    def source(self) -> DocumentsSource:
        """Documents as a source."""
        return self.rooms.documents

    def item_source(self, kind: type[S]) -> S:
        """A source of items, of this class."""
        return self.room.items(kind)

    @property
    def memory_source(self) -> MemoriesSource:
        """Memories as a source."""
        return self.room.memory_source()

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens as the settings say."""
        return self.rooms.counter()

    def acting_as(self, principal: Principal) -> Self:
        """The same index as somebody else sees it: what may not be read by them is in nothing that it gives. Both share
        all that is open; whoever opened it closes it."""
        view = copy(self)
        view.principal, view._sees_all = principal, False
        return view

    def unrestricted(self) -> Self:
        """The same index whatever a policy says, for its owner's own programs that look after it."""
        view = copy(self)
        view.principal, view._sees_all = None, True
        return view

    def store_item_vectors(self, found: FoundItems) -> None:
        """Keep what a question embedded, if nobody else is writing for long: the next one need not."""
        if found.fresh is not None:
            with suppress(BusyError):
                self.catalog.items.write_vectors(
                    found.fresh.encoder, found.fresh.numbers, found.fresh.vectors, short=True
                )

    def refresh(self) -> None:
        """Let go of what was read before, so that the next question sees the index as it is now."""
        self.rooms.refresh()

    def close(self, *, collections: bool = True) -> None:
        """Without `collections` they stay open: to take large ones apart takes long, and an ending process need not."""
        self.rooms.close(collections=collections)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def with_passages(
        self, reader: Reader, question: Question, items: Sequence[Item], *, look: bool = False
    ) -> list[Item]:
        """Items with the passages that fit a question: pages as documents find them, others by their words."""
        from research.search import with_passages

        pages = [item for item in items if item.ref.kind == "page"]
        found = iter(self.source.with_passages(reader, question, pages, look=look))
        return [next(found) if each.ref.kind == "page" else with_passages(question.wording, each) for each in items]

    def scoped_question(
        self, reader: Reader, text: str, documents: Sequence[str] = (), filters: Filters | None = None
    ) -> Question:
        """A question to documents, those that names or filters leave. Raises NothingFoundError where that is none."""
        from research.request import AskRequest

        return self.question_of(reader, AskRequest(text, documents=documents or None, filters=filters))

    def tenant_of(self, tenant: str) -> str:
        """Whose things are meant: the owner may name anybody's, everybody else has their own."""
        return tenant if self.principal is None or self.principal.owner else self.principal.tenant

    def acting(self) -> Principal:
        """For whom this index acts: whoever runs it, unless it is another's view."""
        from research.governance import owner_principal

        return self.principal or owner_principal()

    @cached_property
    def workers(self) -> Workers:
        """What asks its sources side by side, for whomever."""
        from research.parallel import Workers

        return Workers("ctx-source")

    def timed(self, stage: str) -> AbstractContextManager[None]:
        return self.recorder.time(stage)

    def drop_packages(self) -> None:
        """After a removal: what another server keeps of packages goes, too. The catalog's own went with the removal."""
        if self.settings.redis_url and self.exists:
            from research.packages import drop_left

            drop_left(self.unrestricted())

    def memory_store(self) -> Memories:
        """Memories, loaded with the first: no other question needs anything of them."""
        return self.room.memories

    def session_store(self) -> Sessions:
        """Conversations, loaded with the first: no other question needs anything of them."""
        from research.conversation import Sessions

        return Sessions(lambda: self.catalog)

    def experience_store(self) -> Experiences:
        from research.experiences import Choices, Experiences

        choices = Choices.of(self.settings)
        return Experiences(lambda: self.catalog, lambda: self.exists, self.rooms.create_catalog, choices)

    def value_store(self, *, whole: bool = False) -> Values:
        """`whole`: of all there is, to look for them anew."""
        from research.experiences import Values
        from research.sources import ExperiencesSource

        room = self.rooms if whole else self.room
        return Values(lambda: room.catalog, room.items(ExperiencesSource).search, self.rooms.own_encoder)

    def question_of(self, reader: Reader, wish: AskRequest) -> Question:
        documents, filters = wish.documents, wish.filters
        asked = Question(wish.question, mode=wish.mode or self.settings.mode)
        if documents is None and not filters:
            return asked
        if documents is not None and not documents:  # a list that came out empty allows nothing
            return replace(asked, documents=())
        from research.filters import Filters

        restrictions = [filters or Filters(), *([] if documents is None else [Filters(documents=tuple(documents))])]
        scope = reader.names.scope(restrictions, self.relative_to)
        ids = None if scope.documents is None else tuple(sorted(scope.documents))
        return replace(asked, documents=ids, pages=scope.pages)

    def one_document(self, reader: Reader, document: str) -> DocumentInfo:

        return reader.names.select_one(document, self.relative_to)

    def thresholds(self, score: float | None, confidence: str | float | None) -> Thresholds:
        """What is wanted at least: as given, or as set."""
        from research.context import Thresholds

        wanted = self.settings.min_confidence if confidence is None else confidence
        return Thresholds(
            check("min_score", self.settings.min_score if score is None else score, "min_score"),
            confidence_value(check("min_confidence", wanted, "min_confidence")),
        )


def _harmless(recorder: Recorder | None) -> Recorder:
    """A recorder that fails breaks no question."""
    if recorder is None:
        return NULL_RECORDER
    return recorder if isinstance(recorder, Recorders) else Recorders(recorder)
