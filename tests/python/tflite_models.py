"""Whole TFLite models at small sizes, with drawn weights: float32 and int8."""

from __future__ import annotations

import numpy as np
from tflite_cases import Made

F, I8, I32 = "float32", "int8", "int32"


class Network(Made):
    """Layers one after the other, in floats or in int8 with plausible scales."""

    def __init__(self, seed: int, integers: bool) -> None:
        super().__init__(seed)
        self.integers = integers
        self.shape: tuple[int, ...] = ()
        self.scale = 0.05

    def begin(self, shape: tuple[int, ...]) -> int:
        self.shape = shape
        q = {"scale": self.scale, "zero": -3} if self.integers else {}
        return self.input(shape, I8 if self.integers else F, **q)

    def level(self, scale: float | None = None, zero: int = -3) -> dict:
        return {"scale": scale or self.scale, "zero": zero} if self.integers else {}

    def value(self, shape, **q) -> int:
        return self.mid(shape, I8 if self.integers else F, **(q or self.level()))

    def weights(self, shape, axis: int, fan_in: int) -> tuple[int, int]:
        """Weights and bias that keep the size of what they multiply."""
        channels = shape[axis]
        values = self.rng.standard_normal(shape) * np.sqrt(2 / fan_in)
        if not self.integers:
            return self.const(values, F), self.const(self.draw((channels,), low=-0.1, high=0.1), F)
        others = tuple(a for a in range(len(shape)) if a != axis)
        scale = np.abs(values).max(others) / 127
        sizes = [-1 if a == axis else 1 for a in range(len(shape))]
        w = self.const(np.round(values / scale.reshape(sizes)), I8, scale=scale, axis=axis)
        bias_scale = scale.astype(np.float32) * np.float32(self.scale)
        return w, self.const(self.draw((channels,), I32, -200, 200), I32, scale=bias_scale)

    def conv(self, x: int, channels: int, kernel=1, stride=1, activation="relu6") -> int:
        n, h, w, c = self.shape
        weight, bias = self.weights((channels, kernel, kernel, c), 0, kernel * kernel * c)
        self.shape = (n, -(-h // stride), -(-w // stride), channels)
        y = self.value(self.shape)
        self.g.op(
            "CONV_2D",
            [x, weight, bias],
            [y],
            conv_2d={
                "padding": "same",
                "stride_w": stride,
                "stride_h": stride,
                "activation": activation,
            },
        )
        return y

    def depthwise(self, x: int, stride=1, kernel=3) -> int:
        n, h, w, c = self.shape
        weight, bias = self.weights((1, kernel, kernel, c), 3, kernel * kernel)
        self.shape = (n, -(-h // stride), -(-w // stride), c)
        y = self.value(self.shape)
        self.g.op(
            "DEPTHWISE_CONV_2D",
            [x, weight, bias],
            [y],
            depthwise_conv_2d={
                "padding": "same",
                "stride_w": stride,
                "stride_h": stride,
                "multiplier": 1,
                "activation": "relu6",
            },
        )
        return y

    def add(self, x: int, y: int) -> int:
        z = self.value(self.shape)
        self.g.op("ADD", [x, y], [z], add={})
        return z

    def pooled(self, x: int) -> int:
        n, _, _, c = self.shape
        self.shape = (n, c)
        y = self.value(self.shape)
        self.g.op("MEAN", [x, self.const([1, 2])], [y], reducer={"keep_dims": False})
        return y

    def dense(self, x: int, units: int, activation="none") -> int:
        n, c = self.shape
        weight, bias = self.weights((units, c), 0, c)
        self.shape = (n, units)
        y = self.value(self.shape)
        self.g.op(
            "FULLY_CONNECTED", [x, weight, bias], [y], fully_connected={"activation": activation}
        )
        return y

    def softmax(self, x: int) -> int:
        y = self.value(self.shape, **self.level(1 / 256, -128))
        self.g.op("SOFTMAX", [x], [y], softmax={"beta": 1.0})
        return y

    def done(self, *outputs: int) -> tuple[bytes, dict[str, np.ndarray]]:
        self.g.outputs = list(outputs)
        return self.model.bytes(), self.feeds


def mobilenet_v1(integers: bool, size=48, width=0.25) -> tuple[bytes, dict[str, np.ndarray]]:
    """Depthwise separable convolutions, a mean and classes."""
    n = Network(1, integers)
    x = n.conv(n.begin((1, size, size, 3)), int(32 * width), 3, 2)
    for channels, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (512, 2), (512, 1)):
        x = n.conv(n.depthwise(x, stride), int(channels * width))
    return n.done(n.softmax(n.dense(n.pooled(x), 10)))


def mobilenet_v2(
    integers: bool, size=48, width=0.25, blocks=None
) -> tuple[bytes, dict[str, np.ndarray]]:
    """Inverted residuals with linear bottlenecks."""
    n = Network(2, integers)
    x = n.conv(n.begin((1, size, size, 3)), max(8, int(32 * width)), 3, 2)
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1)]  # fmt: skip
    for expansion, channels, count, stride in rows[:blocks]:
        channels = max(8, int(channels * width))
        for i in range(count):
            before, shape = x, n.shape
            if expansion > 1:
                x = n.conv(x, n.shape[3] * expansion)
            x = n.depthwise(x, stride if i == 0 else 1)
            x = n.conv(x, channels, activation="none")
            if n.shape == shape:
                x = n.add(before, x)
    x = n.conv(x, max(64, int(1280 * width)))
    return n.done(n.dense(n.pooled(x), 1000 if width == 1 else 10))


def keyword_spotting(integers: bool) -> tuple[bytes, dict[str, np.ndarray]]:
    """A convolution over time and frequency, separable ones, and words."""
    n = Network(3, integers)
    x = n.conv(n.begin((1, 49, 10, 1)), 24, 4, 2, "relu")
    for _ in range(3):
        x = n.conv(n.depthwise(x), 24, activation="relu")
    return n.done(n.softmax(n.dense(n.pooled(x), 12)))


def ssd_head(integers: bool) -> tuple[bytes, dict[str, np.ndarray]]:
    """Boxes and scores of two feature maps, joined."""
    n = Network(4, integers)
    x = n.conv(n.begin((1, 16, 16, 8)), 24, 3, 2)
    boxes, scores = [], []
    for _ in range(2):
        shape = n.shape
        for width, out in ((4, boxes), (3, scores)):
            n.shape = shape
            y = n.conv(x, 2 * width, 3, activation="none")
            places = shape[1] * shape[2] * 2
            flat = n.value((1, places, width))
            n.g.op("RESHAPE", [y, n.const([1, places, width])], [flat], reshape={})
            out.append((flat, places))
        n.shape = shape
        x = n.conv(x, 24, 3, 2)
    results = []
    for width, parts in ((4, boxes), (3, scores)):
        y = n.value((1, sum(p for _, p in parts), width))
        n.g.op("CONCATENATION", [t for t, _ in parts], [y], concatenation={"axis": 1})
        results.append(y)
    return n.done(*results)


def transformer_block() -> tuple[bytes, dict[str, np.ndarray]]:
    """Attention of two heads over twelve tokens, in floats."""
    n = Network(5, False)
    x = n.begin((12, 16))
    heads = []
    for _ in range(3):
        n.shape = (12, 16)
        y = n.dense(x, 16)
        split, turned = n.mid((12, 2, 8)), n.mid((2, 12, 8))
        n.g.op("RESHAPE", [y, n.const([12, 2, 8])], [split], reshape={})
        n.g.op("TRANSPOSE", [split, n.const([1, 0, 2])], [turned])
        heads.append(turned)
    scores, shares, mixed = n.mid((2, 12, 12)), n.mid((2, 12, 12)), n.mid((2, 12, 8))
    n.g.op("BATCH_MATMUL", heads[:2], [scores], batch_matmul={"adj_y": True})
    n.g.op("SOFTMAX", [scores], [shares], softmax={"beta": 0.35})
    n.g.op("BATCH_MATMUL", [shares, heads[2]], [mixed], batch_matmul={})
    turned, joined = n.mid((12, 2, 8)), n.mid((12, 16))
    n.g.op("TRANSPOSE", [mixed, n.const([1, 0, 2])], [turned])
    n.g.op("RESHAPE", [turned, n.const([12, 16])], [joined], reshape={})
    n.shape = (12, 16)
    x = n.add(x, n.dense(joined, 16))
    return n.done(n.add(x, n.dense(n.dense(x, 32, "relu"), 16)))


MODELS = {
    f"{build.__name__}-{'int8' if integers else 'float32'}": (build, (integers,))
    for build in (mobilenet_v1, mobilenet_v2, keyword_spotting, ssd_head)
    for integers in (False, True)
} | {"transformer_block-float32": (transformer_block, ())}
