"""Where the parts of an index live inside its folder, and which folder may become one."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from research.errors import IndexUnusableError
from research.store.error_hints import next_step
from research.store.files.own_files import make_folder, own_entries, refuse_link, remove_file, remove_tree

CATALOG = "catalog.sqlite3"
# Every name that ctx, SQLite or the lock makes directly in the folder.
_OWN_NAMES = frozenset(
    {
        "ctx-index.json",
        ".gitignore",
        "write.lock",
        "write.pid",
        "chroma",
        "images",
        "spool",
        "restoring",
        CATALOG,
        *(CATALOG + ending for ending in ("-wal", "-shm", "-journal")),
        "catalog.damaged",
    }
)
_SPOOLED = re.compile(r"[0-9a-f]{16}\.(jsonl|images)|tokens\.json")


@dataclass(frozen=True, slots=True)
class IndexPaths:
    """The files of one index. Nothing is created until `create`."""

    root: Path

    @property
    def catalog(self) -> Path:
        return self.root / CATALOG

    @property
    def chroma(self) -> Path:
        """Holds one folder a generation of the collections; only `store.collections` looks inside."""
        return self.root / "chroma"

    @property
    def images(self) -> Path:
        """Page images and thumbnails, one folder a document."""
        return self.root / "images"

    @property
    def spool(self) -> Path:
        """Pages on their way from a reader to the catalog. Empty between runs."""
        return self.root / "spool"

    @property
    def restoring(self) -> Path:
        """A backup on its way in, until it was found whole."""
        return self.root / "restoring"

    @property
    def lock(self) -> Path:
        return self.root / "write.lock"

    @property
    def exists(self) -> bool:
        return self.catalog.is_file()

    def refuse_links(self) -> None:
        """Raise if a name of ours in the folder is a link. SQLite and Chroma would follow it without a word."""
        try:
            with os.scandir(self.root) as entries:
                links = [entry for entry in entries if entry.name in _OWN_NAMES and entry.is_symlink()]
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable("cannot look into", error) from error
        for link in links:
            refuse_link(Path(link))

    def open_spool(self) -> Path:
        """The spool, there and without what a stopped run left in it."""
        self.clear_spool()
        make_folder(self.spool)
        return self.spool

    def clear_spool(self) -> None:
        """Remove what is ours in the spool, and the folder if it is empty then."""
        for path in own_entries(self.spool, _SPOOLED):
            remove_tree(path)
            remove_file(path)
        with suppress(OSError):
            self.spool.rmdir()

    def has_spooled(self) -> bool:
        """Whether a stopped run left a spool, with something of ours in it or nothing at all."""
        if self.spool.is_symlink() or not self.spool.is_dir():
            return False
        return bool(own_entries(self.spool, _SPOOLED)) or not any(self.spool.iterdir())

    def create(self) -> None:
        """Make the folder, readable by its owner only: it holds the text of private documents.

        One that is there must be empty, or an index; any other is left as it is, and `UsageError` says so.
        """
        from research.store.files.marker import ignore_for_git, mark  # a question needs neither

        try:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            try:
                self.root.mkdir(mode=0o700)
                made = True
            except FileExistsError:
                made = False
            self.refuse_links()
            mark(self.root)
            if made:
                ignore_for_git(self.root)
        except OSError as error:
            raise self._unusable("cannot use" if self.root.is_dir() else "cannot create", error) from error

    def _unusable(self, what: str, error: OSError) -> IndexUnusableError:
        hint = next_step(error) or "name another folder with --index DIR or CTX_INDEX"
        return IndexUnusableError(f"{what} the index folder {self.root}: {error.strerror or error}", hint=hint)
