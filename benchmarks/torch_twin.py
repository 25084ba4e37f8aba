"""A PyTorch twin of a benchmark model: the same graph, node by node, on PyTorch's operators.

Only the operators and attribute values that benchmarks/models.py writes are covered; anything else
raises NotImplementedError with the node's name, and the comparison then says that there is no twin.
"""

from __future__ import annotations

import operator

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import torch_lstm
from onnx import helper, numpy_helper


def _even_pads(pads: list[int]) -> list[int]:
    half = len(pads) // 2
    if pads[:half] != pads[half:]:
        raise NotImplementedError(f"pads {pads}: left and right differ")
    return pads[:half]


def _reorder_gates(w: np.ndarray) -> np.ndarray:
    """ONNX's gate order i, o, f, c to PyTorch's i, f, c, o, along the first axis."""
    i, o, f, c = np.split(w, 4)
    return np.concatenate([i, f, c, o])


class _Translation:
    """One ONNX graph on its way to a torch.fx graph."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.graph = torch.fx.Graph()
        self.root = torch.nn.Module()
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.values: dict[str, torch.fx.Node] = {}

    def parameter(self, name: str, array: np.ndarray) -> torch.fx.Node:
        buffer = "w_" + "".join(ch if ch.isalnum() else "_" for ch in name)
        self.root.register_buffer(buffer, torch.from_numpy(np.array(array)))
        return self.graph.get_attr(buffer)

    def value(self, name: str) -> torch.fx.Node:
        if name not in self.values:
            self.values[name] = self.parameter(name, self.constants[name])
        return self.values[name]

    def ints(self, name: str) -> list[int]:
        return [int(v) for v in np.atleast_1d(self.constants[name])]

    def call(self, function, *args, **kwargs) -> torch.fx.Node:
        return self.graph.call_function(function, args, kwargs)

    def node(self, node: onnx.NodeProto) -> None:
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        handler = getattr(self, "on_" + node.op_type, None)
        if handler is None:
            raise NotImplementedError(f"no torch twin for {node.op_type} ({node.name})")
        result = handler(node, attrs)
        if len(node.output) == 1:
            self.values[node.output[0]] = result
            return
        for i, name in enumerate(node.output):
            self.values[name] = self.call(operator.getitem, result, i)

    def inputs(self, node: onnx.NodeProto) -> list[torch.fx.Node]:
        return [self.value(name) for name in node.input]

    def on_Conv(self, node, attrs):
        x, w, *b = self.inputs(node)
        return self.call(F.conv2d, x, w, b[0] if b else None, stride=attrs["strides"],
                         padding=_even_pads(attrs["pads"]), groups=attrs["group"])  # fmt: skip

    def on_ConvTranspose(self, node, attrs):
        x, w, *b = self.inputs(node)
        return self.call(F.conv_transpose2d, x, w, b[0] if b else None, stride=attrs["strides"],
                         padding=_even_pads(attrs["pads"]), groups=attrs["group"])  # fmt: skip

    def on_BatchNormalization(self, node, attrs):
        x, scale, shift, mean, var = self.inputs(node)
        return self.call(F.batch_norm, x, mean, var, scale, shift, eps=attrs["epsilon"])

    def on_LayerNormalization(self, node, attrs):
        x, scale, shift = self.inputs(node)
        size = list(self.constants[node.input[1]].shape)
        return self.call(F.layer_norm, x, size, scale, shift, eps=attrs["epsilon"])

    def on_Relu(self, node, attrs):
        return self.call(F.relu, *self.inputs(node))

    def on_Clip(self, node, attrs):
        low, high = (float(self.constants[name]) for name in node.input[1:])
        return self.call(torch.clamp, self.value(node.input[0]), low, high)

    def on_MaxPool(self, node, attrs):
        padding = _even_pads(attrs.get("pads", [0, 0, 0, 0]))
        return self.call(F.max_pool2d, self.value(node.input[0]), attrs["kernel_shape"],
                         attrs["strides"], padding)  # fmt: skip

    def on_GlobalAveragePool(self, node, attrs):
        return self.call(F.adaptive_avg_pool2d, self.value(node.input[0]), 1)

    def on_Flatten(self, node, attrs):
        return self.call(torch.flatten, self.value(node.input[0]), attrs["axis"])

    def on_Gemm(self, node, attrs):
        if attrs != {"transB": 1}:
            raise NotImplementedError(f"Gemm with {attrs} ({node.name})")
        return self.call(F.linear, *self.inputs(node))

    def on_MatMul(self, node, attrs):
        return self.call(torch.matmul, *self.inputs(node))

    def on_Softmax(self, node, attrs):
        return self.call(torch.softmax, self.value(node.input[0]), attrs["axis"])

    def on_Reshape(self, node, attrs):
        return self.call(torch.reshape, self.value(node.input[0]), self.ints(node.input[1]))

    def on_Transpose(self, node, attrs):
        x, perm = self.value(node.input[0]), attrs["perm"]
        if perm == [0, 2, 3, 1]:
            # In two steps, as attention is written in PyTorch: inductor takes the one-step form
            # for another of its attention patterns and fails.
            return self.call(torch.transpose, self.call(torch.permute, x, [0, 2, 1, 3]), -1, -2)
        return self.call(torch.permute, x, perm)

    def on_Unsqueeze(self, node, attrs):
        x = self.value(node.input[0])
        for axis in self.ints(node.input[1]):
            x = self.call(torch.unsqueeze, x, axis)
        return x

    def on_Squeeze(self, node, attrs):
        return self.call(torch.squeeze, self.value(node.input[0]), self.ints(node.input[1]))

    def on_Cast(self, node, attrs):
        if attrs["to"] != onnx.TensorProto.FLOAT:
            raise NotImplementedError(f"Cast to another type than float32 ({node.name})")
        # To the type of the weights, which may be others than the file's.
        weight = self.parameter("float", np.zeros((), np.float32))
        return self.graph.call_method("type_as", (self.value(node.input[0]), weight))

    def on_Expand(self, node, attrs):
        return self.call(torch.broadcast_to, self.value(node.input[0]), self.ints(node.input[1]))

    def on_Gather(self, node, attrs):
        axis = attrs["axis"]
        if np.ndim(self.constants.get(node.input[1])) == 0 and node.input[1] in self.constants:
            index = int(self.constants[node.input[1]])
            return self.call(torch.select, self.value(node.input[0]), axis, index)
        if axis != 0:
            raise NotImplementedError(f"Gather along axis {axis} ({node.name})")
        table, index = self.inputs(node)
        return self.call(F.embedding, index, table)

    def on_Concat(self, node, attrs):
        return self.call(torch.cat, self.inputs(node), attrs["axis"])

    def on_Split(self, node, attrs):
        x, sizes = self.value(node.input[0]), self.ints(node.input[1])
        return self.call(torch.split, x, sizes, attrs["axis"])

    def on_LSTM(self, node, attrs):
        w, r, b = (self.constants[name][0] for name in node.input[1:])
        arrays = [*map(_reorder_gates, (w, r)), *map(_reorder_gates, np.split(b, 2))]
        weights = [self.parameter(f"{node.name}_{i}", a) for i, a in enumerate(arrays)]
        return self.call(torch_lstm.lstm, self.value(node.input[0]), weights, attrs["hidden_size"])

    def arithmetic(self, function, node: onnx.NodeProto) -> torch.fx.Node:
        """Constant scalars become Python numbers: inductor's patterns look for those."""
        arguments = [
            float(self.constants[name])
            if name in self.constants and self.constants[name].ndim == 0
            else self.value(name)
            for name in node.input
        ]
        return self.call(function, *arguments)

    def on_Add(self, node, attrs):
        return self.arithmetic(operator.add, node)

    def on_Sub(self, node, attrs):
        return self.arithmetic(operator.sub, node)

    def on_Mul(self, node, attrs):
        return self.arithmetic(operator.mul, node)

    def on_Div(self, node, attrs):
        return self.arithmetic(operator.truediv, node)

    def on_Erf(self, node, attrs):
        return self.call(torch.erf, *self.inputs(node))

    def on_Tanh(self, node, attrs):
        return self.call(torch.tanh, *self.inputs(node))

    def on_Sigmoid(self, node, attrs):
        return self.call(torch.sigmoid, *self.inputs(node))


def build(model: onnx.ModelProto) -> torch.nn.Module:
    """Returns a module that takes the model's inputs in order and returns a tuple of its outputs.

    Raises NotImplementedError when the model has a node without a twin.
    """
    translation = _Translation(model)
    for info in model.graph.input:
        if info.name not in translation.constants:
            translation.values[info.name] = translation.graph.placeholder(info.name)
    for node in model.graph.node:
        translation.node(node)
    translation.graph.output(tuple(translation.values[o.name] for o in model.graph.output))
    return torch.fx.GraphModule(translation.root, translation.graph).eval()
