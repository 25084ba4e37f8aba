"""Oracles of operators that work element by element, reduce, and move elements; see oracle_registry."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import op_programs
from oracle_registry import ORACLES, along, oracle

# Element by element, and reductions.

for _name, _row in (op_programs.UNARY | op_programs.BINARY).items():
    ORACLES[_name] = lambda a, *x, row=_row: row.answer(*x)
oracle("fast_erf")(lambda a, x: ORACLES["erf"](a, x))
oracle("fast_exp")(lambda a, x: np.exp(x))
oracle("fast_tanh")(lambda a, x: np.tanh(x))
oracle("after", "annotation.derivative_of")(lambda a, x, other: x)
oracle("round")(lambda a, x: np.round(x))
oracle("where")(lambda a, c, x, y: np.where(c, x, y))
oracle("clip")(lambda a, x: np.minimum(np.maximum(x, a.a_min), a.a_max))
oracle("cast")(lambda a, x: x.astype(a.dtype))
oracle("reinterpret")(lambda a, x: x.astype(np.float32).view(a.dtype))
oracle("cast_like")(lambda a, x, like: x.astype(like.dtype))
oracle("nn.leaky_relu")(lambda a, x: np.where(x > 0, x, x * a.alpha))
oracle("nn.prelu")(lambda a, x, s: np.where(x > 0, x, x * along(s, a.axis, x.ndim)))
oracle("nn.bias_add")(lambda a, x, b: x + along(b, a.axis, x.ndim))


def _axes(a: SimpleNamespace, rank: int) -> tuple[int, ...]:
    axes = range(rank) if a.axis is None else [x % rank for x in a.axis]
    return tuple(x for x in range(rank) if (x in axes) != a.exclude)


for _name, _row in op_programs.REDUCTIONS.items():
    if _row.one_axis:
        ORACLES[_name] = lambda a, x, row=_row: row.answer(
            x, axis=_axes(a, x.ndim)[0], keepdims=a.keepdims
        ).astype(row.result)
    else:
        ORACLES[_name] = lambda a, x, row=_row: row.answer(
            x, axis=_axes(a, x.ndim), keepdims=a.keepdims
        )


@oracle("variance")
def _(a, x, mean):
    squares = (x - mean) ** 2
    axes = _axes(a, x.ndim)
    count = math.prod(x.shape[d] for d in axes) - a.unbiased
    return squares.sum(axes, keepdims=a.keepdims) / count


@oracle("collapse_sum_to")
def _(a, x):
    return collapsed(x, a.shape)


@oracle("collapse_sum_like")
def _(a, x, like):
    return collapsed(x, like.shape)


def collapsed(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Returns the sums over the axes that a broadcast from `shape` to x's has repeated."""
    lead = tuple(range(x.ndim - len(shape)))
    ones = tuple(i for i, d in enumerate(shape) if d == 1)
    x = x.sum(axis=lead, dtype=x.dtype).sum(axis=ones, keepdims=True, dtype=x.dtype)
    return x.reshape(shape)


# Shapes.


@oracle("reshape")
def _(a, x):
    shape, at, codes = [], 0, list(a.newshape)
    while codes:
        code = codes.pop(0)
        if code == -2:
            shape += x.shape[at:]
            at = x.ndim
        elif code == -3:
            shape.append(x.shape[at] * x.shape[at + 1])
            at += 2
        elif code == -4:
            pair = [codes.pop(0), codes.pop(0)]
            shape += [x.shape[at] // -math.prod(pair) if p == -1 else p for p in pair]
            at += 1
        else:
            shape.append(x.shape[at] if code == 0 and not a.allowzero else code)
            at += 1
    return x.reshape(shape)


oracle("expand_dims")(lambda a, x: np.expand_dims(x, tuple(range(a.axis, a.axis + a.num_newaxis))))
oracle("squeeze")(lambda a, x: np.squeeze(x, None if a.axis is None else tuple(a.axis)))
oracle("nn.batch_flatten")(lambda a, x: x.reshape(len(x), -1))
oracle("reshape_like")(lambda a, x, like: x.reshape(like.shape))
oracle("transpose")(lambda a, x: x.transpose(a.axes))
oracle("tile")(lambda a, x: np.tile(x, a.reps))
oracle("repeat")(lambda a, x: np.repeat(x, a.repeats, a.axis))
oracle("reverse")(lambda a, x: np.flip(x, a.axis))
oracle("broadcast_to")(lambda a, x: np.broadcast_to(x, a.shape))
oracle("broadcast_to_like")(lambda a, x, like: np.broadcast_to(x, like.shape))
oracle("concatenate")(lambda a, *x: np.concatenate(x, a.axis))
oracle("stack")(lambda a, *x: np.stack(x, a.axis))
oracle("split")(lambda a, x: np.split(x, a.indices_or_sections, a.axis))
oracle("dyn.reshape")(lambda a, x, shape: x.reshape(shape))
oracle("dyn.transpose")(lambda a, x, axes: x.transpose(axes))
oracle("dyn.split")(lambda a, x, sizes: np.split(x, np.cumsum(sizes)[:-1], a.axis))
oracle("linalg.det")(lambda a, x: np.linalg.det(x))
oracle("linalg.inv")(lambda a, x: np.linalg.inv(x))
oracle("dyn.tile")(lambda a, x, reps: np.tile(x, reps))
oracle("dyn.broadcast_to")(lambda a, x, shape: np.broadcast_to(x, shape))


@oracle("strided_slice")
def _(a, x):
    # A list that is shorter leaves the axes behind it as they are.
    rows = list(itertools.zip_longest(a.begin, a.end, a.strides or []))
    at = [slice(None)] * x.ndim
    for axis, (b, e, s) in zip(a.axes or range(len(rows)), rows, strict=True):
        at[axis] = slice(b, b + e if a.slice_mode == "size" else e, s)
    return x[tuple(at)]


@oracle("dyn.strided_slice")
def _(a, x, begin, end, strides):
    return x[tuple(slice(*row) for row in zip(begin, end, strides, strict=True))]


@oracle("dyn.pad")
def _(a, x, widths, value):
    pairs = np.reshape(widths, (2, x.ndim)).T
    cut = tuple(slice(-min(b, 0), n + min(e, 0)) for (b, e), n in zip(pairs, x.shape, strict=True))
    assert a.pad_mode == "constant"
    return np.pad(x[cut], np.maximum(pairs, 0), constant_values=value.item())


@oracle("nn.pad")
def _(a, x, value):
    if a.pad_mode == "constant":
        return np.pad(x, a.pad_width, constant_values=value.item())
    return np.pad(x, a.pad_width, mode=a.pad_mode)


oracle("nn.mirror_pad")(lambda a, x: np.pad(x, a.pad_width, mode=a.mode.lower()))


@oracle("layout_transform")
def _(a, x):
    """Sizes are padded to whole blocks, split, and put in order."""
    assert a.src_layout.isalpha() and a.src_layout.isupper()
    parts = re.findall(r"([A-Z])|(\d+)([a-z])", a.dst_layout)
    blocks = {inner.upper(): int(size) for _, size, inner in parts if inner}
    widths = [(0, -n % blocks.get(c, 1)) for c, n in zip(a.src_layout, x.shape, strict=True)]
    x = np.pad(x, widths)
    shape, names = [], []
    for c, n in zip(a.src_layout, x.shape, strict=True):
        block = blocks.get(c, 1)
        shape += [n // block, block]
        names += [c, c.lower()]
    order = [names.index(outer or inner) for outer, _, inner in parts]
    x = x.reshape(shape)
    return np.squeeze(
        x.transpose(order + [i for i in range(x.ndim) if i not in order]),
        tuple(range(len(order), x.ndim)),
    )
