"""The benchmark models, written as ONNX with fixed seeds.

Each model is the published architecture with invented weights: He-scaled, so that activations stay
of order one from the first layer to the last, with batch-norm statistics that are not trivial. The
same name gives the same bytes on every machine: weights come from the raw bits of PCG64, keyed by
the model's and the tensor's name, through exact arithmetic.

    python benchmarks/models.py --out DIR [names]      # writes DIR/<name>.onnx
    build("resnet50")                                  # onnx.ModelProto
    build("resnet50", small=True)                      # same architecture, tiny: for the evaluator
    make_inputs(model, seed=0)                         # {input name: numpy array}

A model's metadata says how to invent its inputs (`input.<name>`, JSON) and how many floating-point
operations one run takes (`flops`).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
_CHUNK = 1 << 22


def uniform(key: str, shape: Sequence[int], low: float, high: float) -> np.ndarray:
    """Returns float32 values in [low, high) that depend on `key` and `shape` only.

    Only the bit generator is used: NumPy promises its stream for ever, and not that of the
    distributions above it.
    """
    bits = np.random.PCG64(np.random.SeedSequence(zlib.crc32(key.encode())))
    size = math.prod(shape)
    out = np.empty(size, np.float32)
    for start in range(0, size, _CHUNK):
        count = min(_CHUNK, size - start)
        words = bits.random_raw((count + 1) // 2).astype("<u8", copy=False).view("<u4")[:count]
        unit = (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
        out[start : start + count] = unit * np.float32(high - low) + np.float32(low)
    return out.reshape(shape)


class Graph:
    """An ONNX graph under construction: tensors named by scope, weights invented by name."""

    def __init__(self, name: str, opset: int = OPSET) -> None:
        self.name = name
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.input_specs: dict[str, dict[str, object]] = {}
        self._scopes: list[str] = []
        self._used: dict[str, int] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def path(self, name: str) -> str:
        """Returns `name` within the current scope, numbered when it is taken already."""
        full = "/".join([*self._scopes, name])
        count = self._used.get(full, 0)
        self._used[full] = count + 1
        return full if count == 0 else f"{full}_{count}"

    def input(
        self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT, **spec
    ) -> str:
        """Declares an input, with a name for each symbolic size; `spec` is for make_inputs."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        self.input_specs[name] = spec
        return name

    def output(
        self,
        value: str,
        name: str,
        shape: Sequence[int | str] | None,
        dtype: int = TensorProto.FLOAT,
    ) -> None:
        """Declares `value` as the output `name`, by renaming the value itself.

        Without a shape it is the one that ONNX infers.
        """
        for node in self.nodes:
            node.input[:] = [name if v == value else v for v in node.input]
            node.output[:] = [name if v == value else v for v in node.output]
        known = None if shape is None else list(shape)
        self.outputs.append(helper.make_tensor_value_info(name, dtype, known))

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attrs) -> str | tuple[str, ...]:
        """Appends a node; returns its output's name, or the names when it has several."""
        name = self.path(op_type)
        results = [name + "_out" + (str(i) if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), results, name, **attrs))
        return results[0] if outputs == 1 else tuple(results)

    def constant(self, name: str, value: np.ndarray) -> str:
        full = self.path(name)
        self.initializers[full] = numpy_helper.from_array(np.asarray(value), full)
        return full

    def ints(self, *values: int) -> str:
        """Returns a shared int64 initialiser (shapes, axes, split sizes)."""
        name = "ints_" + "_".join(str(v).replace("-", "m") for v in values)
        if name not in self.initializers:
            array = np.array(values, np.int64)
            self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def scalar(self, value: float) -> str:
        name = f"scalar_{value:.9g}"
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.array(value, np.float32), name)
        return name

    def uniform(self, name: str, shape: Sequence[int], low: float, high: float) -> str:
        full = self.path(name)
        values = uniform(f"{self.name}/{full}", shape, low, high)
        self.initializers[full] = numpy_helper.from_array(values, full)
        return full

    def weight(self, shape: Sequence[int], fan_in: int, gain: float, name: str = "weight") -> str:
        """Returns a weight of variance gain/fan_in: gain 2 after a ReLU, 1 after a norm."""
        bound = math.sqrt(3.0 * gain / fan_in)
        return self.uniform(name, shape, -bound, bound)

    def bias(self, size: int) -> str:
        return self.uniform("bias", (size,), -0.1, 0.1)

    # Layers.

    def conv(
        self,
        x: str,
        cin: int,
        cout: int,
        kernel: int,
        *,
        stride: int = 1,
        pad: int = 0,
        group: int = 1,
        gain: float = 2.0,
        bias: bool = False,
    ) -> str:
        weight = self.weight(
            (cout, cin // group, kernel, kernel), cin // group * kernel * kernel, gain
        )
        inputs = [x, weight] + ([self.bias(cout)] if bias else [])
        return self.op(
            "Conv",
            *inputs,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=group,
            dilations=[1, 1],
        )

    def conv_transpose(
        self,
        x: str,
        cin: int,
        cout: int,
        kernel: int,
        *,
        stride: int = 1,
        pad: int = 0,
        gain: float = 2.0,
        bias: bool = False,
    ) -> str:
        # An output point meets kernel/stride taps in each direction.
        taps = max(1, kernel // stride) ** 2
        weight = self.weight((cin, cout, kernel, kernel), cin * taps, gain)
        inputs = [x, weight] + ([self.bias(cout)] if bias else [])
        return self.op(
            "ConvTranspose",
            *inputs,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=1,
            dilations=[1, 1],
        )

    def batch_norm(self, x: str, channels: int, gamma: float = 1.0) -> str:
        """Batch norm with invented statistics; `gamma` is the centre of its scale."""
        with self.scope("bn"):
            scale = self.uniform("gamma", (channels,), 0.9 * gamma, 1.1 * gamma)
            shift = self.uniform("beta", (channels,), -0.1, 0.1)
            mean = self.uniform("mean", (channels,), -0.1, 0.1)
            var = self.uniform("var", (channels,), 0.8, 1.25)
            return self.op("BatchNormalization", x, scale, shift, mean, var, epsilon=1e-5)

    def conv_bn(
        self,
        x: str,
        cin: int,
        cout: int,
        kernel: int,
        *,
        relu: bool = True,
        bn_gamma: float = 1.0,
        **conv,
    ) -> str:
        y = self.batch_norm(self.conv(x, cin, cout, kernel, **conv), cout, bn_gamma)
        return self.op("Relu", y) if relu else y

    def dense(self, x: str, n_in: int, n_out: int, gain: float = 1.0) -> str:
        """A fully connected layer as Gemm with a transposed weight, on rank 2."""
        weight = self.weight((n_out, n_in), n_in, gain)
        return self.op("Gemm", x, weight, self.bias(n_out), transB=1)

    def linear(self, x: str, n_in: int, n_out: int, gain: float = 1.0) -> str:
        """A fully connected layer as MatMul and Add, on any rank: how transformers are exported."""
        product = self.op("MatMul", x, self.weight((n_in, n_out), n_in, gain))
        return self.op("Add", product, self.bias(n_out))

    def layer_norm(self, x: str, size: int, epsilon: float) -> str:
        with self.scope("ln"):
            gamma = self.uniform("gamma", (size,), 0.9, 1.1)
            beta = self.uniform("beta", (size,), -0.1, 0.1)
            return self.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=epsilon)

    def gelu(self, x: str) -> str:
        """The exact GELU, spelled out as exporters do: x * (1 + erf(x / sqrt 2)) * 0.5."""
        with self.scope("gelu"):
            erf = self.op("Erf", self.op("Div", x, self.scalar(math.sqrt(2.0))))
            return self.op(
                "Mul", self.op("Mul", x, self.op("Add", erf, self.scalar(1.0))), self.scalar(0.5)
            )

    def global_pool_flat(self, x: str) -> str:
        return self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)

    def graph(self) -> onnx.GraphProto:
        """Returns the graph alone: the body of an operator that has one."""
        return helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, list(self.initializers.values())
        )

    def model(self) -> onnx.ModelProto:
        others = sorted({node.domain for node in self.nodes if node.domain})
        model = helper.make_model(
            self.graph(),
            opset_imports=[
                helper.make_opsetid("", self.opset),
                # Labels of words are in version 2 and later of ONNX's machine-learning operators.
                *(helper.make_opsetid(d, 3 if d == "ai.onnx.ml" else 1) for d in others),
            ],
            producer_name="relay-benchmarks",
            ir_version=IR_VERSION,
        )
        metadata = {
            f"input.{k}": json.dumps(v, sort_keys=True) for k, v in self.input_specs.items()
        }
        metadata["flops"] = str(count_flops(model))
        helper.set_model_props(model, metadata)
        if any(not o.type.tensor_type.HasField("shape") for o in self.outputs):
            outputs = inferred_graph(model).output
            del model.graph.output[:]
            model.graph.output.extend(outputs)
        return model


# The architectures. `small` keeps every operator and its attributes, and shrinks sizes.


def resnet(name: str, blocks: Sequence[int], bottleneck: bool, small: bool) -> onnx.ModelProto:
    """ResNet v1.5 (He et al., 2016; stride on the 3x3 convolution), with 1000 classes."""
    div = 8 if small else 1
    image, classes = (32, 16) if small else (224, 1000)
    expansion = 4 if bottleneck else 1
    g = Graph(name)
    x = g.input("data", (1, 3, image, image), low=-2.0, high=2.0)
    channels = 64 // div
    with g.scope("stem"):
        x = g.conv_bn(x, 3, channels, 7, stride=2, pad=3, gain=1.0)
        x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, count in enumerate(blocks):
        width = 64 // div << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            cout = width * expansion
            with g.scope(f"stage{stage + 1}/block{block}"):
                shortcut = x
                if stride != 1 or channels != cout:
                    with g.scope("down"):
                        shortcut = g.conv_bn(x, channels, cout, 1, stride=stride, relu=False)
                # The branch enters with a small scale, so that sums do not grow with the depth.
                if bottleneck:
                    y = g.conv_bn(x, channels, width, 1)
                    y = g.conv_bn(y, width, width, 3, stride=stride, pad=1)
                    y = g.conv_bn(y, width, cout, 1, relu=False, bn_gamma=0.3)
                else:
                    y = g.conv_bn(x, channels, width, 3, stride=stride, pad=1)
                    y = g.conv_bn(y, width, cout, 3, pad=1, relu=False, bn_gamma=0.3)
                x = g.op("Relu", g.op("Add", y, shortcut))
                channels = cout
    with g.scope("head"):
        logits = g.dense(g.global_pool_flat(x), channels, classes, gain=2.0)
    g.output(logits, "logits", (1, classes))
    return g.model()


def mobilenet_v2(small: bool) -> onnx.ModelProto:
    """MobileNet-v2, width 1.0 (Sandler et al., 2018), with 1000 classes."""
    div = 8 if small else 1
    image, classes = (32, 16) if small else (224, 1000)
    g = Graph("mobilenet_v2")
    zero, six = g.scalar(0.0), g.scalar(6.0)

    def conv_relu6(x: str, cin: int, cout: int, kernel: int, **conv) -> str:
        return g.op("Clip", g.conv_bn(x, cin, cout, kernel, relu=False, **conv), zero, six)

    x = g.input("data", (1, 3, image, image), low=-2.0, high=2.0)
    channels = 32 // div
    with g.scope("stem"):
        x = conv_relu6(x, 3, channels, 3, stride=2, pad=1, gain=1.0)
    rows = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]
    for stage, (expand, width, count, first_stride) in enumerate(rows):
        cout = width // div
        for block in range(count):
            stride = first_stride if block == 0 else 1
            with g.scope(f"stage{stage + 1}/block{block}"):
                y, hidden = x, channels * expand
                if expand != 1:
                    y = conv_relu6(y, channels, hidden, 1, gain=1.0)
                y = conv_relu6(y, hidden, hidden, 3, stride=stride, pad=1, group=hidden)
                residual = stride == 1 and channels == cout
                y = g.conv_bn(y, hidden, cout, 1, relu=False, bn_gamma=0.4 if residual else 1.0)
                x = g.op("Add", x, y) if residual else y
                channels = cout
    with g.scope("head"):
        last = 1280 // div
        x = conv_relu6(x, channels, last, 1, gain=1.0)
        logits = g.dense(g.global_pool_flat(x), last, classes, gain=2.0)
    g.output(logits, "logits", (1, classes))
    return g.model()


def vgg16(small: bool) -> onnx.ModelProto:
    """VGG-16, configuration D (Simonyan and Zisserman, 2015), with 1000 classes."""
    div = 8 if small else 1
    image, classes = (32, 16) if small else (224, 1000)
    g = Graph("vgg16")
    x = g.input("data", (1, 3, image, image), low=-2.0, high=2.0)
    channels = 3
    for stage, (width, count) in enumerate([(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]):
        with g.scope(f"stage{stage + 1}"):
            for _ in range(count):
                gain = 1.0 if channels == 3 else 2.0
                x = g.conv(x, channels, width // div, 3, pad=1, gain=gain, bias=True)
                x = g.op("Relu", x)
                channels = width // div
            x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    features, hidden = channels * (image // 32) ** 2, 4096 // div
    with g.scope("head"):
        x = g.op("Flatten", x, axis=1)
        # Pooled maxima are larger than what He's rule assumes; gain 0.5 brings them back.
        x = g.op("Relu", g.dense(x, features, hidden, gain=0.5))
        x = g.op("Relu", g.dense(x, hidden, hidden, gain=2.0))
        logits = g.dense(x, hidden, classes, gain=2.0)
    g.output(logits, "logits", (1, classes))
    return g.model()


def bert_base(small: bool, batch: int = 1) -> onnx.ModelProto:
    """BERT-base (Devlin et al., 2019): 12 layers, 768 wide, 12 heads, sequence 128."""
    layers, seq, hidden, heads, vocab = (2, 16, 96, 12, 128) if small else (12, 128, 768, 12, 30522)
    return bert("bert_base", layers, batch, seq, hidden, heads, vocab)


def bert(
    name: str,
    layers: int,
    batch: int | str,
    seq: int | str,
    hidden: int,
    heads: int,
    vocab: int,
    positions: int = 512,
) -> onnx.ModelProto:
    """BERT of that many layers; a batch or sequence that is a name is a symbolic size."""
    head = hidden // heads
    is_open = isinstance(batch, str) or isinstance(seq, str)
    # In a Reshape, 0 is the size that is there already.
    rows = (0, 0) if is_open else (batch, seq)
    g = Graph(name)
    ids = g.input("input_ids", (batch, seq), TensorProto.INT64, low=0, high=vocab)
    mask = g.input("attention_mask", (batch, seq), TensorProto.INT64, kind="prefix")
    segments = g.input("token_type_ids", (batch, seq), TensorProto.INT64, low=0, high=2)

    with g.scope("embeddings"):
        words = g.op("Gather", g.uniform("word", (vocab, hidden), -1.0, 1.0), ids, axis=0)
        kinds = g.op("Gather", g.uniform("segment", (2, hidden), -0.3, 0.3), segments, axis=0)
        if is_open:
            table = g.uniform("position", (1, positions, hidden), -0.3, 0.3)
            length = g.op("Slice", g.op("Shape", ids), g.ints(1), g.ints(2), g.ints(0))
            places = g.op("Slice", table, g.ints(0), length, g.ints(1))
        else:
            places = g.uniform("position", (1, seq, hidden), -0.3, 0.3)
        x = g.layer_norm(g.op("Add", g.op("Add", words, kinds), places), hidden, 1e-12)
    with g.scope("mask"):
        wide = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=TensorProto.FLOAT)
        penalty = g.op("Mul", g.op("Sub", g.scalar(1.0), wide), g.scalar(-10000.0))

    def split_heads(y: str, perm: list[int]) -> str:
        return g.op("Transpose", g.op("Reshape", y, g.ints(*rows, heads, head)), perm=perm)

    for layer in range(layers):
        with g.scope(f"layer{layer}"):
            with g.scope("attention"):
                query = split_heads(g.linear(x, hidden, hidden), [0, 2, 1, 3])
                key = split_heads(g.linear(x, hidden, hidden), [0, 2, 3, 1])
                value = split_heads(g.linear(x, hidden, hidden), [0, 2, 1, 3])
                scores = g.op("Div", g.op("MatMul", query, key), g.scalar(math.sqrt(head)))
                weights = g.op("Softmax", g.op("Add", scores, penalty), axis=-1)
                y = g.op("Transpose", g.op("MatMul", weights, value), perm=[0, 2, 1, 3])
                y = g.linear(g.op("Reshape", y, g.ints(*rows, hidden)), hidden, hidden)
                x = g.layer_norm(g.op("Add", y, x), hidden, 1e-12)
            with g.scope("ffn"):
                y = g.gelu(g.linear(x, hidden, 4 * hidden))
                x = g.layer_norm(
                    g.op("Add", g.linear(y, 4 * hidden, hidden, 2.0), x), hidden, 1e-12
                )
    with g.scope("pooler"):
        first = g.op("Gather", x, g.constant("first", np.array(0, np.int64)), axis=1)
        pooled = g.op("Tanh", g.dense(first, hidden, hidden, gain=0.5))
    g.output(x, "last_hidden_state", (batch, seq, hidden))
    g.output(pooled, "pooler_output", (batch, hidden))
    return g.model()


def vit_b16(small: bool, batch: int = 1) -> onnx.ModelProto:
    """ViT-B/16 (Dosovitskiy et al., 2021): 12 layers, 768 wide, 16x16 patches, pre-norm."""
    image, hidden, layers, classes = (32, 96, 2, 16) if small else (224, 768, 12, 1000)
    heads, patch = 12, 16
    head, patches = hidden // heads, (image // patch) ** 2
    seq = patches + 1
    g = Graph("vit_b16")
    x = g.input("data", (batch, 3, image, image), low=-2.0, high=2.0)
    with g.scope("embed"):
        x = g.conv(x, 3, hidden, patch, stride=patch, gain=1.0, bias=True)
        x = g.op("Transpose", g.op("Reshape", x, g.ints(batch, hidden, patches)), perm=[0, 2, 1])
        token = g.uniform("class", (1, 1, hidden), -1.0, 1.0)
        if batch > 1:
            token = g.op("Expand", token, g.ints(batch, 1, hidden))
        x = g.op("Concat", token, x, axis=1)
        x = g.op("Add", x, g.uniform("position", (1, seq, hidden), -0.3, 0.3))
    for layer in range(layers):
        with g.scope(f"layer{layer}"):
            with g.scope("attention"):
                y = g.linear(g.layer_norm(x, hidden, 1e-6), hidden, 3 * hidden)
                y = g.op("Reshape", y, g.ints(batch, seq, 3, heads, head))
                y = g.op("Transpose", y, perm=[2, 0, 3, 1, 4])
                parts = g.op("Split", y, g.ints(1, 1, 1), axis=0, outputs=3)
                query, key, value = (g.op("Squeeze", p, g.ints(0)) for p in parts)
                query = g.op("Mul", query, g.scalar(1.0 / math.sqrt(head)))
                scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
                y = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
                y = g.op("Transpose", y, perm=[0, 2, 1, 3])
                y = g.op("Reshape", y, g.ints(batch, seq, hidden))
                x = g.op("Add", x, g.linear(y, hidden, hidden, 0.5))
            with g.scope("mlp"):
                y = g.gelu(g.linear(g.layer_norm(x, hidden, 1e-6), hidden, 4 * hidden))
                x = g.op("Add", x, g.linear(y, 4 * hidden, hidden, 0.5))
    with g.scope("head"):
        x = g.layer_norm(x, hidden, 1e-6)
        first = g.op("Gather", x, g.constant("first", np.array(0, np.int64)), axis=1)
        logits = g.dense(first, hidden, classes)
    g.output(logits, "logits", (batch, classes))
    return g.model()


def lstm(small: bool, batch: int = 1) -> onnx.ModelProto:
    """One LSTM layer (ONNX's operator): 50 steps, input 300, hidden 512."""
    steps, n_in, hidden = (5, 37, 64) if small else (50, 300, 512)
    g = Graph("lstm")
    x = g.input("sequence", (steps, batch, n_in), low=-1.7, high=1.7)
    with g.scope("lstm"):
        w = g.weight((1, 4 * hidden, n_in), n_in, 1.0, "w")
        r = g.weight((1, 4 * hidden, hidden), hidden, 1.0, "r")
        b = g.uniform("b", (1, 8 * hidden), -0.1, 0.1)
        y, last, cell = g.op("LSTM", x, w, r, b, outputs=3, hidden_size=hidden)
        states = g.op("Squeeze", y, g.ints(1))
    g.output(states, "states", (steps, batch, hidden))
    g.output(last, "last_hidden", (1, batch, hidden))
    g.output(cell, "last_cell", (1, batch, hidden))
    return g.model()


def dqn(small: bool) -> onnx.ModelProto:
    """The network of Mnih et al. (Nature, 2015): four frames of 84x84 to 18 action values."""
    image, div, actions = (36, 8, 6) if small else (84, 1, 18)
    g = Graph("dqn")
    x = g.input("frames", (1, 4, image, image), low=0.0, high=1.0)
    x = g.op("Relu", g.conv(x, 4, 32 // div, 8, stride=4, gain=3.0, bias=True))
    x = g.op("Relu", g.conv(x, 32 // div, 64 // div, 4, stride=2, bias=True))
    x = g.op("Relu", g.conv(x, 64 // div, 64 // div, 3, bias=True))
    side = ((image - 8) // 4 + 1 - 4) // 2 + 1 - 2
    features, hidden = 64 // div * side * side, 512 // div
    x = g.op("Relu", g.dense(g.op("Flatten", x, axis=1), features, hidden, gain=2.0))
    g.output(g.dense(x, hidden, actions, gain=2.0), "values", (1, actions))
    return g.model()


def dcgan(small: bool) -> onnx.ModelProto:
    """The DCGAN generator (Radford et al., 2016): 100 numbers to an image of 64x64."""
    div = 8 if small else 1
    g = Graph("dcgan")
    x = g.input("noise", (1, 100, 1, 1), low=-1.7, high=1.7)
    cin = 100
    for stage, width in enumerate([512, 256, 128, 64]):
        stride, pad = (1, 0) if stage == 0 else (2, 1)
        cout = width // div
        with g.scope(f"stage{stage + 1}"):
            # The first layer grows one point to 4x4: each output meets one tap of each channel.
            gain = 16.0 if stage == 0 else 2.0
            x = g.conv_transpose(x, cin, cout, 4, stride=stride, pad=pad, gain=gain)
            x = g.op("Relu", g.batch_norm(x, cout))
            cin = cout
    with g.scope("image"):
        x = g.op("Tanh", g.conv_transpose(x, cin, 3, 4, stride=2, pad=1, gain=0.8))
    g.output(x, "image", (1, 3, 64, 64))
    return g.model()


def unet(small: bool) -> onnx.ModelProto:
    """U-Net (Ronneberger et al., 2015), padded convolutions with batch norm, 32 to 256 channels."""
    image, div = (32, 8) if small else (256, 1)
    widths = [c // div for c in (32, 64, 128, 256)]
    g = Graph("unet")
    x = g.input("data", (1, 3, image, image), low=-1.7, high=1.7)
    skips: list[str] = []
    cin = 3
    for level, width in enumerate(widths):
        with g.scope(f"down{level}"):
            if level > 0:
                skips.append(x)
                x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
            # A pooled maximum has about twice the second moment that He's rule assumes.
            gain = 1.0 if level == 0 else 1.2
            x = g.conv_bn(x, cin, width, 3, pad=1, gain=gain)
            x = g.conv_bn(x, width, width, 3, pad=1)
            cin = width
    for level in reversed(range(len(widths) - 1)):
        width = widths[level]
        with g.scope(f"up{level}"):
            x = g.conv_transpose(x, cin, width, 2, stride=2, gain=1.0, bias=True)
            x = g.op("Concat", skips[level], x, axis=1)
            x = g.conv_bn(x, 2 * width, width, 3, pad=1)
            x = g.conv_bn(x, width, width, 3, pad=1)
            cin = width
    with g.scope("head"):
        x = g.op("Sigmoid", g.conv(x, cin, 1, 1, bias=True))
    g.output(x, "mask", (1, 1, image, image))
    return g.model()


MODELS: dict[str, Callable[..., onnx.ModelProto]] = {
    "resnet18": lambda small: resnet("resnet18", (2, 2, 2, 2), False, small),
    "resnet50": lambda small: resnet("resnet50", (3, 4, 6, 3), True, small),
    "mobilenet_v2": mobilenet_v2,
    "vgg16": vgg16,
    "bert_base": bert_base,
    "vit_b16": vit_b16,
    "lstm": lstm,
    "dqn": dqn,
    "dcgan": dcgan,
    "unet": unet,
}


# Their graphs name the batch; of the others the input alone does.
TAKE_BATCH = ("bert_base", "vit_b16", "lstm")


def build(name: str, small: bool = False, batch: int = 1) -> onnx.ModelProto:
    """Returns the model `name` (a key of MODELS); raises KeyError with the list of names."""
    if name not in MODELS:
        raise KeyError(f"no benchmark model {name!r}; there are: {', '.join(MODELS)}")
    if name in TAKE_BATCH:
        return MODELS[name](small, batch)
    model = MODELS[name](small)
    return model if batch == 1 else batched(model, batch)


def write(name: str, path: Path, small: bool = False) -> None:
    """Writes the model `name` to `path`, through a temporary file: never half a model."""
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(build(name, small).SerializeToString(deterministic=True))
    partial.replace(path)


def count_flops(model: onnx.ModelProto) -> int:
    """Returns the floating-point operations of one run, a multiply-add as two.

    Counts what dominates: convolutions, matrix products and recurrent cells, at static shapes; a
    node with a symbolic size counts as zero.
    """
    dims = {t.name: list(t.dims) for t in model.graph.initializer}
    inferred = inferred_graph(model)
    for info in [*inferred.value_info, *inferred.input, *inferred.output]:
        dims[info.name] = [d.dim_value for d in info.type.tensor_type.shape.dim]

    total = 0
    for node in model.graph.node:
        if node.op_type not in {"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM"}:
            continue
        if any(0 in dims.get(name, [0]) for name in (*node.input[:2], node.output[0])):
            continue
        lhs, rhs = dims[node.input[0]], dims[node.input[1]]
        if node.op_type == "Conv":
            total += 2 * math.prod(dims[node.output[0]]) * math.prod(rhs[1:])
        elif node.op_type == "ConvTranspose":
            total += 2 * math.prod(lhs) * math.prod(rhs[1:])
        elif node.op_type == "LSTM":
            recurrent = dims[node.input[2]]
            total += 2 * lhs[0] * lhs[1] * (math.prod(rhs) + math.prod(recurrent))
        else:
            total += 2 * math.prod(dims[node.output[0]]) * lhs[-1]
    return total


def inferred_graph(model: onnx.ModelProto) -> onnx.GraphProto:
    """Returns the graph with the shapes of all values that ONNX can infer, without weights."""
    # Weights become typed inputs without data, so that shape inference does not copy them.
    bare = onnx.ModelProto()
    bare.CopyFrom(onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import))
    bare.graph.name = model.graph.name
    bare.graph.node.extend(model.graph.node)
    bare.graph.input.extend(model.graph.input)
    bare.graph.output.extend(model.graph.output)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            info = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            bare.graph.input.append(info)
        else:
            bare.graph.initializer.append(tensor)
    return onnx.shape_inference.infer_shapes(bare, data_prop=True).graph


def metadata(model: onnx.ModelProto) -> dict[str, str]:
    return {p.key: p.value for p in model.metadata_props}


def batched(model: onnx.ModelProto, batch: int | str) -> onnx.ModelProto:
    """Returns a model of images for another batch, or an open one; all its operators must keep it."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for info in [*out.graph.input, *out.graph.output]:
        size = info.type.tensor_type.shape.dim[0]
        if isinstance(batch, str):
            size.dim_param = batch
        else:
            size.dim_value = batch
    return out


def make_inputs(
    model: onnx.ModelProto | str | Path, seed: int = 0, sizes: Mapping[str, int] | None = None
) -> dict[str, np.ndarray]:
    """Returns invented inputs by name, in the order of the signature.

    Ranges come from the model's metadata; without any, floats are in [-1, 1), integers 0 or 1. A
    symbolic size is that of its name in `sizes`, else 1.
    """
    if not isinstance(model, onnx.ModelProto):
        model = onnx.load(str(model), load_external_data=False)
    specs = metadata(model)
    weights = {t.name for t in model.graph.initializer}
    inputs: dict[str, np.ndarray] = {}
    for info in model.graph.input:
        if info.name in weights:
            continue
        tensor = info.type.tensor_type
        shape = tuple(d.dim_value or (sizes or {}).get(d.dim_param, 1) for d in tensor.shape.dim)
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        spec = json.loads(specs.get(f"input.{info.name}", "{}"))
        key = f"input/{info.name}/{seed}"
        if spec.get("kind") == "words":
            # Decimal numbers below `high`, so that words are repeated.
            numbers = np.floor(uniform(key, shape, 0, spec["high"])).astype(np.int64)
            inputs[info.name] = np.array([f"word {n}" for n in numbers.flat]).reshape(shape)
            continue
        if spec.get("kind") == "prefix":
            # A padding mask: between half and all of the last axis is real.
            length = int(uniform(key, (1,), shape[-1] / 2, shape[-1] + 1)[0])
            value = np.broadcast_to(np.arange(shape[-1]) < length, shape)
        elif np.issubdtype(dtype, np.floating):
            value = uniform(key, shape, spec.get("low", -1.0), spec.get("high", 1.0))
        else:
            value = np.floor(uniform(key, shape, spec.get("low", 0), spec.get("high", 2)))
        # Of one number NumPy would make a vector.
        inputs[info.name] = np.ascontiguousarray(value).astype(dtype).reshape(shape)
    return inputs


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Writes the benchmark models as ONNX.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models (default: all of them)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--small", action="store_true", help="the tiny variants")
    args = parser.parse_args(argv)
    unknown = [n for n in args.names if n not in MODELS]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are: {', '.join(MODELS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or MODELS:
        path = args.out / f"{name}.onnx"
        write(name, path, args.small)
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
