"""What the cases of cliff_cases.py are made of: a case, and the models that they measure.

A case is a model that is made here, the sizes that it runs at where it leaves some open, and how
Relay's time should compare: with the best peer's (`aim`) and with its own at another case of the
group (`twin`, `twin_aim`). Weights are those of models.py: the same name gives the same bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import models
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, HALF, BFLOAT, DOUBLE = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.DOUBLE,
)
INT32, INT64, INT8, UINT8 = (
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.INT8,
    TensorProto.UINT8,
)
Build = Callable[[], onnx.ModelProto]


@dataclass(frozen=True)
class Case:
    """One model at one size; cases with an equal `model` share what is compiled of it."""

    name: str
    build: Build
    aim: float = 0.9
    sizes: Mapping[str, int] = field(default_factory=dict)
    model: str = ""
    twin: str = ""
    twin_aim: float = 1.05
    # A result farther from the reference's, against its scale, is named wrong: 8-bit results may
    # be one step of 255 apart, and float16 ones some of 2048.
    tolerance: float = 2e-2


@dataclass(frozen=True)
class CompileCase:
    """A model of which the time to compile counts: without and with kernels of the time before."""

    name: str
    build: Build
    cold_aim_s: float
    warm_aim_s: float


@dataclass(frozen=True)
class In:
    """An input of a model; a size that is a name is open."""

    shape: tuple[int | str, ...]
    dtype: int = FLOAT
    low: float = -1.0
    high: float = 1.0
    kind: str = "numbers"  # as make_inputs knows it


@dataclass(frozen=True)
class Weights:
    """A constant that is made with the model."""

    shape: tuple[int, ...]
    dtype: int = FLOAT
    low: float = -1.0
    high: float = 1.0

    def into(self, g: models.Graph, name: str) -> str:
        if self.dtype == FLOAT:
            return g.uniform(name, self.shape, self.low, self.high)
        values = models.uniform(f"{g.name}/{name}", self.shape, self.low, self.high)
        return g.constant(name, values.astype(helper.tensor_dtype_to_np_dtype(self.dtype)))


Operand = In | Weights | np.ndarray | None


def feed(g: models.Graph, operands: tuple[Operand, ...]) -> list[str]:
    names = []
    for i, x in enumerate(operands):
        if isinstance(x, In):
            names.append(g.input(f"x{i}", x.shape, x.dtype, low=x.low, high=x.high, kind=x.kind))
        elif isinstance(x, Weights):
            names.append(x.into(g, f"w{i}"))
        else:
            names.append("" if x is None else g.constant(f"c{i}", x))
    return names


def one(
    op: str,
    *operands: Operand,
    results: tuple[int, ...] = (FLOAT,),
    opset: int = models.OPSET,
    **attrs,
) -> Build:
    """A model of one node."""

    def build() -> onnx.ModelProto:
        g = models.Graph(op, opset)
        out = g.op(op, *feed(g, operands), outputs=len(results), **attrs)
        for i, dtype in enumerate(results):
            g.output(out if len(results) == 1 else out[i], f"y{i}", None, dtype)
        return g.model()

    return build


def traced(
    name: str,
    body: Callable[..., str],
    *operands: Operand,
    result: int = FLOAT,
    opset: int = models.OPSET,
) -> Build:
    """A model of what `body(graph, *names)` adds."""

    def build() -> onnx.ModelProto:
        g = models.Graph(name, opset)
        g.output(body(g, *feed(g, operands)), "y", None, result)
        return g.model()

    return build


def image(*shape: int | str, **more) -> In:
    return In(shape, **more)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def as_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every float32 as float16."""
    for info in [*model.graph.input, *model.graph.output]:
        if info.type.tensor_type.elem_type == FLOAT:
            info.type.tensor_type.elem_type = HALF
    for tensor in model.graph.initializer:
        if tensor.data_type == FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == FLOAT:
                attribute.i = HALF
    return model


# Models.


def mlp(g: models.Graph, x: str) -> str:
    for n, m in ((256, 512), (512, 512), (512, 10)):
        x = g.op("Relu", g.linear(x, n, m))
    return x


def attention(g: models.Graph, q: str, k: str, v: str) -> str:
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    weights = g.op("Softmax", g.op("Mul", scores, g.scalar(0.125)), axis=-1)
    return g.op("MatMul", weights, v)


def decoder(name: str, layers: int, hidden: int, heads: int, vocab: int, past: int | str) -> Build:
    """A step of GPT-2 (Radford et al., 2019): one token, with keys and values of `past` others."""

    def build() -> onnx.ModelProto:
        g = models.Graph(name)
        head = hidden // heads
        token = g.input("token", (1, 1), INT64, low=0, high=vocab)
        place = g.input("place", (1, 1), INT64, low=0, high=1024)
        words = g.uniform("words", (vocab, hidden), -1.0, 1.0)
        places = g.uniform("places", (1024, hidden), -0.3, 0.3)
        x = g.op("Add", g.op("Gather", words, token), g.op("Gather", places, place))

        def split(y: str) -> str:
            y = g.op("Reshape", y, g.ints(0, 0, heads, head))
            return g.op("Transpose", y, perm=[0, 2, 1, 3])

        kept = []
        for layer in range(layers):
            with g.scope(f"layer{layer}"):
                y = g.linear(g.layer_norm(x, hidden, 1e-5), hidden, 3 * hidden)
                parts = g.op("Split", y, g.ints(*[hidden] * 3), axis=2, outputs=3)
                q, k, v = map(split, parts)
                shape = (1, heads, past, head)
                k = g.op("Concat", g.input(f"key{layer}", shape), k, axis=2)
                v = g.op("Concat", g.input(f"value{layer}", shape), v, axis=2)
                kept += [(f"new_key{layer}", k), (f"new_value{layer}", v)]
                y = g.op("Transpose", attention(g, q, k, v), perm=[0, 2, 1, 3])
                y = g.op("Reshape", y, g.ints(0, 0, hidden))
                x = g.op("Add", x, g.linear(y, hidden, hidden, 0.5))
                y = g.linear(g.layer_norm(x, hidden, 1e-5), hidden, 4 * hidden)
                x = g.op("Add", x, g.linear(g.gelu(y), 4 * hidden, hidden, 0.5))
        # The head is the embedding, transposed: its weights are tied to it.
        x = g.layer_norm(x, hidden, 1e-5)
        logits = g.op("MatMul", x, g.op("Transpose", words, perm=[1, 0]))
        g.output(logits, "logits", None)
        for out, value in kept:
            g.output(value, out, None)
        return g.model()

    return build


def small_decoder(past: int | str) -> Build:
    return decoder("decoder", 4, 768, 12, 8000, past)


def recurrent(op: str, gates: int, steps: int | str) -> Build:
    hidden, size = 256, 128

    def build() -> onnx.ModelProto:
        g = models.Graph(op)
        x = g.input("x", (steps, 1, size))
        w = g.weight((1, gates * hidden, size), size, 1.0, "w")
        r = g.weight((1, gates * hidden, hidden), hidden, 1.0, "r")
        b = g.uniform("b", (1, 2 * gates * hidden), -0.1, 0.1)
        outputs = 3 if op == "LSTM" else 2
        y = g.op(op, x, w, r, b, outputs=outputs, hidden_size=hidden)[0]
        g.output(y, "y", None)
        return g.model()

    return build


def segmentation(g: models.Graph, x: str) -> str:
    """A head that joins three resolutions, as in U-Nets of transformers: channels come last."""
    parts = []
    for width, stride in ((64, 1), (128, 2), (256, 4)):
        with g.scope(f"level{stride}"):
            y = x if stride == 1 else g.op("AveragePool", x, kernel_shape=[stride] * 2,
                                           strides=[stride] * 2)  # fmt: skip
            y = g.op("Transpose", g.conv(y, 32, width, 1, bias=True), perm=[0, 2, 3, 1])
            y = g.linear(y, width, 128)
            y = g.op("Transpose", y, perm=[0, 3, 1, 2])
            sizes = g.ints(1, 128, 64, 64)
            parts.append(g.op("Resize", y, "", "", sizes, mode="linear") if stride > 1 else y)
    x = g.conv_bn(g.op("Concat", *parts, axis=1), 384, 128, 1)
    return g.conv(x, 128, 21, 1, bias=True)


def tied_head(g: models.Graph, x: str) -> str:
    words = g.uniform("words", (30000, 384), -1.0, 1.0)
    return g.op("MatMul", x, g.op("Transpose", words, perm=[1, 0]))


def scan(steps: int) -> Build:
    """A recurrence as the operator Scan writes it."""
    hidden = 64

    def build() -> onnx.ModelProto:
        g = models.Graph("scan")
        body = models.Graph("body")
        w = body.weight((hidden, hidden), hidden, 1.0)
        body.input("state", (1, hidden))
        body.input("x", (1, hidden))
        state = body.op("Tanh", body.op("Add", body.op("MatMul", "state", w), "x"))
        body.output(state, "next", (1, hidden))
        body.output(body.op("Mul", "next", body.scalar(0.5)), "y", (1, hidden))
        first, xs = g.input("first", (1, hidden)), g.input("xs", (steps, 1, hidden))
        last, ys = g.op("Scan", first, xs, outputs=2, body=body.graph(), num_scan_inputs=1)
        g.output(last, "last", (1, hidden))
        g.output(ys, "ys", (steps, 1, hidden))
        return g.model()

    return build


def loop(steps: int) -> Build:
    """A state that is replaced so often, as the operator Loop writes it."""
    hidden = 64

    def build() -> onnx.ModelProto:
        g = models.Graph("loop")
        body = models.Graph("body")
        w = body.weight((hidden, hidden), hidden, 1.0)
        body.input("i", (), INT64)
        body.input("go", (), TensorProto.BOOL)
        body.input("state", (1, hidden))
        state = body.op("Tanh", body.op("MatMul", "state", w))
        body.output(body.op("Identity", "go"), "on", (), TensorProto.BOOL)
        body.output(state, "next", (1, hidden))
        count = g.constant("count", np.array(steps, np.int64))
        first = g.input("first", (1, hidden))
        g.output(g.op("Loop", count, "", first, body=body.graph()), "last", (1, hidden))
        return g.model()

    return build


class Calibration:
    """What onnxruntime's quantiser reads: a few invented inputs of a model."""

    def __init__(self, model: onnx.ModelProto, count: int = 2) -> None:
        self.rest = [models.make_inputs(model, seed) for seed in range(1, count + 1)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.rest.pop() if self.rest else None


def quantised(build: Build, layout: str) -> Build:
    """The model as onnxruntime's quantiser writes it: QDQ, QOperator, dynamic or 4-bit."""

    def made() -> onnx.ModelProto:
        from onnxruntime import quantization as q

        model = build()
        # The metadata says how inputs are invented, and the quantiser drops it.
        kept = list(model.metadata_props)
        if layout == "4 bits":
            from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

            quantiser = MatMulNBitsQuantizer(model, block_size=32, is_symmetric=True,
                                             accuracy_level=0)  # fmt: skip
            quantiser.process()
            out = quantiser.model.model
        else:
            with tempfile.TemporaryDirectory() as folder:
                source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
                onnx.save(model, source)
                if layout == "dynamic":
                    q.quantize_dynamic(source, target, op_types_to_quantize=["MatMul", "Gemm"])
                else:
                    q.quantize_static(
                        source,
                        target,
                        Calibration(model),
                        quant_format=q.QuantFormat[layout],
                        per_channel=True,
                        reduce_range=False,
                        activation_type=q.QuantType.QUInt8,
                        weight_type=q.QuantType.QInt8,
                    )
                out = onnx.load(target)
        del out.metadata_props[:]
        out.metadata_props.extend(kept)
        return out

    return made
