"""Looking after an index: removal, status, checks, repair, backup."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from research.index.index import Index
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
