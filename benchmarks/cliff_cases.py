"""What cliffs.py measures: cases in groups, each one step outside static float32 models of batch 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import models
import numpy as np
import onnx
from cliff_models import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    INT8,
    INT32,
    INT64,
    UINT8,
    Build,
    Case,
    CompileCase,
    In,
    Weights,
    as_half,
    attention,
    decoder,
    image,
    ints,
    loop,
    mlp,
    one,
    quantised,
    recurrent,
    scan,
    segmentation,
    small_decoder,
    tied_head,
    traced,
)
from kernels import Conv
from onnx import TensorProto


def bert(seq: int | str, batch: int | str = 1) -> Build:
    return lambda: models.bert("bert4", 4, batch, seq, 768, 12, 4000)


def open_sizes() -> Iterator[Case]:
    for seq in (16, 128):
        yield Case(f"bert static {seq}", bert(seq), 0.95)
    for seq in (1, 2, 3, 7, 8, 16, 17, 31, 64, 100, 128, 257, 512):
        twin = f"bert static {seq}" if seq in (16, 128) else ""
        yield Case(f"bert {seq}", bert("sequence", "batch"), 0.95, {"batch": 1, "sequence": seq},
                   "bert", twin)  # fmt: skip
    yield Case("bert 4x32", bert("sequence", "batch"), 0.95, {"batch": 4, "sequence": 32}, "bert")
    resnet = lambda: models.build("resnet18")  # noqa: E731
    yield Case("resnet18 static 1", resnet, 0.95)
    for n in (1, 2, 3, 8, 32):
        yield Case(f"resnet18 {n}", lambda: models.batched(resnet(), "batch"), 0.95, {"batch": n},
                   "resnet18", "resnet18 static 1" if n == 1 else "")  # fmt: skip
    yield Case("decoder static 128", small_decoder(128))
    for past in (16, 128, 512, 2048):
        yield Case(f"decoder {past}", small_decoder("past"), 0.9, {"past": past}, "decoder",
                   "decoder static 128" if past == 128 else "")  # fmt: skip
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        yield Case(f"{op.lower()} static 50", recurrent(op, gates, 50))
        for steps in (1, 50, 200):
            yield Case(f"{op.lower()} {steps}", recurrent(op, gates, "steps"), 0.9,
                       {"steps": steps}, op, f"{op.lower()} static 50" if steps == 50 else "")  # fmt: skip
    for n in (1, 3, 17, 64, 257):
        yield Case(f"dense {n}", one("MatMul", In(("n", 768)), Weights((768, 768))), 0.95,
                   {"n": n}, "dense")  # fmt: skip
    for n in (1, 5, 32):
        yield Case(f"mlp {n}", traced("mlp", mlp, In(("n", 256))), 0.95, {"n": n}, "mlp")
    product = one("MatMul", In((12, "n", 64)), In((12, 64, "n")))
    for n in (7, 77, 300):
        yield Case(f"batch matmul {n}", product, 0.95, {"n": n}, "batch matmul")
    heads = [In((1, 12, "n", 64))] * 3
    for n in (7, 77, 300):
        yield Case(f"attention {n}", traced("attention", attention, *heads), 0.95, {"n": n},
                   "attention")  # fmt: skip
    conv = dict(kernel_shape=[3, 3], pads=[1] * 4)
    weights = Weights((64, 64, 3, 3))
    yield Case("conv batch 1", one("Conv", image("n", 64, 56, 56), weights, **conv), 0.95,
               {"n": 1}, "conv batch")  # fmt: skip
    for h, w in ((56, 56), (61, 37)):
        yield Case(f"conv {h}x{w}", one("Conv", image(1, 64, "h", "w"), weights, **conv), 0.95,
                   {"h": h, "w": w}, "conv image")  # fmt: skip
    yield Case("conv1d 997", one("Conv", image(1, 64, "n"), Weights((64, 64, 5)), pads=[2, 2]),
               0.95, {"n": 997})  # fmt: skip
    yield Case("depthwise 56", one("Conv", image(1, 96, "n", "n"), Weights((96, 1, 3, 3)),
                                   group=96, **conv), 0.95, {"n": 56})  # fmt: skip
    yield Case("conv transpose 28", one("ConvTranspose", image(1, 64, "n", "n"),
                                        Weights((64, 32, 4, 4)), strides=[2, 2], pads=[1] * 4),
               0.95, {"n": 28})  # fmt: skip
    yield Case("softmax 128x1000", one("Softmax", In(("n", "m"))), 0.95, {"n": 128, "m": 1000})
    yield Case("layer norm 128", one("LayerNormalization", In(("n", 768)), Weights((768,)),
                                     Weights((768,))), 0.95, {"n": 128})  # fmt: skip
    yield Case("max pool 112", one("MaxPool", image(1, 64, "n", "n"), kernel_shape=[3, 3],
                                   strides=[2, 2], pads=[1] * 4), 0.95, {"n": 112})  # fmt: skip
    yield Case("reduce mean 199", one("ReduceMean", In(("n", 512, 49)), axes=[2]), 0.95,
               {"n": 199})  # fmt: skip


def half() -> Iterator[Case]:
    wholes = {"resnet18": lambda: models.build("resnet18"), "bert": bert(128)}
    for name, build in wholes.items():
        yield Case(f"{name} float32", build)
        yield Case(f"{name} float16", lambda build=build: as_half(build()), 0.6, {}, "",
                   f"{name} float32")  # fmt: skip
    conv = dict(kernel_shape=[3, 3], pads=[1] * 4)
    singles = {
        "matmul 128x768x3072": ("MatMul", (In((128, 768)), Weights((768, 3072))), {}),
        "matmul 1x768x3072": ("MatMul", (In((1, 768)), Weights((768, 3072))), {}),
        "batch matmul 12x128": ("MatMul", (In((12, 128, 64)), In((12, 64, 128))), {}),
        "conv 56x56x64": ("Conv", (image(1, 64, 56, 56), Weights((64, 64, 3, 3))), conv),
        "depthwise 56x56": ("Conv", (image(1, 96, 56, 56), Weights((96, 1, 3, 3))),
                            {**conv, "group": 96}),
        "softmax 128x1000": ("Softmax", (In((128, 1000)),), {}),
        "layer norm 128x768": ("LayerNormalization",
                               (In((128, 768)), Weights((768,)), Weights((768,))), {}),
        "erf 1M": ("Erf", (In((1 << 20,)),), {}),
        "add 1M": ("Add", (In((1 << 20,)), In((1 << 20,))), {}),
        "max pool 112x112": ("MaxPool", (image(1, 64, 112, 112),),
                             dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)),
    }  # fmt: skip
    for name, (op, operands, attrs) in singles.items():
        build = one(op, *operands, **attrs)
        yield Case(f"{name} float32", build)
        yield Case(f"{name} float16", lambda build=build: as_half(build()), 0.6, {}, "",
                   f"{name} float32")  # fmt: skip

    def narrow(g: models.Graph, x: str, w: str) -> str:
        product = g.op("MatMul", g.op("Cast", x, to=BFLOAT), g.op("Cast", w, to=BFLOAT))
        return g.op("Cast", product, to=FLOAT)

    for m in (1, 128):
        yield Case(f"matmul {m}x768x3072 bfloat16",
                   traced("narrow", narrow, In((m, 768)), Weights((768, 3072))), 0.6, {}, "",
                   f"matmul {m}x768x3072 float32")  # fmt: skip


def int8() -> Iterator[Case]:
    for name in ("resnet50", "mobilenet_v2"):
        build = lambda name=name: models.build(name)  # noqa: E731
        yield Case(f"{name} float32", build)
        for layout in ("QDQ", "QOperator"):
            yield Case(f"{name} {layout}", quantised(build, layout), 0.9, {}, "",
                       f"{name} float32", 0.4)  # fmt: skip
    # Its ranges are taken anew in each layer, so that a step of one is many further on: ONNX Runtime
    # with and without its own optimiser differs from itself by 1.7e-2 here.
    yield Case("bert dynamic", quantised(bert(128), "dynamic"), tolerance=8e-2)
    yield Case("decoder 4 bits", quantised(small_decoder(128), "4 bits"))
    product = lambda m: one("MatMul", In((m, 768)), Weights((768, 3072)))  # noqa: E731
    for m in (1, 17, 128):
        yield Case(f"matmul {m}x768x3072 dynamic", quantised(product(m), "dynamic"))
        yield Case(f"matmul {m}x768x3072 4 bits", quantised(product(m), "4 bits"))
    whole = In((128, 768), UINT8, 0, 255)
    yield Case("MatMulInteger 128x768x768",
               one("MatMulInteger", whole, Weights((768, 768), INT8, -127, 127),
                   np.array(120, np.uint8), results=(INT32,)))  # fmt: skip
    # Sums that end within a word of four bytes.
    rows = In((137, 479), UINT8, 0, 255)
    for dtype, low, high in ((INT8, -127, 127), (UINT8, 0, 255)):
        yield Case(f"MatMulInteger 137x479x128 {'uint8' if dtype == UINT8 else 'int8'}",
                   one("MatMulInteger", rows, Weights((479, 128), dtype, low, high),
                       results=(INT32,)))  # fmt: skip
    conv = dict(kernel_shape=[3, 3], pads=[1] * 4)
    for name, size, c, groups in (("conv", 28, 128, 1), ("depthwise", 56, 96, 96)):
        single = one("Conv", image(1, c, size, size), Weights((c, c // groups, 3, 3)),
                     group=groups, **conv)  # fmt: skip
        for layout in ("QDQ", "QOperator"):
            yield Case(f"{name} {size}x{size}x{c} {layout}", quantised(single, layout))
    yield Case("ConvInteger 28x28x128",
               one("ConvInteger", In((1, 128, 28, 28), UINT8, 0, 255),
                   Weights((128, 128, 3, 3), INT8, -127, 127), results=(INT32,), **conv))  # fmt: skip
    channels = (Weights((33,), FLOAT, 0.01, 0.02), Weights((33,), UINT8, 100, 140))
    yield Case("quantise by channel 64x33x57", one("QuantizeLinear", In((64, 33, 57)), *channels,
                                                   axis=1, results=(UINT8,)))  # fmt: skip
    yield Case("dequantise by channel 64x33x57", one("DequantizeLinear", In((64, 33, 57), UINT8, 0, 256),
                                                     *channels, axis=1))  # fmt: skip
    byte = In((300, 301), UINT8, 0, 256)
    step = lambda s, z: (np.float32(s), np.uint8(z))  # noqa: E731
    for op in ("QLinearAdd", "QLinearMul"):
        yield Case(f"{op} 300x301", one(op, byte, *step(0.02, 3), byte, *step(0.03, 7),
                                        *step(0.04, 5), results=(UINT8,),
                                        domain="com.microsoft"))  # fmt: skip
    yield Case("QLinearConcat 300x301", one("QLinearConcat", *step(0.04, 5), byte, *step(0.02, 3), byte,
                                            *step(0.03, 7), axis=1, results=(UINT8,),
                                            domain="com.microsoft"))  # fmt: skip
    yield Case("quantise 1M", one("QuantizeLinear", In((1 << 20,)), np.float32([0.01])[0],
                                  np.uint8([128])[0], results=(UINT8,)))  # fmt: skip


def wide() -> Iterator[Case]:
    for n in (256, 512):
        for dtype, name in ((DOUBLE, "float64"), (INT32, "int32"), (INT64, "int64")):
            low, high = (-1, 1) if dtype == DOUBLE else (-100, 100)
            yield Case(f"matmul {n} {name}", one("MatMul", In((n, n), dtype, low, high),
                                                 Weights((n, n), dtype, low, high),
                                                 results=(dtype,)), 1.0)  # fmt: skip
    for m, name in ((1, "row"), (17, "rows")):
        yield Case(f"matmul {m}x1024x1024 float64 ({name})",
                   one("MatMul", In((m, 1024), DOUBLE), Weights((1024, 1024), DOUBLE),
                       results=(DOUBLE,)), 1.0)  # fmt: skip
    yield Case("batch matmul 8x128 float64",
               one("MatMul", In((8, 128, 64), DOUBLE), In((8, 64, 128), DOUBLE),
                   results=(DOUBLE,)), 1.0)  # fmt: skip
    yield Case("conv 28x28x64 float64",
               one("Conv", In((1, 64, 28, 28), DOUBLE), Weights((64, 64, 3, 3), DOUBLE),
                   kernel_shape=[3, 3], pads=[1] * 4, results=(DOUBLE,)), 1.0)  # fmt: skip
    for op, dtype in (("Sigmoid", DOUBLE), ("Exp", DOUBLE), ("Sqrt", DOUBLE)):
        yield Case(f"{op.lower()} 1M float64", one(op, In((1 << 20,), dtype, 0, 1),
                                                   results=(dtype,)), 1.0)  # fmt: skip
    yield Case("softmax 128x1000 float64", one("Softmax", In((128, 1000), DOUBLE),
                                               results=(DOUBLE,)), 1.0)  # fmt: skip
    for op in ("Add", "Mul", "Div"):
        wide_ints = In((1 << 20,), INT64, 1, 1000)
        yield Case(f"{op.lower()} 1M int64", one(op, wide_ints, wide_ints, results=(INT64,)), 1.0)
    yield Case("reduce sum 1000x1000 int32", one("ReduceSum", In((1000, 1000), INT32, 0, 9),
                                                 ints(1), results=(INT32,)), 1.0)  # fmt: skip


def conv() -> Iterator[Case]:
    for per_group in (8, 12, 24, 40, 48, 56):
        shape = Conv(28, 4 * per_group, 4 * per_group, 3, groups=4)
        yield Case(f"2d, {per_group} channels a group", shape.model)
        yield Case(f"1d, {per_group} channels a group",
                   one("Conv", image(1, 4 * per_group, 1024),
                       Weights((4 * per_group, per_group, 3)), pads=[1, 1], group=4))  # fmt: skip
    yield Case("32 groups", Conv(28, 256, 256, 3, groups=32).model)
    yield Case("dilation 12", Conv(28, 256, 64, 3, dilation=12).model, 0.95)
    yield Case("dilation 12, 65x65", Conv(65, 96, 21, 3, dilation=12).model, 0.95)
    weights = In((64, 64, 3, 3))
    yield Case("weights at run time", one("Conv", image(1, 64, 56, 56), weights,
                                          kernel_shape=[3, 3], pads=[1] * 4), 0.95)  # fmt: skip
    yield Case("weights at run time 1x1", one("Conv", image(1, 256, 28, 28),
                                              In((128, 256, 1, 1))), 0.95)  # fmt: skip
    for inputs, outputs in ((64, 1), (1, 64)):
        yield Case(f"1d, one tap, {inputs} to {outputs}", one("Conv", image(1, inputs, 4000),
                                                              In((outputs, inputs, 1))))  # fmt: skip
    yield Case("1d, one tap, 4 groups of 4", one("Conv", image(1, 16, 4096), Weights((16, 4, 1)),
                                                 np.zeros(16, np.float32), group=4))  # fmt: skip
    for size, c, k, stride in ((56, 96, 7, 1), (56, 72, 5, 2), (28, 120, 5, 1), (112, 32, 3, 1)):
        yield Case(f"depthwise {k}x{k} /{stride}", Conv(size, c, c, k, stride, groups=c).model,
                   0.95)  # fmt: skip
    yield Case("depthwise, twice the channels", Conv(28, 96, 192, 3, groups=96).model, 0.95)
    yield Case("3d 16x28x28", one("Conv", image(1, 16, 16, 28, 28), Weights((32, 16, 3, 3, 3)),
                                  pads=[1] * 6), 0.95)  # fmt: skip
    yield Case("7x7 of one channel", Conv(128, 1, 16, 7).model, 0.95)
    yield Case("1x1 of 1 pixel", Conv(1, 960, 240, 1).model, 0.95)
    yield Case("unequal padding", one("Conv", image(1, 64, 57, 57), Weights((64, 64, 2, 2)),
                                      pads=[0, 0, 1, 1]), 0.95)  # fmt: skip
    yield Case("3x3 padded by 20", one("Conv", image(1, 64, 8, 8), Weights((64, 64, 3, 3)),
                                       pads=[20] * 4), 0.95)  # fmt: skip
    yield Case("stride 3", Conv(85, 64, 64, 5, stride=3).model, 0.95)
    yield Case("31x31", one("Conv", image(1, 8, 56, 56), Weights((8, 8, 31, 31)), pads=[15] * 4))
    yield Case("1d, 1001 taps", one("Conv", image(1, 1, 16000), Weights((8, 1, 1001)),
                                    pads=[500] * 2))  # fmt: skip
    yield Case("transposed, stride 3", one("ConvTranspose", image(1, 32, 28, 28),
                                           Weights((32, 16, 2, 2)), strides=[3, 3]))  # fmt: skip
    up = dict(kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)
    yield Case("transposed, 64 to 1", one("ConvTranspose", image(1, 64, 28, 28),
                                          Weights((64, 1, 4, 4)), **up))  # fmt: skip
    yield Case("grouped transposed", one("ConvTranspose", image(1, 64, 28, 28),
                                         Weights((64, 16, 4, 4)), group=4, **up))  # fmt: skip
    yield Case("depthwise transposed", one("ConvTranspose", image(1, 64, 28, 28),
                                           Weights((64, 1, 4, 4)), group=64, **up))  # fmt: skip


def pool() -> Iterator[Case]:
    same = lambda k: dict(kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4)  # noqa: E731
    for k in (3, 5, 9, 13):
        yield Case(f"max {k}x{k} /1", one("MaxPool", image(1, 64, 40, 40), **same(k)), 0.8)
        yield Case(f"mean {k}x{k} /1", one("AveragePool", image(1, 64, 40, 40), **same(k)), 0.8)
    yield Case("max 5x5 /1, 112x112", one("MaxPool", image(1, 32, 112, 112), **same(5)), 0.8)
    yield Case("max 5x5 /2", one("MaxPool", image(1, 64, 56, 56), kernel_shape=[5, 5],
                                 strides=[2, 2], pads=[2] * 4))  # fmt: skip
    yield Case("max 2x2 /2, 224x224", one("MaxPool", image(1, 64, 224, 224), kernel_shape=[2, 2],
                                          strides=[2, 2]))  # fmt: skip
    yield Case("max 3x3 /2 ceil", one("MaxPool", image(1, 64, 113, 113), kernel_shape=[3, 3],
                                      strides=[2, 2], ceil_mode=1))  # fmt: skip
    yield Case("mean 7x7 of 7x7", one("AveragePool", image(1, 2048, 7, 7), kernel_shape=[7, 7]))
    yield Case("max 1d 9 /1", one("MaxPool", image(1, 64, 4096), kernel_shape=[9], strides=[1],
                                  pads=[4, 4]))  # fmt: skip
    yield Case("max 3d 3x3x3", one("MaxPool", image(1, 16, 16, 56, 56), kernel_shape=[3, 3, 3],
                                   strides=[2, 2, 2], pads=[1] * 6))  # fmt: skip
    yield Case("mean 5x3 /2 of 128x8", one("AveragePool", image(1, 43, 128, 8), kernel_shape=[5, 3],
                                           strides=[2, 2], pads=[1, 0, 1, 0]))  # fmt: skip
    yield Case("mean 4x9 /2x1 of 32x255", one("AveragePool", image(1, 16, 32, 255),
                                              kernel_shape=[4, 9], strides=[2, 1],
                                              pads=[2, 0, 2, 0]))  # fmt: skip
    yield Case("max 1d, 3 windows of 8326", one("MaxPool", image(2, 16, 8192), kernel_shape=[8326],
                                                strides=[2], pads=[69, 69]))  # fmt: skip
    # Windows beyond the image cost what lies inside.
    yield Case("mean 1280x1280 of 7x7", one("AveragePool", image(1, 1280, 7, 7),
                                            kernel_shape=[1280, 1280], ceil_mode=1,
                                            pads=[0, 0, 1273, 1273]))  # fmt: skip
    yield Case("max 1d 1001 /1", one("MaxPool", image(1, 16, 2000), kernel_shape=[1001],
                                     pads=[500, 500]))  # fmt: skip
    yield Case("max 8x1 /3 of width 1, float16", one("MaxPool", image(2, 3, 4880, 1, dtype=HALF),
                                                     kernel_shape=[8, 1], strides=[3, 2],
                                                     results=(HALF,)))  # fmt: skip
    yield Case("max 3x3 /2 and places", one("MaxPool", image(1, 64, 112, 112), kernel_shape=[3, 3],
                                            strides=[2, 2], pads=[1] * 4,
                                            results=(FLOAT, INT64)))  # fmt: skip
    yield Case("global max", one("GlobalMaxPool", image(1, 512, 28, 28)))
    yield Case("global mean", one("GlobalAveragePool", image(1, 512, 28, 28)))


def uniform_boxes(count: int) -> np.ndarray:
    """Squares of 10 spread over a square of 100."""
    centre = models.uniform("boxes", (1, count, 2), 0, 100)
    return np.concatenate([centre - 5, centre + 5], 2)


def order() -> Iterator[Case]:
    def sort(shape: tuple[int, ...], axis: int, dtype: int = FLOAT, **attrs) -> Build:
        spread = {} if dtype == FLOAT else {"low": -1e6, "high": 1e6}
        return one("TopK", In(shape, dtype, **spread), ints(shape[axis]), axis=axis,
                   results=(dtype, INT64), **attrs)  # fmt: skip

    def top(shape: tuple[int, ...], k: int, axis: int = -1, dtype: int = FLOAT, **attrs) -> Build:
        return one("TopK", In(shape, dtype), ints(k), axis=axis, results=(dtype, INT64), **attrs)

    million = 1 << 20
    yield Case("top 100 of 1M", top((million,), 100))
    yield Case("top 50 of 1000x1000", top((1000, 1000), 50))
    yield Case("top 1 of 1M", top((million,), 1))
    yield Case("top 5 of 1000", top((1000,), 5))
    yield Case("top 10 of 64x50000", top((64, 50000), 10))
    yield Case("top 2 of 511x512", top((511, 512), 2))
    yield Case("top 1000 of 1M", top((million,), 1000))
    yield Case("top 100 of 1000x300, first axis", top((1000, 300), 100, axis=0))
    yield Case("top 300 of 20000, least", top((20000,), 300, largest=0))
    yield Case("top 1 of 300x1000", top((300, 1000), 1))
    yield Case("top 1 of 1000x300, first axis", top((1000, 300), 1, axis=0))
    for boxes, classes in ((200, 1), (500, 1), (500, 80), (10000, 1)):
        corners = uniform_boxes(boxes)
        yield Case(f"non-max suppression of {boxes} boxes, {classes} classes",
                   one("NonMaxSuppression", corners, In((1, classes, boxes), FLOAT, 0.0, 1.0),
                       ints(boxes), np.float32([0.5]), np.float32([0.2]), results=(INT64,)))  # fmt: skip
    yield Case("top 10 of 49x87", top((49, 87), 10))
    yield Case("top 100 of 3x2953 float64", top((3, 2953), 100, dtype=DOUBLE))
    yield Case("top 5 of 128x9x16 float64, first axis", top((128, 9, 16), 5, axis=0, dtype=DOUBLE))
    yield Case("sort 1M", sort((million,), 0))
    yield Case("sort 1M int64", sort((million,), 0, INT64))
    yield Case("sort 1000x1000", sort((1000, 1000), 1))
    yield Case("sort 1000x1000, first axis", sort((1000, 1000), 0))
    yield Case("sort 100000x8", sort((100000, 8), 1))
    yield Case("sort 300", sort((300,), 0))
    words = In((20000,), TensorProto.STRING, 0, 5000, "words")
    yield Case("unique of 20000 words", one("Unique", words, sorted=1,
                                            results=(TensorProto.STRING, INT64, INT64, INT64)))  # fmt: skip
    for shape in ((1000, 1000), (64, 128, 256)):
        for axis in range(len(shape)):
            yield Case(f"cumsum {'x'.join(map(str, shape))}, axis {axis}",
                       one("CumSum", In(shape), np.array(axis, np.int64)))  # fmt: skip
    yield Case("cumsum 1000x1000, reverse", one("CumSum", In((1000, 1000)), np.array(0, np.int64),
                                                reverse=1))  # fmt: skip
    yield Case("cumsum 100x300x3, axis 1", one("CumSum", In((100, 300, 3)), np.array(1, np.int64)))
    yield Case("cumsum 1M", one("CumSum", In((million,)), np.array(0, np.int64)))
    yield Case("cumsum 1M int64, reverse",
               one("CumSum", In((million,), INT64, 0, 9), np.array(0, np.int64), reverse=1,
                   results=(INT64,)))  # fmt: skip
    for axis in (0, 1):
        yield Case(f"argmax 1000x1000, axis {axis}",
                   one("ArgMax", In((1000, 1000)), axis=axis, results=(INT64,)))  # fmt: skip
    yield Case("argmin 174757x3x1 int8, axis 0",
               one("ArgMin", In((174757, 3, 1), INT8, -128, 128), axis=0, results=(INT64,)))  # fmt: skip
    yield Case("argmax 1M", one("ArgMax", In((million,)), axis=0, results=(INT64,)))
    yield Case("nonzero 1000x1000", one("NonZero", In((1000, 1000), INT32, 0, 2),
                                        results=(INT64,)))  # fmt: skip
    yield Case("unique 100000", one("Unique", In((100000,), INT64, 0, 50000), results=(INT64,)))


def sampling() -> Iterator[Case]:
    for mode in ("bilinear", "nearest", "bicubic"):
        yield Case(f"grid sample {mode}, 64 channels",
                   one("GridSample", image(1, 64, 56, 56), In((1, 56, 56, 2)), mode=mode))  # fmt: skip
    yield Case("grid sample bilinear, 3 channels",
               one("GridSample", image(1, 3, 224, 224), In((1, 224, 224, 2)), mode="bilinear"))  # fmt: skip
    yield Case("grid sample border, 64 channels",
               one("GridSample", image(1, 64, 56, 56), In((1, 56, 56, 2)), mode="bilinear",
                   padding_mode="border", align_corners=1))  # fmt: skip
    grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), -1).reshape(100, 2)
    boxes = np.concatenate([grid * 4, grid * 4 + 14], 1).astype(np.float32)
    for mode, ratio in (("avg", 2), ("avg", 0), ("max", 2)):
        yield Case(f"roi align {mode}, ratio {ratio}",
                   one("RoiAlign", image(1, 256, 56, 56), boxes, np.zeros(100, np.int64),
                       output_height=7, output_width=7, sampling_ratio=ratio, mode=mode))  # fmt: skip
    items = np.zeros((100, 1), np.float32)
    yield Case("max roi pool", one("MaxRoiPool", image(1, 64, 56, 56), np.concatenate([items, boxes], 1),
                                   pooled_shape=[7, 5]))  # fmt: skip
    size = lambda *s: (None, None, np.array(s, np.int64))  # noqa: E731
    for mode in ("linear", "nearest", "cubic"):
        yield Case(f"resize {mode}, twice",
                   one("Resize", image(1, 64, 56, 56), *size(1, 64, 112, 112), mode=mode))  # fmt: skip
        yield Case(f"resize {mode}, odd",
                   one("Resize", image(1, 32, 75, 61), *size(1, 32, 128, 99), mode=mode))  # fmt: skip
    yield Case("resize linear, image down",
               one("Resize", image(1, 3, 480, 640), *size(1, 3, 224, 224), mode="linear"))  # fmt: skip
    yield Case("resize linear, align corners",
               one("Resize", image(1, 21, 65, 65), *size(1, 21, 513, 513), mode="linear",
                   coordinate_transformation_mode="align_corners"))  # fmt: skip
    yield Case("resize linear, antialias",
               one("Resize", image(1, 16, 112, 112), *size(1, 16, 45, 51), mode="linear",
                   antialias=1, opset=19))  # fmt: skip
    yield Case("resize linear, channels last",
               one("Resize", image(1, 56, 56, 32), *size(1, 112, 112, 32), mode="linear"))  # fmt: skip
    part = np.float32([0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9])
    yield Case("resize linear, cropped",
               one("Resize", image(1, 16, 75, 61), part, None, ints(1, 16, 99, 128), mode="linear",
                   coordinate_transformation_mode="tf_crop_and_resize"))  # fmt: skip
    yield Case("deformable convolution",
               one("DeformConv", image(1, 16, 28, 28), Weights((16, 16, 3, 3)), In((1, 18, 26, 26)),
                   opset=19))  # fmt: skip
    places = np.arange(8 * 28 * 28, dtype=np.int64).reshape(1, 8, 28, 28) * 4
    yield Case("max unpool", one("MaxUnpool", image(1, 8, 28, 28), places, kernel_shape=[2, 2],
                                 strides=[2, 2]))  # fmt: skip
    yield Case("columns to image", one("Col2Im", In((1, 16 * 9, 676)), ints(28, 28), ints(3, 3),
                                       opset=18))  # fmt: skip


def moves() -> Iterator[Case]:
    for block in (2, 4):
        yield Case(f"space to depth {block}", one("SpaceToDepth", image(1, 16, 224, 224),
                                                  blocksize=block))  # fmt: skip
        for mode in ("DCR", "CRD"):
            yield Case(f"depth to space {block} {mode}",
                       one("DepthToSpace", image(1, 256, 56, 56), blocksize=block, mode=mode))  # fmt: skip
    yield Case("depth to space 4 CRD uint8", one("DepthToSpace", In((1, 112, 8, 32), UINT8, 0, 256),
                                                 blocksize=4, mode="CRD", results=(UINT8,)))  # fmt: skip
    for shape, perm in (
        ((1024, 1024), (1, 0)),
        ((1000, 999), (1, 0)),
        ((64, 56, 56), (1, 2, 0)),
        ((1, 224, 224, 3), (0, 3, 1, 2)),
        ((1, 3, 224, 224), (0, 2, 3, 1)),
        ((8, 128, 12, 64), (0, 2, 1, 3)),
        ((8, 12, 128, 64), (0, 1, 3, 2)),
        ((32, 4, 56, 7, 8), (0, 3, 2, 4, 1)),
        ((37, 1, 14169, 1), (1, 2, 0, 3)),
    ):
        name = f"transpose {'x'.join(map(str, shape))} to {''.join(map(str, perm))}"
        yield Case(name, one("Transpose", In(shape), perm=list(perm)))
    table = Weights((30000, 256))
    yield Case("gather rows", one("Gather", table, In((4096,), INT64, 0, 30000)))
    yield Case(
        "gather columns", one("Gather", In((256, 3000)), In((1000,), INT64, 0, 3000), axis=1)
    )
    yield Case("gather elements", one("GatherElements", In((1000, 1000)),
                                      In((1000, 1000), INT64, 0, 1000), axis=1))  # fmt: skip
    yield Case("gather nd", one("GatherND", In((512, 512, 64)), In((4096, 2), INT64, 0, 512)))
    spread = np.random.default_rng(3).permutation(30000)[:4096].astype(np.int64)
    yield Case("scatter rows", one("ScatterND", In((30000, 256)), spread[:, None],
                                   In((4096, 256))))  # fmt: skip
    yield Case("scatter elements", one("ScatterElements", In((1000, 1000)),
                                       np.tile(np.arange(1000)[::-1], (500, 1)).astype(np.int64),
                                       In((500, 1000)), axis=1))  # fmt: skip
    yield Case("scatter add", one("ScatterElements", In((1000, 1000)),
                                  In((1000, 1000), INT64, 0, 1000), In((1000, 1000)), axis=0,
                                  reduction="add"))  # fmt: skip
    for dtype, shape, what in ((HALF, (262143,), "f16"), (FLOAT, (65536, 4), "rows of 4"),
                               (UINT8, (1021, 255), "uint8")):  # fmt: skip
        places = np.zeros((7, *[1] * (len(shape) - 1)), np.int64)
        yield Case(f"scatter 7 elements, {what}",
                   one("ScatterElements", In(shape, dtype, 0, 9), places + 3,
                       In(places.shape, dtype, 0, 9), axis=0, results=(dtype,)))  # fmt: skip
    short_rows = In((1, 255, 151, 5), UINT8, 0, 256)
    yield Case("concat 255x151x5 uint8, axis 0",
               one("Concat", short_rows, short_rows, axis=0, results=(UINT8,)))  # fmt: skip
    yield Case("concat last axis", one("Concat", In((4096, 64)), In((4096, 32)), In((4096, 3)),
                                       axis=1))  # fmt: skip
    yield Case("pad reflect", one("Pad", image(1, 32, 112, 112), ints(0, 0, 3, 3, 0, 0, 3, 3),
                                  mode="reflect"))  # fmt: skip
    yield Case("tile", one("Tile", In((64, 1, 64)), ints(1, 128, 2)))
    yield Case("tile 100x70 uint8", one("Tile", In((100, 70), UINT8, 0, 256), ints(3, 11),
                                        results=(UINT8,)))  # fmt: skip
    yield Case("tile 64x7", one("Tile", In((64, 7)), ints(3, 30)))
    yield Case("tile 962x17", one("Tile", In((962, 17)), ints(1, 30)))
    yield Case("tile 13x78x8x2 uint8", one("Tile", In((13, 78, 8, 2), UINT8, 0, 256), ints(1, 30, 7, 1),
                                           results=(UINT8,)))  # fmt: skip
    flags = TensorProto.BOOL
    yield Case("transpose 300x301 bool", one("Transpose", In((300, 301), flags, 0, 2), perm=[1, 0],
                                             results=(flags,)))  # fmt: skip
    yield Case("transpose 8x30x9x31 bool", one("Transpose", In((8, 30, 9, 31), flags, 0, 2),
                                               perm=[0, 2, 1, 3], results=(flags,)))  # fmt: skip
    yield Case("concat of 50", one("Concat", *[In((64, 20))] * 50, axis=1))
    yield Case("concat of 100", one("Concat", *[In((50, 31))] * 100, axis=1))
    yield Case("concat of 80, axis 0", one("Concat", *[In((5000,))] * 80, axis=0))
    yield Case("split into 40", one("Split", In((64, 1000)), ints(*[25] * 40), axis=1,
                                    results=(FLOAT,) * 40))  # fmt: skip
    yield Case("split 32x7x18x129 into 7", one("Split", In((32, 7, 18, 129)), ints(*[1] * 7), axis=1,
                                               results=(FLOAT,) * 7))  # fmt: skip
    yield Case("tile 2x3x569x2 by 1x30x1x2", one("Tile", In((2, 3, 569, 2)), ints(1, 30, 1, 2)))
    for mode in ("edge", "wrap"):
        yield Case(f"pad {mode}", one("Pad", In((3, 97, 53)), ints(0, 3, 3, 0, 3, 3), mode=mode,
                                      opset=19))  # fmt: skip
    for mode in ("reflect", "edge", "wrap"):
        yield Case(f"pad {mode}, rows of 13", one("Pad", In((21, 213, 9, 13)),
                                                  ints(0, 0, 2, 1, 0, 0, 2, 3), mode=mode,
                                                  opset=19))  # fmt: skip
    yield Case("slice with steps", one("Slice", In((1, 64, 112, 112)), ints(1, 0), ints(111, 112),
                                       ints(2, 3), ints(2, 2)))  # fmt: skip
    yield Case("expand", one("Expand", In((512, 1, 64)), ints(512, 32, 64)))
    yield Case("onehot", one("OneHot", In((4096,), INT64, 0, 1000), ints(1000),
                             np.float32([0, 1])))  # fmt: skip
    yield Case("trilu", one("Trilu", In((1024, 1024))))


def elementwise() -> Iterator[Case]:
    million = (1 << 20,)
    yield Case("softmax 50k", one("Softmax", In((1, 50000))))
    yield Case("softmax 64x50k", one("Softmax", In((64, 50000))))
    yield Case("softmax 1000x1000, axis 0", one("Softmax", In((1000, 1000)), axis=0))
    yield Case("softmax 20001x2, axis 0", one("Softmax", In((20001, 2)), axis=0))
    yield Case("log softmax 50k", one("LogSoftmax", In((1, 50000))))
    yield Case("log softmax 524288x1, axis 0", one("LogSoftmax", In((1 << 19, 1)), axis=0))
    yield Case("log softmax 52423x10", one("LogSoftmax", In((52423, 10))))
    yield Case("softmax 10000x10", one("Softmax", In((10000, 10))))
    base = In(million, FLOAT, 0.1, 3.0)
    yield Case("pow", one("Pow", base, In(million, FLOAT, -2.0, 2.0)))
    for exponent in (2.0, 3.0, 0.5, -1.0, 1.7):
        yield Case(f"pow {exponent}", one("Pow", base, np.float32(exponent)))
    for op in ("Erf", "Tanh", "Sigmoid", "Exp", "Log", "Sin", "Softplus", "HardSwish", "Elu",
               "Round", "Sqrt", "Atan", "Acos", "Cosh", "Asinh"):  # fmt: skip
        yield Case(f"{op.lower()} 1M", one(op, In(million, FLOAT, 0.05, 0.95)))
    pair = In(million, FLOAT, 0.5, 2.0)
    for op in ("Add", "Div", "Max"):
        yield Case(f"{op.lower()} 1M", one(op, pair, pair))
    yield Case("mod 1M", one("Mod", pair, In(million, FLOAT, 0.1, 0.7), fmod=1))
    yield Case("where 1M", one("Where", In(million, TensorProto.BOOL, 0, 2), pair, pair))
    yield Case("add of a row", one("Add", In((1000, 1000)), In((1000,))))
    yield Case("add of a column", one("Add", In((1000, 1000)), In((1000, 1))))
    for op in ("IsNaN", "Sign", "LeakyRelu"):
        result = TensorProto.BOOL if op == "IsNaN" else HALF
        yield Case(f"{op.lower()} 300x301 float16", one(op, In((300, 301), HALF), results=(result,),
                                                        opset=20 if op == "IsNaN" else 17))  # fmt: skip
    yield Case("max pool 56x56 float16", one("MaxPool", image(1, 16, 56, 56, dtype=HALF),
                                             kernel_shape=[3, 3], results=(HALF,)))  # fmt: skip
    yield Case("isinf 3x21845x8", one("IsInf", In((3, 21845, 8)), results=(TensorProto.BOOL,),
                                      opset=20))  # fmt: skip
    yield Case("clip of rows of 3", one("Clip", In((30000, 3)), np.float32(-0.5), np.float32(0.5)))

    def behind_fill(g: models.Graph, x: str) -> str:
        ones = g.op("Expand", g.scalar(1.0), g.ints(300, 700))
        axis = g.constant("axis", np.array(1, np.int64))
        return g.op("Add", x, g.op("Sin", g.op("CumSum", ones, axis)))

    yield Case("add of what hangs on a fill", traced("fill", behind_fill, In((300, 700))))
    for axis in (0, 1):
        yield Case(f"reduce sum 1000x1000, axis {axis}",
                   one("ReduceSum", In((1000, 1000)), ints(axis)))  # fmt: skip
    yield Case("reduce max 1M", one("ReduceMax", In(million)))
    yield Case("reduce mean 115x4x283x4, all axes", one("ReduceMean", In((115, 4, 283, 4))))
    yield Case("reduce l1 4095x31, all axes", one("ReduceL1", In((4095, 31))))
    yield Case("reduce l2 64x100x100, axes 0 2", one("ReduceL2", In((64, 100, 100)), axes=[0, 2]))
    norm = (Weights((64,)), Weights((64,)))
    yield Case("instance norm", one("InstanceNormalization", image(1, 64, 56, 56), *norm))
    yield Case("layer norm 4096x64", one("LayerNormalization", In((4096, 64)), *norm))
    yield Case("det 300x8x8", one("Det", In((300, 8, 8))))
    mel = [np.array(n) for n in (80, 400, 16000)]
    yield Case("mel weights of 80 by 201", one("MelWeightMatrix", *mel, np.float32(0),
                                               np.float32(8000)))  # fmt: skip
    yield Case("rotary embedding 1x8x128x64", one("RotaryEmbedding", In((1, 8, 128, 64)),
                                                  *[Weights((1, 128, 32))] * 2, opset=23))  # fmt: skip
    yield Case("lrn", one("LRN", image(1, 64, 56, 56), size=5))


def contraction() -> Iterator[Case]:
    for equation, *shapes in (
        ("ij,jk,kl->il", (128, 256), (256, 128), (128, 64)),
        ("bij,bjk,bkl->bil", (8, 64, 64), (8, 64, 64), (8, 64, 64)),
        ("ijk,jl,km->ilm", (32, 48, 64), (48, 40), (64, 56)),
        ("bhqd,bhkd->bhqk", (1, 12, 128, 64), (1, 12, 128, 64)),
        ("bqhd,bkhd->bhqk", (1, 128, 12, 64), (1, 128, 12, 64)),
        ("ij,ij->i", (1000, 1000), (1000, 1000)),
        ("i,j->ij", (1000,), (1000,)),
        ("ii->i", (1000, 1000)),
        ("bi,ij,bj->b", (64, 128), (128, 128), (64, 128)),
        ("abc,cd->abd", (16, 50, 64), (64, 96)),
    ):
        yield Case(f"einsum {equation}", one("Einsum", *map(In, shapes), equation=equation))
    for n in (1000, 1009, 1024, 4096):
        yield Case(f"dft {n}", one("DFT", In((4, n, 1)), axis=1))
    yield Case("dft 1024, inverse", one("DFT", In((4, 1024, 2)), axis=1, inverse=1))
    window = np.hanning(400).astype(np.float32)
    yield Case("stft 16000 by 160", one("STFT", In((1, 16000, 1)), np.array(160), window,
                                        np.array(400)))  # fmt: skip
    keys = In((1, 2, 2048, 64))
    yield Case("attention of 1 query, 8 heads on 2", one("Attention", In((1, 8, 1, 64)), keys, keys,
                                                         opset=23))  # fmt: skip
    for m, k, n in ((333, 777, 555), (5, 3000, 7), (1, 4096, 4096), (2000, 16, 2000)):
        yield Case(f"matmul {m}x{k}x{n}", one("MatMul", In((m, k)), Weights((k, n))))
    yield Case("matmul of inputs 512", one("MatMul", In((512, 512)), In((512, 512))))
    yield Case("gemm of inputs, both transposed", one("Gemm", In((300, 200)), In((250, 300)),
                                                     transA=1, transB=1))  # fmt: skip
    yield Case("matmul broadcast 16x32x32", one("MatMul", In((16, 32, 32)), In((32, 32))))


def layout() -> Iterator[Case]:
    yield Case("tied head 1", traced("tied", tied_head, In((1, 1, 384))))
    yield Case("tied head 16", traced("tied", tied_head, In((1, 16, 384))))
    yield Case("segmentation head", traced("segmentation", segmentation, image(1, 32, 64, 64)))

    def last(g: models.Graph, x: str) -> str:
        x = g.op("Transpose", x, perm=[0, 3, 1, 2])
        return g.op("Transpose", g.conv_bn(x, 32, 64, 3, pad=1), perm=[0, 2, 3, 1])

    yield Case("channels last outside", traced("last", last, image(1, 56, 56, 32)))

    def shuffle(g: models.Graph, x: str) -> str:
        x = g.conv_bn(x, 64, 64, 1)
        x = g.op("Transpose", g.op("Reshape", x, g.ints(1, 4, 16, 56, 56)), perm=[0, 2, 1, 3, 4])
        x = g.op("Reshape", x, g.ints(1, 64, 56, 56))
        return g.conv_bn(x, 64, 64, 3, pad=1, group=64)

    yield Case("channel shuffle", traced("shuffle", shuffle, image(1, 64, 56, 56)))

    def squeeze(g: models.Graph, x: str) -> str:
        x = g.conv_bn(x, 64, 96, 3, pad=1)
        y = g.conv(g.op("GlobalAveragePool", x), 96, 24, 1, bias=True)
        y = g.op("Sigmoid", g.conv(g.op("Relu", y), 24, 96, 1, bias=True))
        return g.conv_bn(g.op("Mul", x, y), 96, 64, 1)

    yield Case("squeeze and excitation", traced("squeeze", squeeze, image(1, 64, 56, 56)))

    def mixed(g: models.Graph, x: str) -> str:
        x = g.conv_bn(x, 64, 64, 3, pad=1)
        y = g.op("Transpose", g.op("Reshape", x, g.ints(1, 64, 784)), perm=[0, 2, 1])
        y = g.linear(g.layer_norm(y, 64, 1e-5), 64, 64)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.ints(1, 64, 28, 28))
        return g.conv_bn(g.op("Add", x, y), 64, 64, 3, pad=1)

    yield Case("convolution and tokens", traced("mixed", mixed, image(1, 64, 28, 28)))


def loops() -> Iterator[Case | CompileCase]:
    for steps in (10, 400, 1000):
        yield Case(f"scan {steps}", scan(steps))
    yield Case("loop 1000", loop(1000))
    for steps in (400, 1000):
        yield CompileCase(f"compile scan {steps}", scan(steps), 1.0, 0.3)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        yield Case(f"{op.lower()} 400 steps", recurrent(op, gates, 400))


def batch() -> Iterator[Case]:
    images = ("resnet18", "resnet50", "mobilenet_v2", "vgg16", "dqn", "dcgan", "unet")
    for n in (8, 32):
        for name in images:
            if n == 32 and name in ("vgg16", "resnet50", "unet"):
                continue  # seconds a run
            yield Case(f"{name} {n}", lambda name=name, n=n: models.batched(models.build(name), n),
                       0.85)  # fmt: skip
    yield Case("bert 8x128", bert(128, 8), 0.85)


def many_nodes(count: int) -> Build:
    """Layers of five nodes, each layer with weights of its own."""

    def build() -> onnx.ModelProto:
        g = models.Graph("many")
        x = g.input("x", (4, 16))
        for _ in range(count // 5):
            y = g.op("Relu", g.linear(x, 16, 16))
            x = g.op("Add", x, g.op("Mul", y, g.scalar(0.1)))
        g.output(x, "y", (4, 16))
        return g.model()

    return build


def distinct_nodes(count: int) -> Build:
    """Nodes of which no two are the same kernel: each has another shape."""

    def build() -> onnx.ModelProto:
        g = models.Graph("distinct")
        x = g.input("x", (1, 2 * count))
        sums = []
        for i in range(count // 2):
            y = g.op("Softmax", g.op("Slice", x, g.ints(i), g.ints(2 * i + 3), g.ints(1)), axis=1)
            sums.append(y)
        g.output(g.op("Concat", *sums, axis=1), "y", None)
        return g.model()

    return build


def fan_out(count: int) -> Build:
    """One value that `count` functions of all kinds read, and their sum."""

    def build() -> onnx.ModelProto:
        g = models.Graph("fan_out")
        x = total = g.input("x", (64, 128))
        kinds = ("Relu", "Tanh", "Exp", "Neg", "Sigmoid", "Softmax")
        for i in range(count):
            scaled = g.op("Mul", x, g.scalar(i / 7))
            total = g.op("Add", total, g.op(kinds[i % len(kinds)], scaled))
        g.output(total, "y", (64, 128))
        return g.model()

    return build


def dense_blocks(count: int) -> Build:
    """Convolutions each of which reads the results of all before it: no two have as many channels."""

    def build() -> onnx.ModelProto:
        g = models.Graph("dense_blocks")
        channels, more, size = 16, 12, 14
        x = g.input("x", (1, channels, size, size))
        for _ in range(count):
            y = g.op("Relu", g.conv_bn(x, channels, more, 3, pad=1))
            x = g.op("Concat", x, y, axis=1)
            channels += more
        g.output(x, "y", None)
        return g.model()

    return build


def strings() -> Iterator[Case]:
    text = TensorProto.STRING
    words = In((4096,), text, 0, 5000, "words")
    yield Case("unique 4096", one("Unique", words, results=(text, INT64, INT64, INT64)))
    yield Case("concat 4096", one("StringConcat", words, words, results=(text,), opset=20))
    yield Case("concat 4096 and one", one("StringConcat", words, np.array(["!"], object), results=(text,),
                                          opset=20))  # fmt: skip
    yield Case(
        "split 4096", one("StringSplit", words, results=(text, INT64), delimiter=" ", opset=20)
    )
    yield Case("labels of 4096", one("LabelEncoder", words, results=(INT64,), domain="ai.onnx.ml",
                                     keys_strings=[f"word {i}" for i in range(200)],
                                     values_int64s=list(range(200)), default_int64=-1))  # fmt: skip
    yield Case(
        "numbers as text", one("Cast", In((4096,), INT64, -1e6, 1e6), to=text, results=(text,))
    )
    yield Case("equal 4096", one("Equal", words, words, results=(TensorProto.BOOL,), opset=19))


def compile_time() -> Iterator[CompileCase]:
    yield CompileCase("1000 distinct nodes", distinct_nodes(1000), 3.0, 0.5)
    yield CompileCase("10000 nodes", many_nodes(10000), 7.0, 1.5)
    yield CompileCase("split into 1000", one("Split", In((64, 2000)), ints(*[2] * 1000), axis=1,
                                             results=(FLOAT,) * 1000), 1.5, 1.0)  # fmt: skip
    yield CompileCase("fan-out of 500", fan_out(500), 1.5, 1.0)
    yield CompileCase("60 dense blocks", dense_blocks(60), 2.5, 1.5)
    yield CompileCase("resnet50 int8", quantised(lambda: models.build("resnet50"), "QDQ"), 3.0, 1.0)
    yield CompileCase("gpt2-medium", decoder("gpt2", 24, 1024, 16, 50257, 128), 20.0, 3.0)
    for name, aim in (("resnet50", 5.0), ("bert_base", 6.0), ("mobilenet_v2", 5.0)):
        yield CompileCase(name, lambda name=name: models.build(name), aim, 1.0)


GROUPS: dict[str, Callable[[], Iterator[Case | CompileCase]]] = {
    "open": open_sizes,
    "half": half,
    "int8": int8,
    "wide": wide,
    "conv": conv,
    "pool": pool,
    "order": order,
    "sampling": sampling,
    "moves": moves,
    "elementwise": elementwise,
    "contraction": contraction,
    "layout": layout,
    "strings": strings,
    "loops": loops,
    "batch": batch,
    "compile": compile_time,
}


def cases() -> dict[str, Case | CompileCase]:
    """Every case by its full name, "group/name"."""
    out: dict[str, Case | CompileCase] = {}
    for group, members in GROUPS.items():
        for case in members():
            name = f"{group}/{case.name}"
            assert name not in out, name
            out[name] = case
    return out
