"""What an index has open: the catalog, the collections, the sources, each opened with the first that needs it.

All views of an index share it, whoever they act for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

from research.governance import AllowAll
from research.store import Catalog

if TYPE_CHECKING:
    from research.context import TokenCounter
    from research.conversation import Memories
    from research.encoders import QuestionEncoder, TextEncoder
    from research.governance import Audit, MemoryAccessDecision, MemoryAccessPolicy, PolicyAccess, Principal
    from research.observe import Recorder
    from research.packages import Packages
    from research.settings import Settings
    from research.sources import DocumentsSource, ItemsSource, MemoriesSource
    from research.store import IndexPaths, Reader, VectorIndex

S = TypeVar("S", bound="ItemsSource")

_MOST_VIEWS = 16  # principals whose view is kept: the words of what they see are held in memory


class Rooms:
    """May be used from many threads."""

    def __init__(self, paths: IndexPaths, settings: Settings, encoder: TextEncoder | None, recorder: Recorder) -> None:
        """`encoder` stands in for the one that filled the index."""
        self.access: AllowAll | PolicyAccess = AllowAll()
        self.recorder = recorder
        self._paths = paths
        self._settings = settings
        self._encoder = encoder
        self._opening = threading.Lock()
        self._catalog: Catalog | None = None
        self._vectors: VectorIndex | None = None
        self._documents: DocumentsSource | None = None
        self._question_encoder: QuestionEncoder | None = None
        self._counter: TokenCounter | None = None
        self._memories: Memories | None = None
        self._searched_memories: MemoriesSource | None = None
        self._first_encoder: TextEncoder | None = None
        self._items: dict[type[ItemsSource], ItemsSource] = {}
        self._policy: MemoryAccessPolicy | None = None
        self._audit: Audit | None = None
        self._views: OrderedDict[Principal, Rooms] = OrderedDict()
        self.packages: Packages | None = None

    def take(self, catalog: Catalog, vectors: VectorIndex) -> None:
        """What somebody else has open, and closes."""
        self._catalog, self._vectors = catalog, vectors

    @property
    def catalog(self) -> Catalog:
        with self._opening:
            if self._catalog is None:
                self._catalog = Catalog(self._paths)
            return self._catalog

    @property
    def vectors(self) -> VectorIndex:
        with self._opening:
            if self._vectors is None:
                from research.store import VectorIndex

                self._vectors = VectorIndex(self._paths)
            return self._vectors

    @property
    def documents(self) -> DocumentsSource:
        """Documents as a source, made with the first question: what it imports is not needed by everything else."""
        if self._documents is None:
            from research.sources import DocumentsSource

            made = DocumentsSource(self.vectors, self._settings, self.question_encoder, self.recorder)
            with self._opening:
                self._documents = self._documents or made
        return self._documents

    @property
    def question_encoder(self) -> QuestionEncoder:
        with self._opening:
            if self._question_encoder is None:
                from research.encoders import QuestionEncoder

                settings = self._settings
                self._question_encoder = QuestionEncoder(
                    self._encoder, settings.named_encoders, settings.request_timeout, self._check_encoder
                )
            return self._question_encoder

    def _check_encoder(self, name: str) -> None:
        from research.governance import check_encoder

        check_encoder(name, self._settings)

    def items(self, kind: type[S]) -> S:
        """A source of items, made with the first question to it and kept: what it has read of the catalog is of use to
        the next."""
        with self._opening:
            made = self._items.setdefault(kind, kind(self.own_encoder))
        assert isinstance(made, kind)
        return made

    @property
    def memories(self) -> Memories:
        if self._memories is None:
            from research.conversation import Memories

            made = Memories(
                lambda: self.catalog,
                self.memory_source,
                exists=lambda: self._paths.exists,
                create=self.create_catalog,
            )
            with self._opening:
                self._memories = self._memories or made
        return self._memories

    def seen_by(self, principal: Principal | None) -> Rooms:
        """What this principal may see, or the owner; all of it to its owner without a policy."""
        from research.governance import has_policies

        owns = principal is None or principal.owner
        if owns and self._policy is None and not has_policies(self._settings.policy):
            return self  # nothing more is loaded for it
        from research.governance import MemoryAccessPolicy, owner_principal

        with self._opening:
            self._policy = self._policy or MemoryAccessPolicy(self._settings.policy, index=self._paths.root)
        if owns and not self._policy.governs:
            return self
        who = principal or owner_principal()
        with self._opening:
            view = self._views.pop(who, None) or Restricted(self, who, self._policy)
            self._views[who] = view
            if len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)  # closed when nobody asks it any more
        return view

    def policy_access(self, principal: Principal, policy: MemoryAccessPolicy) -> PolicyAccess:
        """What a policy makes of this principal, whether it is in force or not."""
        from research.governance import PolicyAccess

        return PolicyAccess(
            principal, policy, self._settings, lambda: self.catalog, recorder=self.recorder, audit=self._record
        )

    def audit(self) -> Audit:
        if self._audit is None:
            from research.governance import Audit

            self._audit = Audit(self._paths, lambda: self.catalog, self._settings)
        return self._audit

    def _record(self, decision: MemoryAccessDecision, purpose: str) -> None:
        from research.observe import current_trace

        self.audit().record(decision, purpose, trace_id=current_trace())

    def counter(self) -> TokenCounter:
        """One for all questions: it remembers the words it has counted."""
        if self._counter is None:
            from research.context import TokenCounter

            self._counter = TokenCounter(self._settings.token_encoding)
        return self._counter

    def own_encoder(self, reader: Reader) -> TextEncoder:
        """The index's own; the embedded one where nothing was embedded yet."""

        if self._encoder is not None or reader.chunks.encoder():
            return self.question_encoder.encoder(reader)
        if self._first_encoder is None:
            from research.encoders import load_text_encoder

            self._first_encoder = load_text_encoder()
        return self._first_encoder

    def create_catalog(self) -> None:
        if not self._paths.exists:
            from research.store import write_lock

            with write_lock(self._paths, wait=1.0), Catalog(self._paths, writable=True):
                pass

    def keep_packages(self, made: Packages) -> None:
        """The first that are made are everybody's: who asks for the same at once gets the same."""
        with self._opening:
            self.packages = self.packages or made

    def refresh(self) -> None:
        """Let go of what was read before."""
        with self._opening:
            if self._vectors is not None:
                self._vectors.refresh()

    def close(self, *, collections: bool) -> None:
        if self._memories is not None:
            self._memories.close()
        if self.packages is not None:
            self.packages.close()
        with self._opening:
            views, self._views = list(self._views.values()), OrderedDict()
        for view in views:
            view.close(collections=False)
        with self._opening:
            if self._catalog is not None:
                self._catalog.close()
            self._catalog = self._memories = self._searched_memories = None
            self._items = {}
            if collections and self._vectors is not None:
                self._vectors.refresh()
                self._vectors = self._documents = self._question_encoder = None

    def memory_source(self) -> MemoriesSource:
        """Memories as a source, made with the first that are searched: to be told one needs none of it."""
        if self._searched_memories is None:
            from research.sources import MemoriesSource

            made = MemoriesSource(self.own_encoder)
            with self._opening:
                self._searched_memories = self._searched_memories or made
        return self._searched_memories


class Restricted(Rooms):
    """The rooms of one principal: a catalog without what they may not see, and sources over it. Encoders, documents and
    what writes are those of the whole index."""

    def __init__(self, whole: Rooms, principal: Principal, policy: MemoryAccessPolicy) -> None:
        super().__init__(whole._paths, whole._settings, whole._encoder, whole.recorder)
        self._whole = whole
        self.access: PolicyAccess = whole.policy_access(principal, policy)

    @property
    def catalog(self) -> Catalog:
        whole = self._whole.catalog
        with self._opening:
            if self._catalog is None:
                from research.store import restricted

                self._catalog = restricted.RestrictedCatalog(
                    whole, self.access.see, lambda: self.access.revision, self.access.tenant
                )
            return self._catalog

    @property
    def vectors(self) -> VectorIndex:
        return self._whole.vectors

    @property
    def documents(self) -> DocumentsSource:
        return self._whole.documents

    def own_encoder(self, reader: Reader) -> TextEncoder:
        return self._whole.own_encoder(reader)

    def counter(self) -> TokenCounter:
        return self._whole.counter()
