"""The parts of an index that look after it: graph, packages, labels and policy; removal, status, repair, backup."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from research.governance import Action, Audit, Labels, MemoryAccessDecision, Principal
    from research.graph import GraphUpdate, Neighbourhood, ShownGraph
    from research.index.index import Index
    from research.packages import ContextBuildRequest, ContextPackage, Fitting
    from research.packages import Packages as PackageStore
    from research.reports import Backup, Check, Reindexed, Removal, Restored, Status


class Admin:
    """Looking after an index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def remove(self, *names: str, wait: float = 0.0) -> Removal:
        """Take the documents out that these names, paths, patterns or ids mean. Their files are never touched."""
        from research.store import plan_removal, remove

        removed = remove(
            self._index.paths, plan_removal(self._index.paths, names, self._index.relative_to).documents, wait=wait
        )
        self._index.drop_packages()
        return removed

    def plan_removal(self, *names: str) -> Removal:
        """What `remove` would take."""
        from research.store import plan_removal

        return plan_removal(self._index.paths, names, self._index.relative_to)

    def status(self) -> Status:
        """What is in the index, as far as it may be seen, and how it stands; also of one that does not exist."""
        from research.index.checks import contacts
        from research.store import status_of

        restricted = self._index.exists and self._index.room is not self._index.rooms
        with self._index.catalog.snapshot() if restricted else nullcontext() as reader:
            status = status_of(self._index.paths, self._index.settings.named_encoders, reader)
        return replace(status, contacts=contacts(self._index.settings, status))

    def check(self) -> list[Check]:
        """What is well and what is not, of the installation and of this index, each with its remedy."""
        from research.index.checks import check_installation, check_models
        from research.store import check_index

        own = check_index(self._index.paths, self._index.settings.named_encoders, self._index.settings.request_timeout)
        sound = self._index.exists and all(check.severity != "error" for check in own)
        governed = [*self._check_audit(sound=sound), *self._check_policy(sound=sound)]
        return [*check_installation(), *own, *governed, *check_models(self._index.settings, own)]

    def repair(self) -> list[Check]:
        """Mend what can be mended: what was wrong, and whether it is well now. Empty: nothing was."""
        from research.store import repair

        return repair(self._index.paths)

    def reindex(self, *, wait: float = 0.0) -> Reindexed:
        """Build full text and collections anew from the catalog. Nothing is read or embedded again."""
        from research.store import reindex

        return reindex(self._index.paths, wait=wait)

    def backup(self, file: Path, *, images: bool = True, force: bool = False) -> Backup:
        """Write the index into one file, even while it is in use."""
        from research.store import backup

        return backup(self._index.paths, file, images=images, force=force)

    def restore(self, file: Path, *, force: bool = False, wait: float = 0.0) -> Restored:
        """Bring the index back from a backup."""
        from research.store import restore

        return restore(self._index.paths, file, force=force, wait=wait)

    def _check_audit(self, *, sound: bool) -> list[Check]:
        from research.governance import check_audit

        return check_audit(self._index.rooms.audit) if sound else []

    def _check_policy(self, *, sound: bool) -> list[Check]:
        from research.governance import check_policy

        with self._index.rooms.catalog.snapshot() if sound else nullcontext() as reader:
            return check_policy(self._index.settings, reader, self._index.paths.root)


class Packages:
    """Context packages for tasks (seed 003), governed and within a budget."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def build(
        self, request: ContextBuildRequest | Mapping[str, Any] | str | bytes, fit: Fitting = None
    ) -> ContextPackage:
        """A context package for a task (seed 003): ranked sources of every kind, governed, within a token budget. A
        request is an object as `ctx package schema` has it, or its JSON. Built for whom this index acts. `fit` is
        given what fits into a number of tokens, and chooses how many it is."""
        return self._store().build(request, self._index.acting(), fit)

    def get(self, package_id: str) -> ContextPackage:
        """A package by its id: from the cache, or built anew under the policy of now. Raises NothingFoundError."""
        return self._store().get(package_id, self._index.acting())

    def rebuild(self, package_id: str) -> ContextPackage:
        """Built anew from its request, under the same id."""
        return self._store().get(package_id, self._index.acting(), anew=True)

    def feedback(self, package_id: str, *refs: str, useful: bool = True) -> list[str]:
        """Tell whether sources of a package were of use, all of them if none is named."""
        return self._store().feedback(package_id, refs, self._index.acting(), useful=useful)

    def list(self, *, limit: int = 100) -> list[ContextPackage]:
        """Records of packages, the one built last first; without their text."""
        return self._store().listed(self._index.acting(), limit=limit)

    def _store(self) -> PackageStore:
        """Packages, loaded with the first: no question needs anything of them. All views share them."""
        if self._index.rooms.packages is None:
            from research.packages import packages_of

            self._index.rooms.keep_packages(packages_of(self._index.unrestricted()))
        assert self._index.rooms.packages is not None
        return self._index.rooms.packages


class Graph:
    """What is near to what."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def near(
        self,
        *refs: str,
        hops: int = 1,
        kinds: Sequence[str] | None = None,
        limit: int = 200,
        tenant: str = "",
        seconds: float = 5.0,
    ) -> Neighbourhood:
        """What is near to these refs in the graph. What it lacks is brought into it first, for about so long and if
        nobody else is writing; `complete` tells whether that was all."""
        from research.graph import find_neighbourhood

        complete = self.update(seconds=seconds).complete
        with self._index.catalog.snapshot() as reader:
            found = find_neighbourhood(
                reader, refs, hops=hops, kinds=kinds, limit=limit, tenant=self._index.tenant_of(tenant)
            )
        self._index.access.shown(found.nodes, "graph", lambda node: node.ref)
        return replace(found, complete=complete)

    def show(
        self,
        *things: str,
        hops: int = 1,
        kinds: Sequence[str] | None = None,
        limit: int = 200,
        tenant: str = "",
    ) -> ShownGraph:
        """The same with titles, for people. `things` are refs, ends of refs of code, or names of documents. Raises
        NothingFoundError for one that is not there."""
        from research.graph import shown_graph, started_from

        self.update(seconds=5.0)
        with self._index.catalog.snapshot() as reader:
            refs = [started_from(reader, thing, partial(self._index.one_document, reader)) for thing in things]
        found = self.near(*refs, hops=hops, kinds=kinds, limit=limit, tenant=tenant)
        with self._index.catalog.snapshot() as reader:
            return shown_graph(reader, refs, found, self._index.tenant_of(tenant))

    def update(self, *, seconds: float | None = None) -> GraphUpdate:
        """Bring the graph up to what is in the index, for about so long."""
        from research.graph import GraphUpdate, is_behind, update_graph

        whole = self._index.rooms.catalog
        return update_graph(whole, seconds=seconds) if is_behind(whole) else GraphUpdate()


class Policy:
    """Who may see what: labels, decisions, and the record of them."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def labels(self) -> Labels:
        """What things are to a policy: classification, status, module, project; given, taken away, listed, proposed."""
        from research.governance import Labels

        return Labels(
            lambda: self._index.rooms.catalog,
            exists=lambda: self._index.exists,
            create=self._index.rooms.create_catalog,
            relative_to=self._index.relative_to,
        )

    def decide(
        self, principal: Principal, refs: Sequence[str], *, action: Action = "read", policy: str = ""
    ) -> MemoryAccessDecision:
        """What the policy decides about these, for anybody. Nothing is given out or recorded. `policy` is a file or
        folder in place of that of the settings."""
        from research.governance import MemoryAccessPolicy

        found = MemoryAccessPolicy(policy or self._index.settings.policy, index=self._index.paths.root)
        with self._index.rooms.catalog.snapshot() as reader:
            return self._index.rooms.policy_access(principal, found).decide(reader, refs, action=action)

    def audit(self) -> Audit:
        """Who was shown what, by which decision."""
        return self._index.rooms.audit()
