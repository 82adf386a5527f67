"""Where the parts of an index live inside its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from research.errors import IndexUnusableError
from research.store.private import private_files


@dataclass(frozen=True, slots=True)
class IndexPaths:
    """The files of one index. Nothing is created until `create`."""

    root: Path

    @property
    def catalog(self) -> Path:
        return self.root / "catalog.sqlite3"

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

    def create(self) -> None:
        """Make the folder, readable by its owner only: it holds the text of private documents."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            ignore = self.root / ".gitignore"
            if not ignore.exists():
                with private_files():
                    ignore.write_text("*\n")
        except OSError as error:
            reason = error.strerror or str(error)
            raise IndexUnusableError(
                f"cannot create the index folder {self.root}: {reason}",
                hint="name another folder with --index DIR or CTX_INDEX",
            ) from error
