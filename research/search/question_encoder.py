"""The encoder of questions: the one that filled the index, whatever is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.models import Question
from research.store import Reader, chunk_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder


class QuestionEncoder:
    """Embeds questions with the encoder that filled the index; loads it with the first one, and another if the index
    was filled anew since. A `given` encoder is kept."""

    def __init__(
        self,
        given: TextEncoder | None = None,
        named_encoders: Sequence[str] = (),
        timeout: int = 0,
        check: Callable[[str], None] | None = None,
    ) -> None:
        """`timeout`: seconds that an encoder at an address may take; 0 is the usual. `check` raises for the name of one
        that may not be asked."""
        self._given = given
        self._check = check
        self._named_encoders = named_encoders
        self._timeout = timeout
        self._loaded: tuple[tuple[str, int, str], TextEncoder] | None = None
        self._loading = threading.Lock()

    def vector(self, reader: Reader, question: Question) -> NDArray[np.float32]:
        """(dim,), unit length."""
        encoder = self.encoder(reader)
        known: NDArray[np.float32] | None = question.memo.known(("vector", encoder.name))
        if known is None:
            known = question.memo.put(("vector", encoder.name), encoder.embed_query(question.wording))
        return known

    def encoder(self, reader: Reader) -> TextEncoder:
        if self._given is not None:
            return self._given
        name = chunk_vectors.encoder_of(reader)
        if not name:
            raise CtxError("no document has vectors yet", hint="finish with: ctx ingest PATH")
        from research.encoders import is_embedded, load_remembered

        if self._check is not None and not is_embedded(name):
            self._check(name)
        dim, sketch = chunk_vectors.dim_of(reader), chunk_vectors.sketch_of(reader)
        with self._loading:
            if self._loaded is None or self._loaded[0] != (name, dim, sketch):
                encoder = load_remembered(
                    name, dim=dim, sketch=sketch, named=self._named_encoders, timeout=self._timeout
                )
                self._loaded = ((name, dim, sketch), encoder)
            return self._loaded[1]
