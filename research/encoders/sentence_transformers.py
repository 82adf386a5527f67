"""Any sentence-transformers model, from a local folder or a hub name, in place of the embedded encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.encoders.torchvision_shim import allow_torchvision
from research.errors import CtxError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 32
FALLBACK_WINDOW = 512


class SentenceTransformersEncoder:
    """Loads at once, so that a wrong name fails before any document is read."""

    def __init__(self, model: str, *, threads: int | None = None) -> None:
        self._model = _load(model, threads)
        # A folder is known by its full path: the same relative name elsewhere may be another model.
        self.name = f"sentence-transformers:{Path(model).resolve() if Path(model).is_dir() else model}"
        # Before 5.0 these methods had other names or none.
        dimension = (
            getattr(self._model, "get_embedding_dimension", None) or self._model.get_sentence_embedding_dimension
        )
        self.dim = int(dimension())
        self.max_tokens = int(self._model.max_seq_length or FALLBACK_WINDOW)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, (len(texts), dim). A text beyond the window raises ValueError; nothing is cut."""
        import numpy as np

        room = self.max_tokens - self._special_tokens
        for position, text in enumerate(texts):
            count = self.count_tokens(text)
            if count > room:
                raise ValueError(f"text {position} has {count} tokens; the window takes {room}")
        if not texts:
            return np.empty((0, self.dim), np.float32)
        return self._encode(list(texts), query=False)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A question's unit vector, (dim,). The model itself cuts what exceeds its window."""
        vector: NDArray[np.float32] = self._encode([text], query=True)[0]
        return vector

    def count_tokens(self, text: str) -> int:
        return len(self._tokens(text, special=False))

    @property
    def _special_tokens(self) -> int:
        return len(self._tokens("", special=True))

    def _tokens(self, text: str, *, special: bool) -> list[int]:
        # verbose=False: the tokenizer's own warning about long input; embed() refuses such text anyway.
        encoded = self._model.tokenizer(text, add_special_tokens=special, truncation=False, verbose=False)
        ids: list[int] = encoded["input_ids"]
        return ids

    def _encode(self, texts: list[str], *, query: bool) -> NDArray[np.float32]:
        encode = getattr(self._model, "encode_query" if query else "encode_document", self._model.encode)
        vectors: NDArray[np.float32] = encode(
            texts, batch_size=BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return vectors


def _load(model: str, threads: int | None) -> Any:
    folder = Path(model).is_dir()
    if not folder and (model.startswith((".", "~")) or Path(model).is_absolute()):
        raise CtxError(f"no such encoder folder: {model}")
    try:
        allow_torchvision()
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise CtxError(
            f"the encoder {model!r} needs the package sentence-transformers, which cannot be imported: {error}",
            hint="pip install sentence-transformers",
        ) from error
    if threads:
        import torch

        torch.set_num_threads(threads)
    try:
        return SentenceTransformer(model, local_files_only=folder)
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        reason = str(error).strip().splitlines()
        raise CtxError(f"cannot load the encoder {model!r}: {reason[0] if reason else type(error).__name__}") from error
