"""A cross-encoder as a reranker: a local folder with ONNX, or what sentence-transformers reads from a folder or the
local cache of the model hub.

Its files are looked at as those of an encoder are: numbers in safetensors or ONNX, and settings, or nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.encoders import checkpoints, usable_cores
from research.encoders.checkpoints import check_files
from research.encoders.libraries import allow_torchvision, quiet
from research.encoders.minilm import load_session, without_surrogates
from research.encoders.sentence_transformers import check_package
from research.errors import EncoderUnavailable

_BATCH = 32
_TOKENIZER = "tokenizer.json"
_TOKENS, _QUESTION = 512, 64  # tokens of both together, words of the question
_BARE = "cross-encoder/"  # where the library looks for a name without an owner


class OnnxReranker:
    """One question and text at a time: of int8 a neighbour in a batch would change the score."""

    def __init__(self, model: Path, name: str) -> None:
        from tokenizers import Tokenizer

        folder = next((each for each in (model.parent, model.parent.parent) if (each / _TOKENIZER).is_file()), None)
        if folder is None:
            raise EncoderUnavailable(f"cannot load the reranker {name!r}: there is no {_TOKENIZER} beside its model")
        check_files(folder)
        try:
            self._session = load_session(model, optimise=True)
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        except Exception as error:
            raise EncoderUnavailable(f"cannot load the reranker {name!r}: its files are damaged") from error
        self._tokenizer.enable_truncation(_TOKENS, strategy="only_second")
        self._tokenizer.no_padding()
        self._name = name
        self._inputs = [each.name for each in self._session.get_inputs()]

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The number before any last layer; its order is the same."""
        from concurrent.futures import ThreadPoolExecutor

        asked = " ".join(without_surrogates(question).split()[:_QUESTION])
        with ThreadPoolExecutor(usable_cores()) as pool:
            return list(pool.map(lambda text: self._score(asked, without_surrogates(text)), texts))

    def _score(self, question: str, text: str) -> float:
        import numpy as np

        encoded = self._tokenizer.encode(question, text)
        told = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
        found = self._session.run(None, {name: np.array([told[name]], np.int64) for name in self._inputs})[0]
        if found.size != 1:
            raise _no_reranker(self._name, found.shape[-1])
        return float(found.flat[0])


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
            raise _no_reranker(self._name, found.shape[-1])
        return [float(score) for score in found]


def _no_reranker(name: str, scores: int) -> EncoderUnavailable:
    return EncoderUnavailable(
        f"{name} gives {scores} scores a text, and a reranker gives one",
        hint="name a cross-encoder that was trained for ranking",
    )


def find_onnx(name: str) -> Path | None:
    """The ONNX file of a folder, named as `find` takes one, that has no safetensors."""
    path = Path(name).expanduser()
    if not (path.is_absolute() or name.startswith(".")) or (path / checkpoints.WEIGHTS).is_file():
        return None
    return next((file for file in (path / "model.onnx", path / "onnx" / "model.onnx") if file.is_file()), None)


def find(name: str) -> Path:
    """The folder of a cross-encoder whose files are safe to load. Only what is plainly a path is one: a folder that was
    planted where the user stands is not the hub's model of that name."""
    path = Path(name).expanduser()
    if path.is_absolute() or name.startswith("."):
        folder = checkpoints.as_folder(str(path.resolve()))
        if folder is None:
            raise EncoderUnavailable(f"no such model folder: {name}", hint="name a folder with config.json and weights")
    else:
        folder = checkpoints.locate(name if "/" in name else f"{_BARE}{name}", download=False)
    base = checkpoints.locate_base(folder, download=False)
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
