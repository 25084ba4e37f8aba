"""Operators of random ONNX graphs (onnx_random_graphs.py): each draws its operands and attributes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper
from random_onnx_graph import FAR, FLOAT, INTS, Graph, Refused

Draw = Callable[[Graph], object]
OPERATORS: dict[str, Draw] = {}


def operator(*names: str):
    def register(draw):
        for name in names:
            OPERATORS[name] = lambda g, name=name: draw(g, name)
        return draw

    return register


NUMBERS = (FLOAT, *INTS)
ANY = (*NUMBERS, "bool")


@operator("Abs", "Neg", "Relu", "Identity")
def _exact_unary(g, op):
    g.add(op, [g.pick((FLOAT,) if op == "Relu" else NUMBERS)])


@operator("Sign", "Floor", "Ceil", "Round", "IsNaN", "IsInf")
def _deciding_unary(g, op):
    if op in ("Floor", "Ceil", "Round") and g.chance(0.5):
        half = g.constant(np.float32(0.5))
        g.add(op, g.add("Mul", [g.pick(exact=True), half]))
        return
    g.add(op, [g.pick(NUMBERS if op == "Sign" else (FLOAT,), exact=True)])


@operator("Exp", "Sqrt", "Log", "Reciprocal", "Erf", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh",
          "Asinh", "Sigmoid", "Tanh", "Softplus", "Softsign", "Selu", "Mish", "HardSwish", "Asin",
          "Acos", "Acosh", "Atanh")  # fmt: skip
def _rounded_unary(g, op):
    x = g.pick()
    if op == "Tan" or (op in ("Sqrt", "Log", "Reciprocal") and not x.exact):
        # Near a pole small errors become large ones.
        x = g.pick(exact=True)
    g.add(op, [x], exact=False)


@operator("Elu", "LeakyRelu", "ThresholdedRelu", "Celu", "HardSigmoid")
def _alpha(g, op):
    attributes = {} if g.chance(0.3) else {"alpha": float(g.one_of([0.5, 1.0, 2.0, 0.25]))}
    x = g.pick(exact=op == "ThresholdedRelu")
    g.add(op, [x], exact=op in ("LeakyRelu", "ThresholdedRelu") and bool(attributes), **attributes)


@operator("PRelu")
def _prelu(g, op):
    x = g.pick(exact=True)
    g.add(op, [x, g.constant(g.numbers(tuple(d if g.chance(0.5) else 1 for d in x.array.shape)))])


@operator("Clip")
def _clip(g, op):
    x = g.pick(NUMBERS)
    bound = lambda v: g.constant(np.asarray(v, x.array.dtype))  # noqa: E731
    low, high = sorted(int(v) for v in g.rng.integers(-3, 4, 2))
    if g.chance(0.2):
        low, high = high, low
    g.add(op, [x, bound(low) if g.chance(0.7) else None, bound(high) if g.chance(0.7) else None])


@operator("Add", "Sub", "Mul")
def _arithmetic(g, op):
    x = g.pick(NUMBERS)
    pair = [x, g.like(x)]
    g.add(op, pair if g.chance(0.5) else pair[::-1])


@operator("Div")
def _div(g, op):
    x = g.pick(NUMBERS)
    y = g.like(x)
    if x.array.dtype.kind == "i" or g.chance(0.7):
        y = g.constant(np.where(y.array == 0, 2, y.array).astype(x.array.dtype))
        if x.array.dtype.kind == "i" and not (
            x.array.size == 0 or x.array.min() >= 0 <= y.array.min()
        ):
            raise Refused  # ONNX does not say which way division of integers rounds
    g.add(op, [x, y], exact=x.array.dtype.kind == "i")


@operator("Mod")
def _mod(g, op):
    x = g.pick(NUMBERS, exact=True)
    y = g.like(x)
    y = g.constant(np.where(y.array == 0, 3, y.array).astype(x.array.dtype))
    g.add(op, [x, y], fmod=1 if x.array.dtype.kind == "f" else int(g.chance(0.5)))


@operator("Pow")
def _pow(g, op):
    x = g.pick(exact=True)
    g.add(op, [x, g.constant(np.float32(g.one_of([0, 1, 2, 3, 0.5, -1])))], exact=False)


@operator("Min", "Max", "Sum", "Mean")
def _variadic(g, op):
    x = g.pick((FLOAT,) if op in ("Sum", "Mean") else NUMBERS)
    g.add(op, [x] + [g.like(x) for _ in range(int(g.rng.integers(0, 3)))], exact=op != "Mean")


@operator("And", "Or", "Xor")
def _logical(g, op):
    x = g.pick(("bool",))
    g.add(op, [x, g.like(x)])


@operator("Not")
def _not(g, op):
    g.add(op, [g.pick(("bool",))])


@operator("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
def _compare(g, op):
    x = g.pick(ANY if op == "Equal" else NUMBERS, exact=True)
    g.add(op, [x, g.like(x)])


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _bitwise(g, op):
    x = g.pick(INTS)
    g.add(op, [x, g.like(x)])


@operator("BitwiseNot")
def _bitwise_not(g, op):
    g.add(op, [g.pick(INTS)])


@operator("BitShift")
def _bit_shift(g, op):
    x = g.input(g.shape(), "uint8")
    g.add(op, [x, g.like(x)], direction=g.one_of(["LEFT", "RIGHT"]))


@operator("Where")
def _where(g, op):
    x = g.pick(NUMBERS)
    condition = g.data(tuple(d if g.chance(0.7) else 1 for d in x.array.shape), "bool")
    g.add(op, [condition, x, g.like(x)])


@operator("Cast")
def _cast(g, op):
    x = g.pick((*ANY, "uint8"), exact=True)
    to = g.one_of(["float32", "int32", "int64", "bool", "float64", "float16"])
    if x.array.dtype.kind == "f" and to.startswith("int") and not np.isfinite(x.array).all():
        raise Refused
    (y,) = g.add(op, [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    if to in ("float64", "float16"):
        g.add(op, [y], to=onnx.TensorProto.FLOAT)


# ---- Shapes


@operator("Reshape")
def _reshape(g, op):
    x = g.pick(ANY)
    n, shape = x.array.size, []
    while n > 1 and g.chance(0.8):
        d = int(g.one_of([k for k in range(1, n + 1) if n % k == 0]))
        shape.append(d)
        n //= d
    shape.append(n)
    if g.chance(0.3):
        shape.insert(int(g.rng.integers(0, len(shape) + 1)), 1)
    if g.chance(0.5):
        shape[int(g.rng.integers(len(shape)))] = -1
    zero = {"allowzero": 1} if 0 in shape and -1 not in shape else {}
    if 0 not in shape and g.chance(0.3):
        for i, d in enumerate(x.array.shape[: len(shape)]):
            if d == shape[i]:
                shape[i] = 0
    g.add(op, [x, g.constant(np.array(shape, "int64"))], **zero)


@operator("Transpose")
def _transpose(g, op):
    x = g.pick(ANY)
    order = [int(a) for a in g.rng.permutation(x.rank)]
    g.add(op, [x], **({"perm": order} if order and g.chance(0.8) else {}))


@operator("Flatten")
def _flatten(g, op):
    x = g.pick(ANY)
    g.add(op, [x], axis=int(g.rng.integers(-x.rank, x.rank + 1)))


@operator("Squeeze")
def _squeeze(g, op):
    x = g.pick(ANY)
    ones = [a for a, d in enumerate(x.array.shape) if d == 1]
    if g.chance(0.3) and ones:
        g.add(op, [x])
        return
    some = [a - x.rank if g.chance(0.5) else a for a in ones if g.chance(0.7)]
    g.add(op, [x, g.constant(np.array(some, "int64"))])


@operator("Unsqueeze")
def _unsqueeze(g, op):
    x = g.pick(ANY, most=4)
    count = int(g.rng.integers(1, 3))
    rank = x.rank + count
    axes = g.rng.choice(rank, count, replace=False) - (rank if g.chance(0.5) else 0)
    g.add(op, [x, g.constant(axes.astype("int64"))])


@operator("Expand")
def _expand(g, op):
    x = g.pick(ANY)
    shape = [g.size() if d == 1 else g.one_of([d, 1]) for d in x.array.shape]
    shape = [g.size()] * int(g.chance(0.3)) + shape[int(g.chance(0.2)) :]
    g.add(op, [x, g.constant(np.array(shape, "int64"))])


@operator("Tile")
def _tile(g, op):
    x = g.pick(ANY)
    g.add(op, [x, g.constant(g.rng.integers(0, 3, x.rank).astype("int64"))])


@operator("Concat")
def _concat(g, op):
    x = g.pick(ANY, least=1)
    axis = g.axis(x.rank)
    parts = [x]
    for _ in range(int(g.rng.integers(0, 3))):
        shape = list(x.array.shape)
        shape[axis] = g.size()
        parts.insert(
            int(g.rng.integers(0, len(parts) + 1)), g.data(tuple(shape), str(x.array.dtype))
        )
    g.add(op, parts, axis=axis)


@operator("Split")
def _split(g, op):
    x = g.pick(ANY, least=1)
    axis = g.axis(x.rank)
    n = x.array.shape[axis]
    if g.chance(0.4):
        parts = int(g.rng.integers(1, n + 2))
        g.add(op, [x], parts, axis=axis, num_outputs=parts)
        return
    cuts = np.sort(g.rng.integers(0, n + 1, int(g.rng.integers(0, 3))))
    sizes = np.diff(np.concatenate([[0], cuts, [n]]))
    g.add(op, [x, g.constant(sizes.astype("int64"))], len(sizes), axis=axis)


@operator("Slice")
def _slice(g, op):
    x = g.pick(ANY, least=1)
    axes = g.axes(x.rank) or [g.axis(x.rank)]

    def bound(n):
        return g.one_of([FAR, -FAR - 1, *range(-2 * n - 1, 2 * n + 2)])

    sizes = [x.array.shape[a] for a in axes]
    lists = [[bound(n) for n in sizes], [bound(n) for n in sizes], axes]
    if g.chance(0.7):
        lists.append([g.one_of([-FAR, FAR, *range(-n - 1, 0), *range(1, n + 2)]) for n in sizes])
    g.add(op, [x] + [g.constant(np.array(v, "int64")) for v in lists])


@operator("Pad")
def _pad(g, op):
    x = g.pick(NUMBERS)
    mode = g.one_of(["constant", "constant", "edge", "reflect"])
    axes = g.axes(x.rank)
    low = -1 if mode == "constant" else 0
    pads = g.rng.integers(low, 4, 2 * len(axes)).astype("int64")
    for i, a in enumerate(axes):
        if mode == "reflect":
            pads[[i, i + len(axes)]] = np.minimum(
                pads[[i, i + len(axes)]], max(x.array.shape[a] - 1, 0)
            )
        if x.array.shape[a] < 2:
            pads[[i, i + len(axes)]] = np.maximum(pads[[i, i + len(axes)]], 0)
    value = g.constant(np.asarray(3, x.array.dtype)) if g.chance(0.5) else None
    g.add(op, [x, g.constant(pads), value, g.constant(np.array(axes, "int64"))], mode=mode)


def _places(g, shape, n):
    if n == 0:
        raise Refused
    v = g.rng.integers(-n, n, shape).astype("int64")
    return g.constant(v) if g.chance(0.5) else g.fixed_input(v)


@operator("Gather")
def _gather(g, op):
    x = g.pick(ANY, least=1)
    axis = g.axis(x.rank)
    g.add(op, [x, _places(g, g.shape(0, 2), x.array.shape[axis])], axis=axis)


def _within(g, x, axis):
    """A shape that fits into x beside the axis."""
    shape = [int(g.rng.integers(0 if g.chance(0.1) else min(d, 1), d + 1)) for d in x.array.shape]
    shape[axis] = g.size()
    return tuple(shape)


@operator("GatherElements")
def _gather_elements(g, op):
    x = g.pick(ANY, least=1)
    axis = g.axis(x.rank)
    shape = list(x.array.shape)
    shape[axis] = g.size()
    g.add(op, [x, _places(g, tuple(shape), x.array.shape[axis])], axis=axis)


@operator("ScatterElements")
def _scatter_elements(g, op):
    x = g.pick(NUMBERS, least=1)
    axis = g.axis(x.rank)
    shape = _within(g, x, axis)
    reduction = g.one_of(["none", "add", "mul", "min", "max"])
    n = x.array.shape[axis]
    if reduction == "none":
        # What two updates of one place give is not said.
        whole, part = list(shape), list(shape)
        whole[axis], part[axis] = n, min(n, shape[axis])
        shape = tuple(part)
        order = np.argsort(g.rng.random(whole), axis=axis)
        places = np.take(order, range(part[axis]), axis=axis).astype("int64")
        indices = g.constant(places - n * g.rng.integers(0, 2, shape))
    else:
        indices = _places(g, shape, n)
    g.add(op, [x, indices, g.data(shape, str(x.array.dtype))], axis=axis, reduction=reduction)


@operator("GatherND", "ScatterND")
def _nd(g, op):
    x = g.pick(NUMBERS, least=1)
    depth = int(g.rng.integers(1, x.rank + 1))
    lead = g.shape(0, 2) if op == "GatherND" else (int(g.rng.integers(0, 3)),)
    sizes = np.array(x.array.shape[:depth])
    if (sizes == 0).any():
        raise Refused
    places = g.rng.integers(-sizes, sizes, (*lead, depth)).astype("int64")
    if op == "GatherND":
        g.add(op, [x, g.constant(places) if g.chance(0.5) else g.fixed_input(places)])
        return
    if len({tuple(p % sizes) for p in places}) < len(places):
        raise Refused
    updates = g.data((*lead, *x.array.shape[depth:]), str(x.array.dtype))
    g.add(op, [x, g.constant(places), updates])


@operator("OneHot")
def _one_hot(g, op):
    depth = int(g.rng.integers(1, 5))
    indices = g.rng.integers(-2 * depth, 2 * depth, g.shape(1, 2)).astype("int64")
    values = g.constant(g.numbers(2, g.one_of([FLOAT, "int64"])))
    g.add(op, [g.fixed_input(indices), g.constant(np.array(depth, "int64")), values],
          axis=g.axis(indices.ndim + 1))  # fmt: skip


@operator("Shape")
def _shape(g, op):
    x = g.pick(ANY)
    some = {
        k: int(g.rng.integers(-x.rank - 2, x.rank + 3)) for k in ("start", "end") if g.chance(0.5)
    }
    g.add(op, [x], **some)


@operator("Size")
def _size(g, op):
    g.add(op, [g.pick(ANY)])


@operator("ConstantOfShape")
def _constant_of_shape(g, op):
    value = numpy_helper.from_array(g.numbers(1, g.one_of(NUMBERS)))
    g.add(
        op,
        [g.constant(np.array(g.shape(), "int64"))],
        **({"value": value} if g.chance(0.7) else {}),
    )


@operator("EyeLike")
def _eye_like(g, op):
    g.add(op, [g.pick(NUMBERS, 2, 2)], k=int(g.rng.integers(-3, 4)))


@operator("Range")
def _range(g, op):
    dtype = g.one_of([FLOAT, "int64"])
    bounds = [int(g.rng.integers(-5, 6)), int(g.rng.integers(-9, 10)), g.one_of([-2, -1, 1, 3])]
    g.add(op, [g.constant(np.array(v, dtype)) for v in bounds])


@operator("Trilu")
def _trilu(g, op):
    x = g.pick(NUMBERS, least=2)
    k = [g.constant(np.array(int(g.rng.integers(-4, 5)), "int64"))] if g.chance(0.7) else []
    g.add(op, [x, *k], upper=int(g.chance(0.5)))


@operator("ReverseSequence")
def _reverse_sequence(g, op):
    x = g.pick(NUMBERS, least=2)
    time = int(g.chance(0.5))
    lengths = g.rng.integers(0, x.array.shape[time] + 1, x.array.shape[1 - time]).astype("int64")
    g.add(op, [x, g.fixed_input(lengths)], time_axis=time, batch_axis=1 - time)


@operator("DepthToSpace", "SpaceToDepth")
def _depth(g, op):
    n, c, h, w = (g.one_of([1, 2]) for _ in range(4))
    block = int(g.one_of([1, 2, 3]))
    deep = op == "DepthToSpace"
    shape = (n, c * block**2, h, w) if deep else (n, c, h * block, w * block)
    g.add(
        op,
        [g.input(shape)],
        blocksize=block,
        **({"mode": g.one_of(["DCR", "CRD"])} if deep else {}),
    )


@operator("Compress")
def _compress(g, op):
    x = g.pick(NUMBERS, least=1)
    axis = {} if g.chance(0.3) else {"axis": g.axis(x.rank)}
    n = x.array.shape[axis["axis"]] if axis else x.array.size
    g.add(op, [x, g.constant(g.numbers(int(g.rng.integers(0, n + 1)), "bool"))], **axis)


# ---- Reductions


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
          "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")  # fmt: skip
def _reduce(g, op):
    exact = op in (
        "ReduceSum",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceSumSquare",
    )
    # The reference gives int64 for the squares of int32.
    whole = exact and op != "ReduceSumSquare"
    x = g.pick(NUMBERS if whole else (FLOAT,), exact=op == "ReduceLogSum")
    attributes = {"keepdims": int(g.chance(0.5))} if g.chance(0.8) else {}
    if g.chance(0.3):
        attributes["noop_with_empty_axes"] = int(g.chance(0.5))
    axes = [g.constant(np.array(g.axes(x.rank), "int64"))] if g.chance(0.8) else []
    g.add(op, [x, *axes], exact=exact, **attributes)


@operator("ArgMax", "ArgMin")
def _arg(g, op):
    x = g.pick(NUMBERS, least=1, exact=True)
    g.add(
        op,
        [x],
        axis=g.axis(x.rank),
        keepdims=int(g.chance(0.5)),
        select_last_index=int(g.chance(0.5)),
    )


@operator("CumSum")
def _cumsum(g, op):
    x = g.pick(NUMBERS, least=1)
    g.add(op, [x, g.constant(np.array(g.axis(x.rank), "int64"))], exclusive=int(g.chance(0.5)),
          reverse=int(g.chance(0.5)))  # fmt: skip


@operator("TopK")
def _topk(g, op):
    x = g.pick(NUMBERS, least=1, exact=True)
    axis = g.axis(x.rank)
    k = int(g.rng.integers(0, x.array.shape[axis] + 1))
    g.add(op, [x, g.constant(np.array([k], "int64"))], 2, axis=axis, largest=int(g.chance(0.5)))


# ---- Networks


@operator("MatMul")
def _matmul(g, op):
    x = g.pick(least=1, most=4)
    k, m = x.array.shape[-1], g.size()
    lead = tuple(d if g.chance(0.6) else 1 for d in x.array.shape[:-2])
    shape = (k,) if g.chance(0.2) else (*lead[int(g.chance(0.3)) :], k, m)
    g.add(op, [x, g.data(shape)])


@operator("Gemm")
def _gemm(g, op):
    m, k, n = (g.one_of([1, 2, 3, 5, 0 if g.chance(0.2) else 4]) for _ in range(3))
    a, b = (int(g.chance(0.5)) for _ in range(2))
    c = [g.data(g.one_of([(n,), (m, n), (1, n), (m, 1), (1,), ()]))] if g.chance(0.7) else []
    g.add(op, [g.data((k, m) if a else (m, k)), g.data((n, k) if b else (k, n)), *c], transA=a, transB=b,
          alpha=float(g.one_of([1, 2, 0.5])), beta=float(g.one_of([1, 0, 2])))  # fmt: skip


def _window(g, dims, transposed=False):
    attributes: dict[str, object] = {}
    if g.chance(0.6):
        attributes["strides"] = [int(g.rng.integers(1, 4)) for _ in range(dims)]
    if g.chance(0.3):
        attributes["dilations"] = [int(g.rng.integers(1, 3)) for _ in range(dims)]
    if not transposed and g.chance(0.25):
        attributes["auto_pad"] = g.one_of(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if attributes["auto_pad"] != "VALID":
            attributes.pop("dilations", None)
    elif g.chance(0.6):
        attributes["pads"] = [int(p) for p in g.rng.integers(0, 2, 2 * dims)]
    return attributes


@operator("Conv", "ConvTranspose")
def _conv(g, op):
    transposed = op == "ConvTranspose"
    dims = int(g.rng.integers(1, 3))
    groups = int(g.one_of([1, 1, 2, 3]))
    inputs, outputs = groups * int(g.one_of([1, 2])), groups * int(g.one_of([1, 2]))
    space = tuple(int(g.rng.integers(3, 8)) for _ in range(dims))
    kernel = tuple(int(g.rng.integers(1, 4)) for _ in range(dims))
    weight = (
        (inputs, outputs // groups, *kernel) if transposed else (outputs, inputs // groups, *kernel)
    )
    attributes = _window(g, dims, transposed)
    if transposed and "strides" in attributes and g.chance(0.3):
        attributes["output_padding"] = [s - 1 for s in attributes["strides"]]
    if g.chance(0.5):
        attributes["kernel_shape"] = list(kernel)
    bias = [g.data((outputs,))] if g.chance(0.5) else []
    batch = 0 if g.chance(0.05) else int(g.one_of([1, 2]))
    g.add(op, [g.data((batch, inputs, *space)), g.data(weight), *bias], group=groups, **attributes)


@operator("MaxPool", "AveragePool", "LpPool")
def _pool(g, op):
    dims = int(g.rng.integers(1, 3))
    space = tuple(int(g.rng.integers(3, 8)) for _ in range(dims))
    attributes = _window(g, dims)
    attributes.pop("dilations", None) if op != "MaxPool" else None
    attributes["kernel_shape"] = [int(k) for k in g.rng.integers(2, 4, dims)]
    # SAME of a step longer than the window would take padding away: ONNX Runtime refuses it, and the
    # reference's result has not the size that the specification's formula gives.
    longer = any(
        s > k
        for s, k in zip(attributes.get("strides", []), attributes["kernel_shape"], strict=False)
    )
    if longer and str(attributes.get("auto_pad", "")).startswith("SAME"):
        attributes.pop("auto_pad")
    if g.chance(0.3):
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and g.chance(0.5):
        attributes["count_include_pad"] = 1
    g.add(op, [g.data((int(g.one_of([1, 2])), 2, *space))], exact=op == "MaxPool", **attributes)


@operator("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(g, op):
    # The reference's GlobalMaxPool is right for images only.
    x = g.input(tuple(int(n) for n in g.rng.integers(1, 5, 4 if op == "GlobalMaxPool" else 3)))
    g.add(op, [x], exact=op == "GlobalMaxPool")


@operator("BatchNormalization")
def _batch_norm(g, op):
    x = g.input((2, 3, *g.shape(0, 2)))
    rest = [g.constant(g.numbers(3)) for _ in range(3)] + [g.constant(np.abs(g.numbers(3)) + 1)]
    g.add(op, [x, *rest], exact=False, epsilon=float(g.one_of([1e-5, 1e-2])))


@operator("InstanceNormalization")
def _instance_norm(g, op):
    x = g.input((2, 3, *(int(n) for n in g.rng.integers(2, 5, 2))))
    g.add(op, [x, g.constant(g.numbers(3)), g.constant(g.numbers(3))], exact=False, epsilon=0.1)


@operator("LayerNormalization")
def _layer_norm(g, op):
    x = g.pick(least=1, exact=True)
    axis = g.axis(x.rank)
    shape = x.array.shape[axis:]
    g.add(op, [x, g.constant(g.numbers(shape)), *([g.constant(g.numbers(shape))] if g.chance(0.5) else [])],
          exact=False, axis=axis, epsilon=0.1)  # fmt: skip


@operator("LRN")
def _lrn(g, op):
    x = g.input((1, int(g.rng.integers(1, 5)), 2, 3))
    g.add(op, [x], exact=False, size=int(g.one_of([1, 3, 5])), alpha=0.1, beta=0.75, bias=2.0)


@operator("Softmax", "LogSoftmax")
def _softmax(g, op):
    x = g.pick(least=1)
    g.add(op, [x], exact=False, axis=g.axis(x.rank))


@operator("Hardmax")
def _hardmax(g, op):
    x = g.pick(least=1, exact=True)
    g.add(op, [x], axis=g.axis(x.rank))


@operator("LpNormalization")
def _lp_normalization(g, op):
    x = g.input(tuple(int(n) for n in g.rng.integers(1, 5, 3)))
    (y,) = g.add("Add", [x, g.constant(np.float32(5))])
    g.add(op, [y], exact=False, axis=g.axis(3), p=int(g.one_of([1, 2])))


@operator("MeanVarianceNormalization")
def _mvn(g, op):
    x = g.input(tuple(int(n) for n in g.rng.integers(2, 5, 4)))
    g.add(op, [x], exact=False)


@operator("Dropout")
def _dropout(g, op):
    g.add(op, [g.pick()])


@operator("Einsum")
def _einsum(g, op):
    text = g.one_of(
        ["ij,jk->ik", "ij->ji", "ij->", "i,j->ij", "bij,bjk->bik", "ij,ij->i", "...ij->...ji"]
    )
    sizes = {c: g.size() for c in "bijk"}
    parts = [tuple(sizes[c] for c in part if c != ".") for part in text.split("->")[0].split(",")]
    g.add(op, [g.data(p) for p in parts], equation=text)


@operator("Resize")
def _resize(g, op):
    shape = (1, 2, int(g.rng.integers(1, 6)), int(g.rng.integers(1, 6)))
    mode = g.one_of(["nearest", "linear"])
    attributes = {"mode": mode}
    coordinates = ["half_pixel", "asymmetric", "align_corners"]
    if g.chance(0.7):
        attributes["coordinate_transformation_mode"] = g.one_of(coordinates)
    if mode == "nearest":
        attributes["nearest_mode"] = g.one_of(
            ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
        )
    sizes = np.array([1, 2, *g.rng.integers(1, 9, 2)], "int64")
    if mode == "nearest":
        # Whole factors: a place between two elements may be rounded either way.
        sizes = np.array(shape, "int64") * np.array([1, 1, *g.rng.integers(1, 3, 2)])
    g.add(
        op, [g.input(shape), None, None, g.constant(sizes)], exact=mode == "nearest", **attributes
    )
