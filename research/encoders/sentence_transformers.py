"""Any sentence-transformers model, from a local folder or a hub name, in place of the embedded encoder."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.encoders import checkpoints
from research.encoders.base import check_window
from research.encoders.checkpoints import DIGITS, Name, add_file, add_weights, places_of
from research.encoders.libraries import allow_torchvision, quiet
from research.errors import EncoderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KIND = "sentence-transformers"
PACKAGE = "sentence-transformers"
OLDEST = 6  # its major version; those before import Python files from a model's folder unasked
INSTALL = "pip install 'ctx-research[encoders]'"
BATCH = 32
FALLBACK_WINDOW = 512
_ENDLESS = 1_000_000  # tokens; a window beyond that says that none is known

_BARE_NAME = re.compile(r"\w[\w.-]*")


def identify(wanted: str) -> str:
    """The name an index would remember a model by that the user typed, told from its files without loading it. A hub
    name that is not on this machine is fetched, for the user has asked for it by name."""
    check_package(wanted)
    return _find(_split(wanted)[0], typed=True)[0]


def to_fetch(wanted: str) -> str:
    """Return the hub name for which `identify` would ask the hub; empty if it need not or must not."""
    model = _completed(_split(wanted)[0], typed=True)
    return model if checkpoints.to_fetch(model) else ""


def _split(name: str) -> tuple[str, str]:
    """Return the hub name or folder that a name means, and the fingerprint it carries; empty if it has none."""
    parts = Name.of(name)
    return (parts.model, parts.mark) if parts.kind == KIND else (name, "")


def find_remembered(name: str) -> tuple[str, Path]:
    """Return the name by which an index remembers a model, and its folder: of a folder's full path, a hub name, or such
    a name. One whose fingerprint no longer fits is refused, for its vectors would not fit the index. Nothing is
    fetched."""
    check_package(name)
    model, mark = _split(name)
    if mark and Path(model).is_absolute() and not Path(model).is_dir():
        raise EncoderUnavailable(
            f"the encoder that filled this index is no longer at {model}",
            hint="put it back, or embed all documents anew: CTX_TEXT_ENCODER=FOLDER ctx ingest PATH",
        )
    found, folder = _find(model)
    if mark and not found.endswith(f"@{mark}"):
        raise EncoderUnavailable(
            f"the encoder {model} is not the one that filled this index: its files have changed",
            hint=f"embed all documents anew: CTX_TEXT_ENCODER={shlex.quote(model)} ctx ingest PATH",
        )
    return found, folder


class SentenceTransformersEncoder:
    """Loads at once, so that a wrong name fails before any document is read, and from this machine's files only."""

    def __init__(self, name: str, *, threads: int | None = None) -> None:
        self.name, folder = find_remembered(name)
        self._model = _load(folder, threads)
        self.dim = int(self._model.get_embedding_dimension())
        window = self._model.max_seq_length
        self.max_tokens = int(window) if window and window < _ENDLESS else FALLBACK_WINDOW

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, (len(texts), dim). A text beyond the window raises ValueError; nothing is cut."""
        import numpy as np

        special = len(self._tokens("", special=True))
        check_window([self.count_tokens(text) for text in texts], self.max_tokens - special)
        if not texts:
            return np.empty((0, self.dim), np.float32)
        return self._encode(list(texts), query=False)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A question's unit vector, (dim,). The model itself cuts what exceeds its window."""
        vector: NDArray[np.float32] = self._encode([text], query=True)[0]
        return vector

    def count_tokens(self, text: str) -> int:
        return len(self._tokens(text, special=False))

    def tokenizer_json(self) -> str:
        """The tokenizer as the `tokenizers` package writes it; empty if it is of another kind."""
        backend: Any = getattr(self._model.tokenizer, "backend_tokenizer", self._model.tokenizer)
        return str(backend.to_str()) if hasattr(backend, "to_str") else ""

    def _tokens(self, text: str, *, special: bool) -> list[int]:
        # verbose=False: the tokenizer's own warning about long input; embed() refuses such text anyway.
        tokenizer = self._model.tokenizer
        if callable(tokenizer):
            encoded = tokenizer(text, add_special_tokens=special, truncation=False, verbose=False)["input_ids"]
        else:  # a model of word vectors alone has the bare one
            encoded = tokenizer.encode(text, add_special_tokens=special).ids
        ids: list[int] = encoded
        return ids

    def _encode(self, texts: list[str], *, query: bool) -> NDArray[np.float32]:
        encode = self._model.encode_query if query else self._model.encode_document
        with quiet():
            vectors: NDArray[np.float32] = encode(
                texts, batch_size=BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
            )
        return vectors


def check_package(name: str) -> None:
    """Raise `EncoderUnavailable` unless a model may be loaded. Told from the package's metadata: an older one is not
    even imported."""
    try:
        found = version(PACKAGE)
    except PackageNotFoundError:
        raise _missing(name, "is not installed") from None
    if int(re.match(r"\d*", found)[0] or 0) < OLDEST:  # type: ignore[index]
        raise _missing(name, f"is here in version {found}: those before {OLDEST} run code from a model's folder")


def _missing(name: str, why: str) -> EncoderUnavailable:
    return EncoderUnavailable(f"the encoder {name!r} needs the package {PACKAGE}, which {why}", hint=INSTALL)


def _find(model: str, *, typed: bool = False) -> tuple[str, Path]:
    model = _completed(model, typed=typed)
    own, places = checkpoints.find(model, typed=typed)
    return f"{KIND}:{own or model}@{_fingerprint(places)}", places[0]


def _completed(model: str, *, typed: bool) -> str:
    """A bare name as the library itself completes it, unless it is a folder."""
    bare = _BARE_NAME.fullmatch(model) and not (typed and Path(model).exists())
    return f"{KIND}/{model}" if bare else model


def _fingerprint(folders: Sequence[Path]) -> str:
    """Twelve digits that change when a setting, the vocabulary or the weights do."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(_files(folder)):
            if path.suffix == ".safetensors":
                add_weights(digest, path)
            else:
                add_file(digest, str(path.relative_to(folder)), path)
    return digest.hexdigest()[:DIGITS]


def _files(folder: Path) -> Iterator[Path]:
    for place in places_of(folder):
        for pattern in ("*.json", "*.txt", "*.model", "*.safetensors"):
            yield from place.glob(pattern)


def _load(folder: Path, threads: int | None) -> Any:
    try:
        allow_torchvision()
        with quiet():
            from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise _missing(str(folder), f"cannot be imported: {error}") from error
    if threads:
        import torch

        torch.set_num_threads(threads)
    try:
        with quiet():
            return SentenceTransformer(
                str(folder),
                backend="torch",
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
    except (OSError, ValueError, TypeError, RuntimeError, KeyError, AttributeError, ImportError) as error:
        reason = str(error).strip().splitlines()
        raise EncoderUnavailable(
            f"cannot load the encoder {str(folder)!r}: {reason[0] if reason else type(error).__name__}"
        ) from error
