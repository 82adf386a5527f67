"""What every visual encoder offers. Implementations: one file each, named in registry.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from research.boxes import Box

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PageVectors:
    """What an encoder saw on one page: `vectors` (n_vectors, dim) with unit rows, and where each one looked.
    A vector with no place of its own (the prompt's words) has the whole page as its box."""

    vectors: NDArray[np.float32]
    boxes: tuple[Box, ...]


class VisualEncoder(Protocol):
    """Turns page images and questions into vectors that are compared by MaxSim (maxsim.py)."""

    @property
    def name(self) -> str:
        """The identity an index remembers: kind, checkpoint and all that changes vectors. Two are never mixed."""
        ...

    @property
    def dim(self) -> int: ...

    def embed_pages(self, images: Sequence[Path]) -> list[PageVectors]:
        """One PageVectors an image, in order. An image that cannot be read raises CtxError."""
        ...

    def embed_question(self, text: str) -> NDArray[np.float32]:
        """A question's vectors, (n_tokens, dim)."""
        ...
