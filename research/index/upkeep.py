"""Looking after an index: removal, status, checks, repair, backup."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from research.index.base import IndexBase

if TYPE_CHECKING:
    from research.reports import Backup, Check, Reindexed, Removal, Restored, Status


class Upkeep(IndexBase):
    """The part of `Index` that looks after itself."""

    def remove(self, *names: str, wait: float = 0.0) -> Removal:
        """Take the documents out that these names, paths, patterns or ids mean. Their files are never touched."""
        from research.store import plan_removal, remove

        removed = remove(self.paths, plan_removal(self.paths, names, self._relative_to).documents, wait=wait)
        self._drop_packages()
        return removed

    def plan_removal(self, *names: str) -> Removal:
        """What `remove` would take."""
        from research.store import plan_removal

        return plan_removal(self.paths, names, self._relative_to)

    def status(self) -> Status:
        """What is in the index, as far as it may be seen, and how it stands; also of one that does not exist."""
        from research.index.model_checks import contacts
        from research.store import status_of

        with self.catalog.snapshot() if self._room is not self._rooms and self.exists else nullcontext() as reader:
            status = status_of(self.paths, self.settings.named_encoders, reader)
        return replace(status, contacts=contacts(self.settings, status))

    def check(self) -> list[Check]:
        """What is well and what is not, of the installation and of this index, each with its remedy."""
        from research.index.installation import check_installation
        from research.index.model_checks import check_models
        from research.store import check_index

        own = check_index(self.paths, self.settings.named_encoders, self.settings.request_timeout)
        sound = self.exists and all(check.severity != "error" for check in own)
        governed = [*self._check_audit(sound=sound), *self._check_policy(sound=sound)]
        return [*check_installation(), *own, *governed, *check_models(self.settings, own)]

    def repair(self) -> list[Check]:
        """Mend what can be mended: what was wrong, and whether it is well now. Empty: nothing was."""
        from research.store import repair

        return repair(self.paths)

    def reindex(self, *, wait: float = 0.0) -> Reindexed:
        """Build full text and collections anew from the catalog. Nothing is read or embedded again."""
        from research.store import reindex

        return reindex(self.paths, wait=wait)

    def backup(self, file: Path, *, images: bool = True, force: bool = False) -> Backup:
        """Write the index into one file, even while it is in use."""
        from research.store import backup

        return backup(self.paths, file, images=images, force=force)

    def restore(self, file: Path, *, force: bool = False, wait: float = 0.0) -> Restored:
        """Bring the index back from a backup."""
        from research.store import restore

        return restore(self.paths, file, force=force, wait=wait)

    def _check_audit(self, *, sound: bool) -> list[Check]:
        from research.governance import check_audit

        return check_audit(self._rooms.audit) if sound else []

    def _check_policy(self, *, sound: bool) -> list[Check]:
        from research.governance import check_policy

        with self._rooms.catalog.snapshot() if sound else nullcontext() as reader:
            return check_policy(self.settings, reader, self.paths.root)
