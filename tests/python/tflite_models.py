"""Whole TFLite models at small sizes, with drawn weights: float32 and int8."""

from __future__ import annotations

import numpy as np
from tflite_cases import Made, lstm_inputs

F, I8, I16, I32 = "float32", "int8", "int16", "int32"


class Network(Made):
    """Layers one after the other, in one of the forms that converters write, with plausible scales.

    form: "float32"; "float16", weights that are converted when the model runs; "hybrid", floats by int8
        weights; "int8"; "int16", of which the weights are int8.
    """

    def __init__(self, seed: int, form: str) -> None:
        super().__init__(seed)
        self.form = form
        self.integers = form in (I8, I16)
        self.shape: tuple[int, ...] = ()
        self.scale = 0.05 / 256 if form == I16 else 0.05

    def begin(self, shape: tuple[int, ...]) -> int:
        self.shape = shape
        return self.input(shape, self.form if self.integers else F, **self.level())

    def level(self, scale: float | None = None, zero: int = -3) -> dict:
        if not self.integers:
            return {}
        return {"scale": scale or self.scale, "zero": 0 if self.form == I16 else zero}

    def value(self, shape, **q) -> int:
        return self.mid(shape, self.form if self.integers else F, **(q or self.level()))

    def weights(self, shape, axis: int, fan_in: int) -> tuple[int, int]:
        """Weights and bias that keep the size of what they multiply."""
        channels = shape[axis]
        values = self.rng.standard_normal(shape) * np.sqrt(2 / fan_in)
        others = tuple(a for a in range(len(shape)) if a != axis)
        scale = np.abs(values).max(others) / 127
        sizes = [-1 if a == axis else 1 for a in range(len(shape))]
        levels = np.round(values / scale.reshape(sizes))
        if self.integers:
            w = self.const(levels, I8, scale=scale, axis=axis)
            bias_scale = scale.astype(np.float32) * np.float32(self.scale)
            reach = 0.5 / self.scale
            bias = self.draw((channels,), I32, -reach, reach) if self.form == I8 else np.round(
                self.rng.uniform(-0.5, 0.5, channels) / bias_scale)  # fmt: skip
            return w, self.const(bias, I32 if self.form == I8 else "int64", scale=bias_scale)
        bias = self.const(self.draw((channels,), low=-0.1, high=0.1), F)
        if self.form == "hybrid":
            return self.const(levels, I8, scale=scale, axis=axis), bias
        if self.form == "float16":
            w = self.mid(shape)
            self.g.op("DEQUANTIZE", [self.const(values, "float16")], [w])
            return w, bias
        return self.const(values, F), bias

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

    def depthwise(self, x: int, stride=1, kernel=3, activation="relu6") -> int:
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
                "activation": activation,
            },
        )
        return y

    def prelu(self, x: int) -> int:
        slopes = self.rng.uniform(0.1, 0.4, (1, 1, self.shape[-1]))
        q = {"scale": 0.4 / 127, "zero": 0} if self.integers else {}
        levels = np.round(slopes / q["scale"]) if q else slopes
        y = self.value(self.shape)
        self.g.op("PRELU", [x, self.const(levels, self.form if q else F, **q)], [y])
        return y

    def max_pool(self, x: int) -> int:
        n, h, w, c = self.shape
        self.shape = (n, -(-h // 2), -(-w // 2), c)
        y = self.value(self.shape)
        self.g.op("MAX_POOL_2D", [x], [y], pool_2d={"padding": "same", "stride_w": 2, "stride_h": 2,
                                                    "filter_w": 2, "filter_h": 2})  # fmt: skip
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
        scale = 1 / 32768 if self.form == I16 else 1 / 256
        y = self.value(self.shape, **self.level(scale, -128))
        self.g.op("SOFTMAX", [x], [y], softmax={"beta": 1.0})
        return y

    def done(self, *outputs: int) -> tuple[bytes, dict[str, np.ndarray]]:
        self.g.outputs = list(outputs)
        return self.model.bytes(), self.feeds


def mobilenet_v1(form: str, size=48, width=0.25) -> tuple[bytes, dict[str, np.ndarray]]:
    """Depthwise separable convolutions, a mean and classes."""
    n = Network(1, form)
    x = n.conv(n.begin((1, size, size, 3)), int(32 * width), 3, 2)
    for channels, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (512, 2), (512, 1)):
        x = n.conv(n.depthwise(x, stride), int(channels * width))
    return n.done(n.softmax(n.dense(n.pooled(x), 10)))


def inverted_residuals(n: Network, x: int, rows, width: float) -> int:
    """Blocks with linear bottlenecks: (expansion, channels, count, stride, size of the kernel)."""
    for expansion, channels, count, stride, kernel in rows:
        channels = max(8, int(channels * width))
        for i in range(count):
            before, shape = x, n.shape
            if expansion > 1:
                x = n.conv(x, n.shape[3] * expansion)
            x = n.depthwise(x, stride if i == 0 else 1, kernel)
            x = n.conv(x, channels, activation="none")
            if n.shape == shape:
                x = n.add(before, x)
    return x


MOBILENET_V2 = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3),
                (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]  # fmt: skip
EFFICIENTNET_LITE = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
                     (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]  # fmt: skip


def classifier(
    form: str, size: int, width: float, rows, seed: int
) -> tuple[bytes, dict[str, np.ndarray]]:
    n = Network(seed, form)
    x = n.conv(n.begin((1, size, size, 3)), max(8, int(32 * width)), 3, 2)
    x = inverted_residuals(n, x, rows, width)
    x = n.conv(x, max(64, int(1280 * width)))
    return n.done(n.dense(n.pooled(x), 1000 if width == 1 else 10))


def mobilenet_v2(
    form: str, size=48, width=0.25, blocks=None
) -> tuple[bytes, dict[str, np.ndarray]]:
    """Inverted residuals with linear bottlenecks."""
    return classifier(form, size, width, MOBILENET_V2[:blocks], 2)


def efficientnet_lite(
    form: str, size=48, width=0.25, blocks=None
) -> tuple[bytes, dict[str, np.ndarray]]:
    """The same with kernels of 3 and 5."""
    return classifier(form, size, width, EFFICIENTNET_LITE[:blocks], 6)


def mobilenet_v3(form: str, size=48, width=0.25) -> tuple[bytes, dict[str, np.ndarray]]:
    """Inverted residuals with hard swishes, and channels that are weighed by a small network."""
    n = Network(11, form)

    def swish(x: int) -> int:
        y = n.value(n.shape)
        n.g.op("HARD_SWISH", [x], [y])
        return y

    def weighed(x: int) -> int:
        shape = n.shape
        y = n.value((1, 1, 1, shape[3]))
        n.g.op("MEAN", [x, n.const([1, 2])], [y], reducer={"keep_dims": True})
        n.shape = (1, 1, 1, shape[3])
        y = n.conv(n.conv(y, max(8, shape[3] // 4), activation="relu"), shape[3], activation="none")
        # The hard sigmoid, as converters write it: relu6(y + 3) / 6.
        kind = n.form if n.integers else F
        q = n.level(6 / 255, -128)
        high, share = n.value(n.shape, **q), n.value(n.shape, **n.level(1 / 255, -128))
        three, sixth = (
            n.const(np.array([1]), kind, scale=v, zero=0) if q else n.const(np.array([v]), F)
            for v in (3.0, 1 / 6)
        )
        n.g.op("ADD", [y, three], [high], add={"activation": "relu6"})
        n.g.op("MUL", [high, sixth], [share], mul={})
        n.shape = shape
        z = n.value(shape)
        n.g.op("MUL", [x, share], [z], mul={})
        return z

    x = swish(n.conv(n.begin((1, size, size, 3)), 16, 3, 2, "none"))
    for expansion, channels, stride, kernel, weighs in (
        (1, 16, 2, 3, True), (4, 24, 2, 3, False), (4, 24, 1, 3, False), (6, 40, 2, 5, True),
        (6, 40, 1, 5, True), (6, 96, 2, 5, True),
    ):  # fmt: skip
        before, shape = x, n.shape
        x = swish(n.conv(x, shape[3] * expansion, activation="none"))
        x = swish(n.depthwise(x, stride, kernel, "none"))
        x = n.conv(weighed(x) if weighs else x, max(8, int(channels * width)), activation="none")
        if n.shape == shape:
            x = n.add(before, x)
    return n.done(n.softmax(n.dense(n.pooled(swish(n.conv(x, 64, activation="none"))), 10)))


def detector(form: str, size=64, width=0.25) -> tuple[bytes, dict[str, np.ndarray]]:
    """Boxes and scores of three maps over a MobileNet-v2, by separable convolutions."""
    n = Network(7, form)
    x = n.conv(n.begin((1, size, size, 3)), max(8, int(32 * width)), 3, 2)
    maps = []
    for rows in (MOBILENET_V2[:5], MOBILENET_V2[5:]):
        x = inverted_residuals(n, x, rows, width)
        maps.append((x, n.shape))
    x = n.conv(n.depthwise(n.conv(x, int(256 * width)), 2), int(512 * width))
    maps.append((x, n.shape))
    outs: dict[int, list[tuple[int, int]]] = {4: [], 91: []}
    for x, shape in maps:
        for each, parts in outs.items():
            n.shape = shape
            y = n.conv(n.depthwise(x), 3 * each, activation="none")
            places = shape[1] * shape[2] * 3
            flat = n.value((1, places, each))
            n.g.op("RESHAPE", [y, n.const([1, places, each])], [flat], reshape={})
            parts.append((flat, places))
    results = []
    for each, parts in outs.items():
        y = n.value((1, sum(p for _, p in parts), each))
        n.g.op("CONCATENATION", [t for t, _ in parts], [y], concatenation={"axis": 1})
        results.append(y)
    return n.done(*results)


def landmarks(form: str, size=48, width=0.5) -> tuple[bytes, dict[str, np.ndarray]]:
    """Points of an image: blocks of a depthwise and a 1x1 convolution with PReLU, pools beside strides."""
    n = Network(8, form)
    x = n.prelu(n.conv(n.begin((1, size, size, 3)), int(16 * width), 3, 2, "none"))
    for channels in (16, 32, 64, 128, 128):
        channels = int(channels * width)
        for _ in range(2):
            y = n.conv(n.depthwise(x, activation="none"), n.shape[3], activation="none")
            x = n.prelu(n.add(x, y))
        shape = n.shape
        short = n.max_pool(x)
        if channels != n.shape[3]:
            short = n.conv(short, channels, activation="none")
        n.shape = shape
        y = n.conv(n.depthwise(x, 2, activation="none"), channels, activation="none")
        x = n.prelu(n.add(short, y))
    return n.done(n.dense(n.pooled(x), 1404))


def auto_encoder(form: str) -> tuple[bytes, dict[str, np.ndarray]]:
    """Dense layers to a few numbers and back."""
    n = Network(9, form)
    x = n.begin((2, 96))
    for units in (32, 32, 8, 32, 32):
        x = n.dense(x, units, "relu")
    return n.done(n.dense(x, 96))


def sequence_labels(form: str) -> tuple[bytes, dict[str, np.ndarray]]:
    """An LSTM over a sequence, and labels of its steps."""
    n = Network(10, form)
    inputs = lstm_inputs(n, n.begin((2, 9, 4)), form, n=12)
    y = n.value((2, 9, 12))
    n.g.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], unidirectional_lstm={"activation": "tanh"})
    n.shape = (18, 12)
    return n.done(n.softmax(n.dense(y, 5)))


def gated_units(form: str) -> tuple[bytes, dict[str, np.ndarray]]:
    """A GRU over a sequence, as a loop whose body is a step."""
    n = Network(12, form)
    units, steps = 12, 7
    x = n.input((steps, 2, 4), F)
    first, zeros = n.const(np.array(0), I32), n.const(np.zeros((2, units)), F)
    shapes = (((), I32), ((2, units), F), ((steps, 2, 4), F))
    n.g.outputs = results = [n.mid(*s) for s in shapes]
    n.g.op(
        "WHILE", [first, zeros, x], results, while_graphs={"cond_subgraph": 1, "body_subgraph": 2}
    )
    outer, n.g = n.g, n.model.graph()
    n.g.inputs = [n.mid(*s) for s in shapes]
    n.g.outputs = [n.mid((), "bool")]
    n.g.op("LESS", [n.g.inputs[0], n.const(np.array(steps), I32)], n.g.outputs)
    n.g = n.model.graph()
    t, h, xs = n.g.inputs = [n.mid(*s) for s in shapes]

    def op(kind: str, inputs, shape=(2, units), dtype=F, **options) -> int:
        out = n.mid(shape, dtype)
        n.g.op(kind, inputs, [out], **options)
        return out

    line = op("GATHER", [xs, t], (2, 4), gather={"axis": 0})
    n.shape = (2, 4)
    of_x = n.dense(line, 3 * units)
    n.shape = (2, units)
    of_h = n.dense(h, 3 * units)

    def part(y: int, i: int) -> int:
        return op("SLICE", [y, n.const([0, i * units]), n.const([2, units])])

    update, reset = (
        op("LOGISTIC", [op("ADD", [part(of_x, i), part(of_h, i)], add={})]) for i in (0, 1)
    )
    kept = op("MUL", [reset, part(of_h, 2)], mul={})
    new = op("TANH", [op("ADD", [part(of_x, 2), kept], add={})])
    change = op("MUL", [update, op("SUB", [h, new], sub={})], mul={})
    after = op("ADD", [t, n.const(np.array(1), I32)], (), I32, add={})
    n.g.outputs = [after, op("ADD", [new, change], add={}), xs]
    n.g = outer
    return n.done(results[1])


def keyword_spotting(form: str) -> tuple[bytes, dict[str, np.ndarray]]:
    """A convolution over time and frequency, separable ones, and words."""
    n = Network(3, form)
    x = n.conv(n.begin((1, 49, 10, 1)), 24, 4, 2, "relu")
    for _ in range(3):
        x = n.conv(n.depthwise(x), 24, activation="relu")
    return n.done(n.softmax(n.dense(n.pooled(x), 12)))


def ssd_head(form: str) -> tuple[bytes, dict[str, np.ndarray]]:
    """Boxes and scores of two feature maps, joined."""
    n = Network(4, form)
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
    n = Network(5, F)
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
    f"{build.__name__}-{form}": (build, (form,))
    for build, forms in (
        (mobilenet_v1, (F, I8, I16, "float16", "hybrid")),
        (mobilenet_v2, (F, I8)),
        (mobilenet_v3, (F, I8)),
        (efficientnet_lite, (F, I8, "float16")),
        (keyword_spotting, (F, I8, I16, "hybrid")),
        (ssd_head, (F, I8)),
        (detector, (F, I8)),
        (landmarks, (F, I8)),
        (auto_encoder, (F, I8, I16, "hybrid")),
        (sequence_labels, (F, "hybrid")),
        (gated_units, (F, "hybrid")),
    )
    for form in forms
} | {"transformer_block-float32": (transformer_block, ())}
