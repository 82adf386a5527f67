"""BERT as an ONNX graph for one text at a time: no padding and no mask, so a vector depends on its text alone.

Operators were chosen by measurement on an AVX2 CPU: plain LayerNormalization is seven times quicker there than the
fused SkipLayerNormalization; MultiHeadAttention and MatMulIntegerToFloat beat their parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from research.encoders.minilm.quantize import quantize_columns, quantize_rows

LAYERS = 6
HEADS = 12
DIM = 384
WINDOW = 256  # sentence-transformers' published max_seq_length; positions above it are not shipped
EPSILON = 1e-12
CONTRIB = "com.microsoft"

Weights = Mapping[str, NDArray[np.float32]]


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
