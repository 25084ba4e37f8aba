"""Settings of operators that are drawn, not chosen: what `cliffs.py --drawn` measures.

A *setting* is a model of one operator, or of a small graph, at one dtype, one set of sizes and one
set of attributes. `draw(seed, index)` gives the same setting for the same numbers, whatever else
is drawn: a board is a range of indices, and one line of it is measured again by its index.

Sizes are awkward on purpose: primes, 1, odd channels, few long rows and many short ones, windows
and borders beyond the image, reversed and negative steps. To add an operator: a function that takes
a `Dice` and the operator's name and returns a `Setting`, under `@drawn(class, names...)`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import models
import numpy as np
from cliff_models import (
    DOUBLE,
    FLOAT,
    HALF,
    INT8,
    INT32,
    INT64,
    UINT8,
    Build,
    In,
    Operand,
    Weights,
    ints,
    one,
    traced,
)
from onnx import TensorProto

BOOL, STRING = TensorProto.BOOL, TensorProto.STRING
MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"
SHORT = {FLOAT: "f32", HALF: "f16", DOUBLE: "f64", INT8: "i8", UINT8: "u8", INT32: "i32",
         INT64: "i64", BOOL: "bool", STRING: "string"}  # fmt: skip
# The ranges that values are drawn from: every value of a small dtype, and products that fit.
RANGES = {INT8: (-128, 128), UINT8: (0, 256), INT32: (-1000, 1000), INT64: (-1000, 1000),
          BOOL: (0, 2)}  # fmt: skip
BYTES = {HALF: 2, FLOAT: 4, DOUBLE: 8, INT8: 1, UINT8: 1, BOOL: 1, INT32: 4, INT64: 8}


@dataclass(frozen=True)
class Setting:
    """A drawn model: its operator, what was drawn, and the `traits` that tables group it by."""

    operator: str
    text: str
    build: Build
    traits: tuple[str, ...]
    tolerance: float = 1e-3


class Dice:
    """The random choices of one setting."""

    def __init__(self, seed: int, index: int) -> None:
        self.random = random.Random(f"{seed}/{index}")

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def one_of(self, choices: Sequence):
        return choices[self.random.randrange(len(choices))]

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def size(self, most: int) -> int:
        """A size of at most `most`: 1, a prime, a power of 2, a neighbour of one, or any."""
        if most <= 2 or self.chance(0.08):
            return 1
        kind = self.random.randrange(4)
        n = int(math.exp(self.random.uniform(math.log(2), math.log(most))))
        if kind == 0:
            while any(n % d == 0 for d in range(2, math.isqrt(n) + 1)):
                n -= 1
        elif kind == 1:
            n = 1 << (n.bit_length() - 1)
        elif kind == 2:
            n = (1 << (n.bit_length() - 1)) + self.one_of((-1, 1))
        return max(1, min(n, most))

    def shape(self, rank: int, elements: int = 1 << 19) -> tuple[int, ...]:
        """Sizes whose product is at most `elements` and, mostly, near it."""
        if self.chance(0.3):
            elements = int(math.exp(self.random.uniform(math.log(16), math.log(elements))))
        sizes, left = [], elements
        for i in range(rank - 1):
            sizes.append(self.size(max(1, round(left ** (1.5 / (rank - i))))))
            left = max(1, left // sizes[-1])
        sizes.append(
            max(1, left - self.one_of((0, 0, 1, 5))) if self.chance(0.6) else self.size(left)
        )
        self.random.shuffle(sizes)
        return tuple(sizes)

    def dtype(self, *choices: int) -> int:
        return self.one_of(choices)


def values(shape: Sequence[int | str], dtype: int = FLOAT, low=-1.0, high=1.0) -> In:
    """An input of `dtype`; the range of floats is given, integers take that of their dtype."""
    low, high = RANGES.get(dtype, (low, high))
    return In(tuple(shape), dtype, low, high)


def by(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes)) or "0-d"


Draw = Callable[[Dice, str], Setting]
DRAWS: list[tuple[str, str, Draw]] = []


def drawn(group: str, *operators: str) -> Callable[[Draw], Draw]:
    """Registers a function that draws settings of `operators`, which belong to `group`."""

    def register(draw: Draw) -> Draw:
        DRAWS.extend((group, operator, draw) for operator in operators)
        return draw

    return register


def setting(op: str, text: str, *operands: Operand, traits: Sequence[str] = (), dtype: int = FLOAT,
            tolerance: float | None = None, **more) -> Setting:  # fmt: skip
    """A setting of one node; its dtype is a trait and determines the tolerance of its results."""
    if tolerance is None:
        tolerance = {HALF: 1e-2, DOUBLE: 1e-8}.get(dtype, 1e-3)
    attributes = {k: v for k, v in more.items() if v is not None}
    text = f"{SHORT[dtype]} {text}".strip()
    return Setting(op, text, one(op, *operands, **attributes), (SHORT[dtype], *traits), tolerance)


# Element by element.

UNARY = ("Abs", "Neg", "Relu", "Sqrt", "Exp", "Log", "Erf", "Tanh", "Sigmoid", "Sin", "Cos", "Tan",
         "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Reciprocal", "Softplus",
         "Softsign", "Selu", "Mish", "HardSwish", "Elu", "LeakyRelu", "Celu", "HardSigmoid",
         "ThresholdedRelu", "Sign", "Floor", "Ceil", "Round", "IsNaN", "IsInf")  # fmt: skip


@drawn("elementwise", *UNARY)
def _unary(dice: Dice, op: str) -> Setting:
    whole = op in ("Abs", "Neg", "Sign")
    dtype = dice.dtype(*(FLOAT, FLOAT, HALF, DOUBLE), *((INT8, INT32, INT64) if whole else ()))
    dtype = FLOAT if op == "Celu" else dtype
    shape = dice.shape(dice.between(1, 3))
    low, high = (
        (1.1, 3.0) if op == "Acosh" else (0.1, 0.9) if op in ("Log", "Sqrt") else (-0.9, 0.9)
    )
    result = BOOL if op in ("IsNaN", "IsInf") else dtype
    opset = 18 if op == "Mish" else 20 if op in ("IsNaN", "IsInf") else models.OPSET
    return setting(op, by(shape), values(shape, dtype, low, high), dtype=dtype, results=(result,),
                   opset=opset)  # fmt: skip


def _broadcast(dice: Dice, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """The shape of another operand, and how it meets `shape`."""
    kind = dice.one_of(("same", "row", "column", "scalar", "middle"))
    other = list(shape)
    if kind == "row":
        other = [1] * (len(shape) - 1) + other[-1:]
    elif kind == "column":
        other[-1] = 1
    elif kind == "scalar":
        other = []
    elif kind == "middle":
        other[0] = other[-1] = 1
    return tuple(other), kind


@drawn("elementwise", "Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "PRelu", "Equal",
       "Less", "GreaterOrEqual", "And", "Or", "Xor", "Where")  # fmt: skip
def _binary(dice: Dice, op: str) -> Setting:
    shape = dice.shape(dice.between(1, 4))
    other, kind = _broadcast(dice, shape)
    dtype = dice.dtype(FLOAT, FLOAT, HALF, DOUBLE, INT32, INT64)
    if op in ("And", "Or", "Xor"):
        dtype = BOOL
    if op in ("Pow", "PRelu"):
        dtype = dice.dtype(FLOAT, DOUBLE)
    positive = op in ("Div", "Pow", "Mod")
    if positive and dtype in (INT32, INT64):
        pair = [In(shape, dtype, 1, 1000), In(other, dtype, 1, 9)]
    else:
        pair = [values(s, dtype, 0.5 if positive else -1.0, 2.0) for s in (shape, other)]
    if op == "Where":
        pair = [values(other, BOOL), values(shape, dtype), values(shape, dtype)]
    result = BOOL if op in ("Equal", "Less", "GreaterOrEqual") else dtype
    attributes = {"fmod": 1} if op == "Mod" and dtype not in (INT32, INT64) else {}
    return setting(op, f"{by(shape)} and {by(other)}", *pair, dtype=dtype, results=(result,),
                   traits=(f"broadcast {kind}",), **attributes)  # fmt: skip


@drawn("elementwise", "Cast")
def _cast(dice: Dice, op: str) -> Setting:
    a, b = dice.random.sample((FLOAT, HALF, DOUBLE, INT8, UINT8, INT32, INT64, BOOL), 2)
    shape = dice.shape(2)
    low, high = (0, 100) if b in (UINT8, INT8) else RANGES.get(a, (-9.0, 9.0))
    return setting(op, f"to {SHORT[b]} {by(shape)}", In(shape, a, low, high), dtype=a, results=(b,),
                   to=b)  # fmt: skip


# Reductions, orders, scans.


@drawn("reductions", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
       "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")  # fmt: skip
def _reduce(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 4)
    shape = dice.shape(rank)
    axes = sorted(dice.random.sample(range(rank), dice.between(1, rank)))
    dtype = dice.dtype(FLOAT, FLOAT, DOUBLE, INT32)
    if op in ("ReduceL2", "ReduceLogSumExp") and dtype == INT32:
        dtype = FLOAT
    if op == "ReduceProd":
        data = In(shape, dtype, *((1, 2) if dtype == INT32 else (0.999, 1.001)))
    else:
        data = In(shape, dtype, *((-9, 9) if dtype == INT32 else (-1.0, 1.0)))
    last = "last axis" if axes[-1] == rank - 1 else "leading axes"
    return setting(op, f"{by(shape)} axes {by(axes)}", data, ints(*axes), dtype=dtype, opset=18,
                   keepdims=dice.between(0, 1), results=(dtype,), traits=(f"over {last}",))  # fmt: skip


@drawn("reductions", "ArgMax", "ArgMin")
def _arg(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 3)
    shape, axis = dice.shape(rank), dice.between(0, rank - 1)
    dtype = dice.dtype(FLOAT, FLOAT, DOUBLE, INT8, UINT8, INT32)
    return setting(op, f"{by(shape)} axis {axis}", values(shape, dtype), axis=axis, dtype=dtype,
                   results=(INT64,), select_last_index=int(dice.chance(0.2)))  # fmt: skip


@drawn("order", "TopK")
def _top(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 3)
    shape, axis = dice.shape(rank, 1 << 18), dice.between(0, rank - 1)
    k = min(shape[axis], dice.one_of((1, 1, 2, 5, 10, 100, shape[axis])))
    dtype = dice.dtype(FLOAT, FLOAT, DOUBLE, INT64)
    largest = dice.between(0, 1)

    def top(g: models.Graph, x: str, k: str) -> str:
        # ONNX leaves open which of equals comes first: values alone are compared.
        return g.op(op, x, k, axis=axis, largest=largest, outputs=2)[0]

    build = traced(op, top, values(shape, dtype), ints(k), result=dtype)
    traits = (SHORT[dtype], "k 1" if k == 1 else "k > 1")
    return Setting(op, f"{SHORT[dtype]} {by(shape)} k {k} axis {axis}", build, traits)


@drawn("scans", "CumSum")
def _cumsum(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 3)
    shape, axis = dice.shape(rank), dice.between(0, rank - 1)
    dtype = dice.dtype(FLOAT, FLOAT, DOUBLE, INT32, INT64)
    reverse = dice.between(0, 1)
    where = "last axis" if axis == rank - 1 else "leading axis"
    return setting(op, f"{by(shape)} axis {axis}" + " reversed" * reverse, values(shape, dtype),
                   np.array(axis, np.int64), dtype=dtype, reverse=reverse,
                   exclusive=dice.between(0, 1), results=(dtype,),
                   traits=(where, "reversed" if reverse else "forward"))  # fmt: skip


# Normalisations.


@drawn("normalisations", "Softmax", "LogSoftmax")
def _softmax(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 4)
    shape, axis = dice.shape(rank), dice.between(0, rank - 1)
    dtype = dice.dtype(FLOAT, FLOAT, HALF, DOUBLE)
    return setting(op, f"{by(shape)} axis {axis}", values(shape, dtype), dtype=dtype, axis=axis,
                   results=(dtype,),
                   traits=("last axis" if axis == rank - 1 else "leading axis",))  # fmt: skip


@drawn("normalisations", "LayerNormalization")
def _layer_norm(dice: Dice, op: str) -> Setting:
    shape = dice.shape(dice.between(2, 3))
    row = shape[-1:]
    return setting(op, by(shape), values(shape), Weights(row), Weights(row))


@drawn("normalisations", "InstanceNormalization", "BatchNormalization", "LRN")
def _channel_norm(dice: Dice, op: str) -> Setting:
    shape = (dice.between(1, 2), dice.size(64), *dice.shape(2, 1 << 13))
    row = Weights((shape[1],), FLOAT, 0.5, 2.0)
    if op == "LRN":
        return setting(op, by(shape), values(shape), size=dice.one_of((1, 3, 5, 9)))
    rows = [row] * (4 if op == "BatchNormalization" else 2)
    return setting(op, by(shape), values(shape), *rows)


# Windows.


def _image(dice: Dice, rank: int, channels: int = 64, elements: int = 1 << 17) -> tuple[int, ...]:
    c = dice.size(channels)
    return (dice.one_of((1, 1, 1, 2)), c, *dice.shape(rank, max(4, elements // c)))


@drawn("windows", "MaxPool", "AveragePool", "LpPool")
def _pool(dice: Dice, op: str) -> Setting:
    rank = dice.one_of((1, 2, 2, 2, 3))
    shape = _image(dice, rank)
    beyond = dice.chance(0.3)
    kernel, strides, pads, dilations = [], [], [], []
    for n in shape[2:]:
        kernel.append(n + dice.between(1, 300) if beyond else dice.between(1, min(n, 9)))
        need = max(0, kernel[-1] - n)
        # A pad is less than the window; together they leave one window at least.
        pads.append(min(kernel[-1] - 1, (need + 1) // 2 + dice.between(0, min(2, kernel[-1] - 1))))
        strides.append(dice.between(1, 3))
        dilations.append(1)
    if op == "MaxPool" and not beyond and dice.chance(0.2):
        dilations = [2 if 2 * (k - 1) < n else 1 for k, n in zip(kernel, shape[2:], strict=True)]
    dtype = dice.dtype(FLOAT, FLOAT, FLOAT, HALF, INT8 if op == "MaxPool" else FLOAT)
    indices = op == "MaxPool" and dtype != HALF and dice.chance(0.3)
    more = {}
    if op == "AveragePool":
        more = {"count_include_pad": dice.between(0, 1)}
    if max(dilations) > 1:
        more["dilations"] = dilations
    text = f"{by(shape)} window {by(kernel)} pads {by(pads)} strides {by(strides)}"
    text += " dilated" * (max(dilations) > 1) + " indices" * indices
    return setting(op, text, values(shape, dtype), dtype=dtype, kernel_shape=kernel, strides=strides,
                   pads=pads * 2, results=(dtype, INT64) if indices else (dtype,),
                   traits=("window beyond the image" if beyond else "window inside",
                           *(("indices",) if indices else ())), **more)  # fmt: skip


@drawn("windows", "GlobalAveragePool", "GlobalMaxPool")
def _global(dice: Dice, op: str) -> Setting:
    shape = _image(dice, dice.between(1, 3), 512)
    return setting(op, by(shape), values(shape))


@drawn("convolutions", "Conv")
def _conv(dice: Dice, op: str) -> Setting:
    rank = dice.one_of((1, 2, 2, 2, 3))
    group = dice.one_of((1, 1, 1, 1, 2, 3, 0))
    inner, outer = dice.one_of((1, 3, 16, 24, 37, 64)), dice.one_of((1, 2, 16, 31, 64, 80))
    if group == 0:
        group = inner = outer = dice.one_of((3, 32, 37, 64))
    inner, outer = -(-inner // group) * group, -(-outer // group) * group
    spatial = (
        [dice.one_of((7, 13, 28, 31, 56))] * rank if rank == 2 else list(dice.shape(rank, 4096))
    )
    few = dice.chance(0.15) and inner * outer <= 64
    kernel = [dice.one_of((11, 31) if few else (1, 1, 3, 3, 3, 5)) for _ in spatial]
    wide = dice.chance(0.1)
    pads = [20 if wide else k // 2 if dice.chance(0.7) or k > n else 0
            for k, n in zip(kernel, spatial, strict=True)]  # fmt: skip
    strides = [dice.one_of((1, 1, 1, 2, 3))] * rank
    dtype = dice.dtype(FLOAT, FLOAT, FLOAT, FLOAT, HALF, DOUBLE)
    shape = (dice.one_of((1, 1, 2)), inner, *spatial)
    weights = (outer, inner // group, *kernel)
    run_time = dice.chance(0.2)
    w = values(weights, dtype) if run_time else Weights(weights, dtype)
    text = (f"{by(shape)} by {by(weights)} group {group} strides {by(strides)} pads {by(pads)}"
            + " weights of the run" * run_time)  # fmt: skip
    traits = ["one or few channels" if min(inner, outer) < 8 else "channels"]
    traits += ["wide padding"] * wide + ["weights of the run"] * run_time + ["groups"] * (group > 1)
    return setting(op, text, values(shape, dtype), w, dtype=dtype, group=group, strides=strides,
                   pads=pads * 2, results=(dtype,), traits=traits)  # fmt: skip


@drawn("convolutions", "ConvTranspose")
def _conv_transpose(dice: Dice, op: str) -> Setting:
    rank = dice.one_of((1, 2, 2))
    group = dice.one_of((1, 1, 1, 2))
    inner = group * dice.one_of((1, 8, 32, 37))
    outer = dice.one_of((1, 8, 32, 16))
    spatial = [dice.one_of((5, 7, 14, 28))] * rank
    kernel = [dice.one_of((2, 3, 4, 5))] * rank
    strides = [dice.one_of((1, 2, 2, 3))] * rank
    shape, weights = (1, inner, *spatial), (inner, outer, *kernel)
    return setting(op, f"{by(shape)} by {by(weights)} group {group} strides {by(strides)}",
                   values(shape), Weights(weights), group=group, strides=strides,
                   traits=(f"stride {strides[0]}",))  # fmt: skip


# Contractions.


@drawn("contractions", "MatMul")
def _matmul(dice: Dice, op: str) -> Setting:
    m, k, n = (dice.size(600) for _ in range(3))
    batch = dice.one_of(((), (), (3,), (2, 5)))
    dtype = dice.dtype(FLOAT, FLOAT, FLOAT, HALF, DOUBLE)
    weights = dice.chance(0.5)
    right = Weights((k, n), dtype) if weights else values((*batch, k, n), dtype)
    return setting(op, f"{by((*batch, m, k, n))}" + " weights" * weights,
                   values((*batch, m, k), dtype), right, dtype=dtype, results=(dtype,))  # fmt: skip


@drawn("contractions", "Gemm")
def _gemm(dice: Dice, op: str) -> Setting:
    m, k, n = (dice.size(500) for _ in range(3))
    a, b = dice.between(0, 1), dice.between(0, 1)
    return setting(op, f"{by((m, k, n))} transposed {a}{b}", values((k, m) if a else (m, k)),
                   values((n, k) if b else (k, n)), values((n,)), transA=a, transB=b)  # fmt: skip


@drawn("contractions", "Einsum")
def _einsum(dice: Dice, op: str) -> Setting:
    equation = dice.one_of(("ij,jk,kl->il", "bij,bjk->bik", "bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk",
                            "ij,ij->i", "i,j->ij", "bi,ij,bj->b", "abc,cd->abd", "ijk->kij",
                            "abcd,aecd->be"))  # fmt: skip
    sizes = {letter: dice.size(48) for letter in sorted(set(equation) - set(",->"))}
    shapes = [[sizes[c] for c in part] for part in equation.split("->")[0].split(",")]
    return setting(op, f"{equation} {' '.join(map(by, shapes))}", *map(values, shapes),
                   equation=equation)  # fmt: skip


# Eight bits.


@drawn("8 bits", "QuantizeLinear", "DequantizeLinear")
def _quantise(dice: Dice, op: str) -> Setting:
    shape = dice.shape(dice.between(2, 4))
    dtype = dice.dtype(UINT8, INT8)
    axis = dice.between(0, len(shape) - 1)
    each = dice.chance(0.6)
    row = (shape[axis],) if each else ()
    scale = Weights(row, FLOAT, 0.01, 0.02)
    zero = Weights(row, dtype, *((100, 140) if dtype == UINT8 else (-9, 9)))
    from_float = op == "QuantizeLinear"
    data = values(shape) if from_float else values(shape, dtype)
    where = "each channel" if each else "one scale"
    # A value half way between two steps may go to either: one of 255.
    return setting(op, f"{by(shape)} {where} axis {axis}", data, scale, zero, dtype=dtype, axis=axis,
                   results=(dtype if from_float else FLOAT,), traits=(where,), tolerance=2e-2)  # fmt: skip


@drawn("8 bits", "QLinearAdd", "QLinearMul")
def _quantised_binary(dice: Dice, op: str) -> Setting:
    shape = dice.shape(dice.between(1, 4))
    other, kind = _broadcast(dice, shape)
    dtype = dice.dtype(UINT8, INT8)
    np_dtype = np.uint8 if dtype == UINT8 else np.int8
    scales = lambda s, z: (np.float32(s), np.array(z, np_dtype))  # noqa: E731
    return setting(op, f"{by(shape)} and {by(other)}", values(shape, dtype), *scales(0.02, 3),
                   values(other, dtype), *scales(0.03, 7), *scales(0.04, 5), dtype=dtype,
                   results=(dtype,), domain=MICROSOFT, traits=(f"broadcast {kind}",),
                   tolerance=2e-2)  # fmt: skip


@drawn("8 bits", "QLinearConcat")
def _quantised_concat(dice: Dice, op: str) -> Setting:
    rank = dice.between(2, 4)
    shape, axis = dice.shape(rank, 1 << 17), dice.between(0, rank - 1)
    operands: list[Operand] = [np.float32(0.02), np.uint8(3)]
    for i in range(dice.between(2, 4)):
        part = tuple(dice.size(n) if a == axis else n for a, n in enumerate(shape))
        operands += [values(part, UINT8), np.float32(0.01 * (i + 1)), np.uint8(i)]
    return setting(op, f"{by(shape)} axis {axis} of {len(operands) // 3}", *operands, dtype=UINT8,
                   axis=axis, results=(UINT8,), domain=MICROSOFT, tolerance=2e-2)  # fmt: skip


@drawn("8 bits", "QLinearMatMul", "MatMulInteger")
def _quantised_matmul(dice: Dice, op: str) -> Setting:
    m, k, n = dice.size(300), dice.size(700), dice.size(300)
    # Two products fit 16 bits, at which ONNX Runtime saturates their sum on some processors.
    a, b = values((m, k), UINT8), Weights((k, n), INT8, -63, 63)
    text = by((m, k, n))
    traits = ("K % 4 = 0" if k % 4 == 0 else "K % 4 != 0",)
    if op == "MatMulInteger":
        return setting(op, text, a, b, dtype=UINT8, results=(INT32,), traits=traits)
    return setting(op, text, a, np.float32(0.02), np.uint8(128), b, np.float32(0.01), np.int8(0),
                   np.float32(0.1), np.uint8(128), dtype=UINT8, results=(UINT8,), traits=traits,
                   tolerance=2e-2)  # fmt: skip


@drawn("8 bits", "DynamicQuantizeLinear")
def _dynamic_quantise(dice: Dice, op: str) -> Setting:
    shape = dice.shape(2)
    return setting(op, by(shape), values(shape), results=(UINT8, FLOAT, UINT8), tolerance=2e-2)


# Elements that move.

ANY = (FLOAT, FLOAT, HALF, UINT8, BOOL, INT64)


@drawn("moves", "Transpose")
def _transpose(dice: Dice, op: str) -> Setting:
    rank = dice.between(2, 5)
    shape, dtype = dice.shape(rank), dice.dtype(*ANY)
    perm = dice.random.sample(range(rank), rank)
    return setting(op, f"{by(shape)} to {''.join(map(str, perm))}", values(shape, dtype),
                   dtype=dtype, perm=perm, results=(dtype,))  # fmt: skip


@drawn("moves", "Concat")
def _concat(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 4)
    axis, dtype = dice.between(0, rank - 1), dice.dtype(*ANY)
    count = dice.one_of((2, 2, 3, 7, 50))
    shape = dice.shape(rank, max(16, (1 << 19) // count))
    parts = [tuple(dice.size(n) if a == axis else n for a, n in enumerate(shape))
             for _ in range(count)]  # fmt: skip
    return setting(op, f"{by(shape)} axis {axis} of {count}", *(values(p, dtype) for p in parts),
                   dtype=dtype, axis=axis, results=(dtype,), traits=(f"of {count}",))  # fmt: skip


@drawn("moves", "Split")
def _split(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 4)
    shape, axis, dtype = list(dice.shape(rank)), dice.between(0, rank - 1), dice.dtype(*ANY)
    count = dice.one_of((2, 3, 7, 40))
    shape[axis] = max(shape[axis], count)
    base = shape[axis] // count
    sizes = [base] * (count - 1) + [shape[axis] - base * (count - 1)]
    return setting(op, f"{by(shape)} axis {axis} into {count}", values(shape, dtype), ints(*sizes),
                   dtype=dtype, axis=axis, results=(dtype,) * count, traits=(f"into {count}",))  # fmt: skip


@drawn("moves", "Slice")
def _slice(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 4)
    shape, dtype = dice.shape(rank, 1 << 20), dice.dtype(*ANY)
    steps = [dice.one_of((1, 1, 2, 3, -1, -2)) for _ in shape]
    bounds = [(n - 1 - n // 7, -n - 1) if s < 0 else (n // 7, n)
              for n, s in zip(shape, steps, strict=True)]  # fmt: skip
    starts, ends = zip(*bounds, strict=True)
    return setting(op, f"{by(shape)} steps {steps}", values(shape, dtype), ints(*starts),
                   ints(*ends), ints(*range(rank)), ints(*steps), dtype=dtype, results=(dtype,),
                   traits=("reversed" if min(steps) < 0 else "forward",))  # fmt: skip


@drawn("moves", "Pad")
def _pad(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 4)
    shape, dtype = dice.shape(rank), dice.dtype(FLOAT, FLOAT, DOUBLE, UINT8, INT64)
    mode = dice.one_of(("constant", "edge", "reflect", "wrap"))
    most = lambda n: n - 1 if mode == "reflect" else n  # noqa: E731
    pads = [min(dice.between(0, 5), most(n)) for n in (*shape, *shape)]
    return setting(op, f"{by(shape)} {mode} {pads}", values(shape, dtype), ints(*pads), dtype=dtype,
                   mode=mode, results=(dtype,), opset=19, traits=(mode,))  # fmt: skip


@drawn("moves", "Tile", "Expand")
def _repeat(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 4)
    shape, dtype = list(dice.shape(rank, 1 << 14)), dice.dtype(*ANY)
    repeats = [dice.one_of((1, 1, 2, 7, 30)) for _ in shape]
    if op == "Expand":
        shape = [1 if r > 1 else n for n, r in zip(shape, repeats, strict=True)]
        repeats = [r * 5 if r > 1 else n for n, r in zip(shape, repeats, strict=True)]
    return setting(op, f"{by(shape)} by {by(repeats)}", values(shape, dtype), ints(*repeats),
                   dtype=dtype, results=(dtype,))  # fmt: skip


@drawn("moves", "DepthToSpace", "SpaceToDepth")
def _blocks(dice: Dice, op: str) -> Setting:
    block = dice.between(2, 4)
    c, h, w = dice.size(16), dice.size(64), dice.size(64)
    dtype = dice.dtype(FLOAT, FLOAT, HALF, UINT8) if op == "DepthToSpace" else FLOAT
    if op == "DepthToSpace":
        shape, mode = (1, c * block * block, h, w), dice.one_of(("DCR", "CRD"))
    else:
        shape, mode = (1, c, h * block, w * block), None
    return setting(op, f"{by(shape)} by {block} {mode or ''}", values(shape, dtype), dtype=dtype,
                   blocksize=block, mode=mode, results=(dtype,))  # fmt: skip


@drawn("moves", "Gather", "GatherElements", "ScatterElements")
def _gather(dice: Dice, op: str) -> Setting:
    rank = dice.between(1, 3)
    shape, axis, dtype = dice.shape(rank, 1 << 18), dice.between(0, rank - 1), dice.dtype(*ANY)
    n = shape[axis]
    if op == "Gather":
        where = In(dice.shape(dice.between(1, 2), 1 << 10), INT64, 0, n)
        return setting(op, f"{by(shape)} axis {axis} at {by(where.shape)}", values(shape, dtype),
                       where, dtype=dtype, axis=axis, results=(dtype,))  # fmt: skip
    size = tuple(dice.size(n) if a == axis else m for a, m in enumerate(shape))
    text = f"{by(shape)} axis {axis} at {by(size)}"
    if op == "GatherElements":
        return setting(op, text, values(shape, dtype), In(size, INT64, 0, n), dtype=dtype,
                       axis=axis, results=(dtype,))  # fmt: skip
    # Each place is written once: what is written twice has no order.
    places = np.arange(size[axis]).reshape([-1 if a == axis else 1 for a in range(rank)])
    return setting(op, text, values(shape, dtype), np.broadcast_to(places, size).astype(np.int64),
                   values(size, dtype), dtype=dtype, axis=axis, results=(dtype,))  # fmt: skip


@drawn("moves", "OneHot", "Trilu", "NonZero", "Compress", "ReverseSequence")
def _other_moves(dice: Dice, op: str) -> Setting:
    if op == "OneHot":
        n, depth = dice.size(4000), dice.size(300)
        return setting(op, f"{n} of {depth}", In((n,), INT64, 0, depth), ints(depth),
                       np.float32([0, 1]), axis=dice.one_of((-1, 0)))  # fmt: skip
    rank = dice.between(2, 3)
    shape, dtype = dice.shape(rank, 1 << 18), dice.dtype(FLOAT, FLOAT, UINT8, INT64)
    text = by(shape)
    if op == "Trilu":
        return setting(op, text, values(shape, dtype), np.array(dice.between(-3, 3)), dtype=dtype,
                       upper=dice.between(0, 1), results=(dtype,))  # fmt: skip
    if op == "NonZero":
        return setting(op, text, In(shape, INT32, 0, 2), dtype=INT32, results=(INT64,))
    if op == "Compress":
        axis = dice.between(0, rank - 1)
        return setting(op, f"{text} axis {axis}", values(shape, dtype), values((shape[axis],), BOOL),
                       dtype=dtype, axis=axis, results=(dtype,))  # fmt: skip
    lengths = In((shape[1],), INT64, 1, shape[0] + 1)
    return setting(op, text, values(shape, FLOAT), lengths, time_axis=0, batch_axis=1)


# Sampling.


@drawn("sampling", "Resize")
def _resize(dice: Dice, op: str) -> Setting:
    n, c, h, w = 1, dice.size(32), dice.size(96), dice.size(96)
    out = (n, c, dice.size(160), dice.size(160))
    mode = dice.one_of(("linear", "nearest", "cubic"))
    smooth = mode != "nearest" and dice.chance(0.3)
    dtype = dice.dtype(FLOAT, FLOAT, UINT8 if mode != "cubic" and not smooth else FLOAT)
    text = f"{mode} {by((n, c, h, w))} to {by(out)}" + " antialias" * smooth
    traits = (mode, *(("antialias",) if smooth else ()))
    return setting(op, text, values((n, c, h, w), dtype), None, None, ints(*out), dtype=dtype,
                   mode=mode, antialias=int(smooth), results=(dtype,), opset=19, tolerance=2e-2,
                   coordinate_transformation_mode=dice.one_of(
                       ("half_pixel", "asymmetric", "align_corners")), traits=traits)  # fmt: skip


@drawn("sampling", "GridSample", "RoiAlign", "MaxRoiPool")
def _sampling(dice: Dice, op: str) -> Setting:
    shape = (1, dice.size(64), dice.between(5, 56), dice.between(5, 56))
    if op == "GridSample":
        grid = values((1, dice.size(56), dice.size(56), 2))
        mode = dice.one_of(("bilinear", "nearest", "bicubic"))
        return setting(op, f"{mode} {by(shape)} at {by(grid.shape)}", values(shape), grid, mode=mode,
                       padding_mode=dice.one_of(("zeros", "border", "reflection")))  # fmt: skip
    count = dice.size(50)
    corners = np.random.default_rng(dice.between(0, 999)).uniform(0, 20, (count, 2, 2))
    corners = np.sort(corners, 1).reshape(count, 4).astype(np.float32)
    text = f"{by(shape)} boxes {count}"
    if op == "MaxRoiPool":
        boxes = np.concatenate([np.zeros((count, 1), np.float32), corners], 1)
        return setting(op, text, values(shape), boxes, pooled_shape=[7, 5])
    # Of a maximum ONNX Runtime says itself that what it computes is not what ONNX means.
    return setting(op, text, values(shape), corners, np.zeros(count, np.int64), output_height=7,
                   output_width=5, sampling_ratio=dice.between(0, 3))  # fmt: skip


@drawn("detection", "NonMaxSuppression")
def _suppression(dice: Dice, op: str) -> Setting:
    boxes, classes = dice.one_of((1, 37, 200, 500, 2000)), dice.one_of((1, 1, 3, 20))
    centre = np.random.default_rng(dice.between(0, 999)).uniform(0, 100, (1, boxes, 2))
    corners = np.concatenate([centre - 5, centre + 5], 2).astype(np.float32)
    keep = dice.one_of((5, 100, boxes))
    return setting(op, f"{boxes} boxes {classes} classes keep {keep}", corners,
                   values((1, classes, boxes), FLOAT, 0.0, 1.0), ints(keep), np.float32([0.5]),
                   np.float32([dice.one_of((0.0, 0.5))]), results=(INT64,))  # fmt: skip


# Recurrences, transforms, strings.


@drawn("recurrences", "LSTM", "GRU", "RNN")
def _recurrent(dice: Dice, op: str) -> Setting:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps, batch = dice.size(60), dice.one_of((1, 1, 3))
    size, hidden = dice.one_of((16, 37, 128)), dice.one_of((16, 50, 128))
    both = dice.chance(0.3)
    d = 2 if both else 1
    w, r = (d, gates * hidden, size), (d, gates * hidden, hidden)
    small = lambda s: Weights(s, FLOAT, -0.1, 0.1)  # noqa: E731
    return setting(op, f"{steps} steps batch {batch} {size} to {hidden}" + " both ways" * both,
                   values((steps, batch, size)), small(w), small(r), small((d, 2 * gates * hidden)),
                   hidden_size=hidden, direction="bidirectional" if both else "forward")  # fmt: skip


@drawn("Fourier", "DFT")
def _dft(dice: Dice, op: str) -> Setting:
    rows, n = dice.size(16), dice.one_of((7, 64, 100, 101, 256, 360, 509, 1000, 1024, 2048))
    real = dice.chance(0.5)
    inverse = 0 if real else dice.between(0, 1)
    shape = (rows, n, 1 if real else 2)
    return setting(op, by(shape) + " inverse" * inverse, values(shape), axis=1, inverse=inverse,
                   onesided=dice.between(0, 1) if real else 0,
                   traits=("real" if real else "complex",))  # fmt: skip


@drawn("strings", "Unique", "StringConcat", "StringSplit", "LabelEncoder")
def _strings(dice: Dice, op: str) -> Setting:
    n = dice.size(5000)
    words = In((n,), STRING, 0, dice.one_of((3, 100, 5000)), "words")
    if op == "Unique":
        dtype = dice.dtype(FLOAT, INT64, STRING)
        data = words if dtype == STRING else values((n,), dtype)
        return setting(op, str(n), data, dtype=dtype, results=(dtype, INT64, INT64, INT64),
                       sorted=1)  # fmt: skip
    if op == "StringConcat":
        return setting(op, str(n), words, words, dtype=STRING, results=(STRING,), opset=20)
    if op == "StringSplit":
        return setting(op, str(n), words, dtype=STRING, results=(STRING, INT64), delimiter=" ",
                       opset=20)  # fmt: skip
    keys = [f"word {i}" for i in range(200)]
    return setting(op, str(n), words, dtype=STRING, results=(INT64,), domain=ML, keys_strings=keys,
                   values_int64s=list(range(200)), default_int64=-1)  # fmt: skip


# Small graphs.


def graph(name: str, text: str, body: Callable[..., str], *operands: Operand, **more) -> Setting:
    return Setting(name, text, traced(name.replace(" ", "_"), body, *operands, **more), ("graph",))


@drawn("graphs", "residual", "fan-out", "fill", "grouped heads", "branch")
def _graphs(dice: Dice, op: str) -> Setting:
    if op == "residual":
        layers, c, n = dice.between(2, 6), dice.one_of((13, 16, 40)), dice.one_of((7, 14, 29))

        def residual(g: models.Graph, x: str) -> str:
            for _ in range(layers):
                x = g.op("Relu", g.op("Add", x, g.conv_bn(x, c, c, 3, pad=1)))
            return x

        return graph(op, f"{layers} of {c}x{n}x{n}", residual, values((1, c, n, n)))
    if op == "fan-out":
        count, shape = dice.one_of((3, 17, 60)), dice.shape(2, 1 << 14)
        kinds = ["Relu", "Tanh", "Exp", "Neg", "Sigmoid", "Softmax"]

        def fan_out(g: models.Graph, x: str) -> str:
            total = x
            for i in range(count):
                total = g.op(
                    "Add", total, g.op(kinds[i % len(kinds)], g.op("Mul", x, g.scalar(i / 7)))
                )
            return total

        return graph(op, f"{count} of {by(shape)}", fan_out, values(shape))
    if op == "fill":
        rows, columns = dice.size(300), dice.between(100, 700)

        def fill(g: models.Graph, x: str) -> str:
            ones = g.op("Expand", g.scalar(1.0), g.ints(rows, columns))
            places = g.op("CumSum", ones, g.constant("axis", np.array(1, np.int64)))
            return g.op("Add", x, g.op("Sin", places))

        return graph(op, by((rows, columns)), fill, values((rows, columns)))
    if op == "grouped heads":
        groups, share = dice.one_of((1, 2, 4)), dice.one_of((2, 4, 7))
        keys, size = dice.size(600), dice.one_of((32, 64, 80))

        def heads(g: models.Graph, q: str, k: str, v: str) -> str:
            def copied(y: str) -> str:
                y = g.op("Unsqueeze", y, g.ints(2))
                y = g.op("Expand", y, g.ints(1, groups, share, keys, size))
                return g.op("Reshape", y, g.ints(1, groups * share, keys, size))

            k, v = copied(k), copied(v)
            scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
            weights = g.op("Softmax", g.op("Mul", scores, g.scalar(0.125)), axis=-1)
            return g.op("MatMul", weights, v)

        rest = [values((1, groups, keys, size))] * 2
        return graph(op, f"{groups}x{share} heads {keys} keys of {size}", heads,
                     values((1, groups * share, 1, size)), *rest)  # fmt: skip
    shape = dice.shape(2, 1 << 16)

    def branch(g: models.Graph, x: str) -> str:
        go = g.op("Greater", g.op("ReduceMean", x, keepdims=0), g.scalar(0.0))
        sides = []
        for i, kind in enumerate(("Tanh", "Relu")):
            side = models.Graph(f"side{i}")
            side.output(side.op(kind, side.op("Mul", x, side.scalar(2.0))), f"s{i}", shape)
            sides.append(side.graph())
        return g.op("If", go, then_branch=sides[0], else_branch=sides[1])

    return graph(op, by(shape), branch, values(shape))


def draw(seed: int, index: int) -> tuple[str, Setting]:
    """Returns the setting `index` of the board of `seed`, under the name of its class.

    A class is drawn as the square root of its operators: many alike do not crowd out the rest.
    """
    dice = Dice(seed, index)
    groups: dict[str, list[tuple[str, Draw]]] = {}
    for group, operator, function in DRAWS:
        groups.setdefault(group, []).append((operator, function))
    weights = [math.sqrt(len(members)) for members in groups.values()]
    (group,) = dice.random.choices(list(groups), weights)
    operator, function = dice.one_of(groups[group])
    return group, function(dice, operator)
