"""A cross-encoder of sentence-transformers as a reranker, from a local folder or the local cache of the model hub.

Its files are looked at as those of an encoder are: numbers in safetensors and settings, or nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.encoders import hub
from research.encoders.inspection import check_files
from research.encoders.quiet import quiet
from research.encoders.sentence_transformers import check_package
from research.encoders.torchvision_shim import allow_torchvision
from research.errors import EncoderUnavailable

_BATCH = 32
_BARE = "cross-encoder/"  # where the library looks for a name without an owner


class CrossEncoderReranker:
    """Loads at once, from this machine's files only."""

    def __init__(self, name: str) -> None:
        check_package(name)
        folder = find(name)
        self._name = name
        self._model = _load(folder, name)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """By its own last layer, which for most models is a number from 0 to 1."""
        with quiet():
            found = self._model.predict(
                [(question, text) for text in texts], batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True
            )
        if found.ndim != 1:
            raise EncoderUnavailable(
                f"{self._name} gives {found.shape[-1]} scores a text, and a reranker gives one",
                hint="name a cross-encoder that was trained for ranking",
            )
        return [float(score) for score in found]


def find(name: str) -> Path:
    """The folder of a cross-encoder whose files are safe to load. Only what is plainly a path is one: a folder that was
    planted where the user stands is not the hub's model of that name."""
    path = Path(name).expanduser()
    if path.is_absolute() or name.startswith("."):
        folder = hub.as_folder(str(path.resolve()))
        if folder is None:
            raise EncoderUnavailable(f"no such model folder: {name}", hint="name a folder with config.json and weights")
    else:
        folder = hub.locate(name if "/" in name else f"{_BARE}{name}", download=False)
    base = hub.locate_base(folder, download=False)
    for place in (folder, *([base] if base else [])):
        check_files(place)
    return folder


def _load(folder: Path, name: str) -> Any:
    try:
        allow_torchvision()
        with quiet():
            from sentence_transformers import CrossEncoder

            return CrossEncoder(
                str(folder),
                backend="torch",
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
    except (OSError, ValueError, TypeError, RuntimeError, KeyError, AttributeError, ImportError) as error:
        reason = str(error).strip().splitlines()
        raise EncoderUnavailable(
            f"cannot load the reranker {name!r}: {reason[0] if reason else type(error).__name__}"
        ) from error
