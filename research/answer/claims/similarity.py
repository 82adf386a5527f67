"""How alike a sentence and the passages of its sources are in meaning, where an encoder is at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from research.answer.claims.evidence import Source
from research.errors import CtxError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]

_LONGEST = 500  # characters of a text that are embedded
_SHORTEST = 80  # if that is beyond the encoder's window: no text of so few characters is
_MOST = 24  # passages that a sentence is compared with


class Similarity:
    """Remembers the vectors of passages, since sentences of an answer cite the same ones."""

    def __init__(self, embed: Embed | None) -> None:
        self._embed = embed
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def best(self, claim: str, first: Iterable[str], sources: Iterable[Source]) -> float:
        """The highest cosine of a claim and a passage, `first` or others of the sources; 0 without an encoder."""
        if self._embed is None:
            return 0.0
        passages = dict.fromkeys(text[:_LONGEST] for text in first)
        passages |= dict.fromkeys(text[:_LONGEST] for source in sources for text in source.passages(_MOST))
        texts = [text for text in islice(passages, _MOST) if text.strip()]
        if not texts or not claim.strip():
            return 0.0
        claim = claim[:_LONGEST]
        self._add([text for text in dict.fromkeys([claim, *texts]) if text not in self._vectors])
        own = self._vectors.get(claim)
        if own is None:
            return 0.0
        cosines = [float(own @ self._vectors[text]) for text in texts if text in self._vectors]
        return max((cosine for cosine in cosines if -1.01 <= cosine <= 1.01), default=0.0)

    def _add(self, texts: list[str]) -> None:
        """An encoder that fails, or is asked for too long a text, costs only its opinion."""
        if self._embed is None or not texts:
            return
        for longest in (_LONGEST, _SHORTEST):
            try:
                vectors = self._embed([text[:longest] for text in texts])
            except ValueError:
                continue
            except (CtxError, OSError, RuntimeError):
                self._embed = None
                return
            self._vectors |= dict(zip(texts, vectors, strict=False))
            return
