"""Where the parts of an index lie while it is being made inside the one it is to replace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from research.store.files.paths import IndexPaths


@dataclass(frozen=True, slots=True)
class StagedPaths(IndexPaths):
    """The folder `restoring` of an index. Paths of page images are those they will have, so that the collections
    can be built before anything is put in place."""

    @property
    def images(self) -> Path:
        return IndexPaths(self.root.parent).images

    @property
    def staged_images(self) -> Path:
        """Where image files wait until then."""
        return self.root / "images"
