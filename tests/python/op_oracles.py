"""What each operator means, over NumPy's arrays: the oracle that its compute rule has no part in.

An oracle is called with the attributes (all of them, by name) and the arguments, tuples flattened,
and returns one array or a list of them. Floats are computed in float64; the caller brings them to
the operator's dtype. The references walk elements one by one where that says most plainly what is
meant.
"""

from __future__ import annotations

import fractions
import itertools
import math
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import op_programs

import relay

ORACLES: dict[str, Callable] = {}


def oracle(*names: str) -> Callable:
    """Registers a function as the meaning of operators."""

    def register(function: Callable) -> Callable:
        for name in names:
            assert name not in ORACLES, name
            ORACLES[name] = function
        return function

    return register


def attributes(name: str, text: str) -> SimpleNamespace:
    """Returns all attributes of an operator, those in `text` with the values there."""
    values = {a.name: a.default for a in relay.op.get(name).attrs}
    # Floats end in f; the rest of the syntax is Python's.
    text = re.sub(r"(?<=[\d.])f\b", "", text)
    values |= eval(f"dict({text})", {}, {})
    return SimpleNamespace(**values)


def answer(name: str, attrs: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what the operator gives by its oracle."""
    result = ORACLES[name](attributes(name, attrs), *map(wide, inputs))
    return [np.asarray(r) for r in (result if isinstance(result, (list, tuple)) else [result])]


def wide(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def along(v: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """Returns a vector as a tensor that broadcasts along `axis`."""
    shape = [1] * rank
    shape[axis] = -1
    return v.reshape(shape)


# Element by element, and reductions.

for _name, _row in (op_programs.UNARY | op_programs.BINARY).items():
    ORACLES[_name] = lambda a, *x, row=_row: row.answer(*x)
oracle("fast_erf")(lambda a, x: ORACLES["erf"](a, x))
oracle("fast_exp")(lambda a, x: np.exp(x))
oracle("fast_tanh")(lambda a, x: np.tanh(x))
oracle("after")(lambda a, x, dependency: x)
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
    steps = a.strides or [1] * len(a.begin)
    at = [slice(None)] * x.ndim
    for axis, b, e, s in zip(a.axes or range(len(a.begin)), a.begin, a.end, steps, strict=True):
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


@oracle("vision.all_class_non_max_suppression")
def _(a, boxes, scores, most, overlap, least):
    assert not a.center_point_box
    chosen = []
    for b, c in np.ndindex(scores.shape[:2]):
        kept = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            apart = all(_shared(boxes[b, i], boxes[b, j]) <= overlap for j in kept)
            if scores[b, c, i] > least and len(kept) < most and apart:
                kept.append(i)
        chosen += [(b, c, i) for i in kept]
    return np.array(chosen, np.int64).reshape(-1, 3)


def _shared(p: np.ndarray, q: np.ndarray) -> float:
    """What two boxes share of what they cover together."""
    low, high = np.maximum(p[:2], q[:2]), np.minimum(p[2:], q[2:])
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(p[2:] - p[:2]) + np.prod(q[2:] - q[:2]) - shared)


@oracle("checked_index")
def _(a, indices, sizes):
    size = sizes if sizes.ndim == 0 else sizes.reshape(-1, *[1] * (indices.ndim - 1))
    assert np.all((indices >= -size) & (indices < size))
    return np.where(indices < 0, indices + size, indices).astype(indices.dtype)


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


# Tensors from nothing, and by index.

oracle("zeros")(lambda a: np.zeros(a.shape, a.dtype or "float32"))
oracle("ones")(lambda a: np.ones(a.shape, a.dtype or "float32"))
oracle("full")(lambda a, v: np.full(a.shape, v))
oracle("full_like")(lambda a, x, v: np.full(x.shape, v).astype(x.dtype))
oracle("dyn.zeros")(lambda a, shape: np.zeros(shape, a.dtype or "float32"))
oracle("dyn.ones")(lambda a, shape: np.ones(shape, a.dtype or "float32"))
oracle("dyn.full")(lambda a, v, shape: np.full(shape, v))
oracle("dyn.arange")(lambda a, start, stop, step: np.arange(start, stop, step))
oracle("arange")(
    lambda a: np.arange(a.start or 0, a.stop, 1 if a.step is None else a.step).astype(
        a.dtype or "float32"
    )
)
oracle("meshgrid")(lambda a, *x: np.meshgrid(*x, indexing=a.indexing))
oracle("shape_of")(lambda a, x: np.array(x.shape, a.dtype or "int32"))
oracle("ndarray_size")(lambda a, x: np.array(x.size, a.dtype or "int32"))
oracle("argwhere")(lambda a, x: np.argwhere(x).astype("int32"))
oracle("trilu")(lambda a, x, k: (np.triu if a.upper else np.tril)(x, k.item()))
oracle("gather")(lambda a, x, i: np.take_along_axis(x, i, a.axis))
oracle("gather_nd")(lambda a, x, i: x[tuple(i)])
oracle("adv_index")(lambda a, x, *i: x[i])
oracle("invert_permutation")(lambda a, x: np.argsort(x).astype(x.dtype))


@oracle("take")
def _(a, x, i):
    return np.take(x, i, a.axis, mode="raise" if a.mode == "fast" else a.mode)


@oracle("one_hot")
def _(a, i, on, off):
    hot = np.where(i[..., None] == np.arange(a.depth), on, off)
    return np.moveaxis(hot, -1, a.axis)


@oracle("unravel_index")
def _(a, x, shape):
    """By division: an index beyond the last place wraps along the first axis."""
    out = []
    for n in shape[::-1]:
        out.append(x % n)
        x = x // n
    return np.stack(out[::-1])


def stable_order(x: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """Stable argsort with NaN last in both directions."""
    if ascending:
        return np.argsort(x, axis=axis, kind="stable")
    # The negated values keep the order of ties, and NaN stays last.
    return np.argsort(-(x if x.dtype.kind == "f" else x.astype(np.int64)), axis=axis, kind="stable")


@oracle("argsort")
def _(a, x):
    return stable_order(x, a.axis, a.is_ascend).astype(a.dtype or "int32")


@oracle("sort")
def _(a, x):
    return np.take_along_axis(x, stable_order(x, a.axis, a.is_ascend), a.axis)


@oracle("topk")
def _(a, x):
    count = 1 if a.k is None else a.k if a.k > 0 else x.shape[a.axis]
    order = np.take(stable_order(x, a.axis, a.is_ascend), np.arange(count), a.axis)
    values, indices = np.take_along_axis(x, order, a.axis), order.astype(a.dtype or "int32")
    return {"both": [values, indices], "values": values, "indices": indices}[a.ret_type]


@oracle("searchsorted")
def _(a, lines, values):
    """How many elements of the line come before the value; the line need not be sorted only where
    no element is looked for."""
    lines = np.broadcast_to(lines, (*values.shape[:-1], lines.shape[-1]))
    out = np.empty(values.shape, a.dtype)
    for at in np.ndindex(*values.shape):
        low, high = 0, lines.shape[-1]
        while low < high:
            middle = (low + high) // 2
            element = lines[at[:-1]][middle]
            before = element <= values[at] if a.right else element < values[at]
            low, high = (middle + 1, high) if before else (low, middle)
        out[at] = low
    return out


# Strings, as Python has them.


def of_strings(function: Callable, *arrays: np.ndarray, dtype: object = object) -> np.ndarray:
    """Returns what a function of strings gives for each element."""
    lines = np.broadcast_arrays(*arrays)
    out = np.empty(lines[0].shape, dtype)
    for at in np.ndindex(*out.shape):
        out[at] = function(*(x[at] for x in lines))
    return out


oracle("text.concat")(lambda a, x, y: of_strings(lambda s, t: s + t, x, y))
oracle("text.change_case")(lambda a, x: of_strings(str.upper if a.upper else str.lower, x))
oracle("text.full_match")(
    lambda a, x, p: of_strings(lambda s, t: re.fullmatch(t, s) is not None, x, p, dtype=bool)
)
oracle("text.format")(lambda a, x: of_strings(str, x))
oracle("text.parse")(lambda a, x: of_strings(float, x, dtype=a.dtype or "float32"))


def _parts(a: SimpleNamespace, x: np.ndarray, delimiter: np.ndarray) -> np.ndarray:
    return of_strings(lambda s, d: s.split(d or None, a.maxsplit), x, delimiter)


@oracle("text.count_parts")
def _(a, x, delimiter):
    return of_strings(len, _parts(a, x, delimiter), dtype="int64")


@oracle("text.split")
def _(a, x, delimiter):
    parts = _parts(a, x, delimiter)
    most = max((len(p) for p in parts.ravel()), default=0)
    out = np.full((*x.shape, most), "", dtype=object)
    for at in np.ndindex(*x.shape):
        out[at][: len(parts[at])] = parts[at]
    return out


def scan(a: SimpleNamespace, x: np.ndarray, run: Callable, first: int) -> np.ndarray:
    x, axis = (x.reshape(-1), 0) if a.axis is None else (x, a.axis)
    x = x.astype(a.dtype or x.dtype)
    if a.exclusive:
        x = np.concatenate(
            [np.full_like(np.take(x, [0], axis), first), np.delete(x, -1, axis)], axis
        )
    return run(x, axis=axis, dtype=x.dtype)


oracle("cumsum")(lambda a, x: scan(a, x, np.cumsum, 0))
oracle("cumprod")(lambda a, x: scan(a, x, np.cumprod, 1))

MEETINGS: dict[str, Callable] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": np.minimum,
    "max": np.maximum,
}


@oracle("scatter_elements")
def _(a, x, indices, updates):
    out, counts = x.copy(), np.ones(x.shape, "int64")
    for i in np.ndindex(*indices.shape):
        at = list(i)
        at[a.axis] = indices[i]
        at = tuple(at)
        out[at] = MEETINGS["add" if a.reduction == "mean" else a.reduction](out[at], updates[i])
        counts[at] += 1
    if a.reduction == "mean":
        out = out / counts if out.dtype.kind == "f" else out // counts
    return out


@oracle("scatter_nd")
def _(a, x, indices, updates):
    out = x.copy()
    for i in np.ndindex(*indices.shape[1:]):
        at = tuple(indices[(slice(None), *i)])
        out[at] = MEETINGS[a.mode](out[at], updates[i])
    return out


@oracle("update_slice")
def _(a, x, update, start):
    out = x.copy()
    first = min(max(int(start), 0), len(x) - len(update))
    out[first : first + len(update)] = update
    return out


@oracle("reverse_sequence")
def _(a, x, lengths):
    out = np.moveaxis(x.copy(), (a.batch_axis, a.seq_axis), (0, 1))
    for line, n in zip(out, lengths, strict=True):
        line[:n] = line[:n][::-1].copy()
    return np.moveaxis(out, (0, 1), (a.batch_axis, a.seq_axis))


@oracle("sequence_mask")
def _(a, x, lengths):
    out = np.moveaxis(x.copy(), 1 - a.axis, 0)
    for line, n in zip(out, lengths, strict=True):
        line[n:] = a.mask_value
    return np.moveaxis(out, 0, 1 - a.axis)


# Products.

oracle("einsum")(lambda a, *x: np.einsum(a.equation.replace(" ", ""), *x))
oracle("nn.dense")(lambda a, x, w: x @ w.T)


@oracle("nn.contrib_dense_pack")
def _(a, x, panels):
    columns = panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])
    return x @ columns[: a.units].T


@oracle("nn.matmul")
def _(a, x, y):
    return (x.swapaxes(-1, -2) if a.transpose_a else x) @ (y.T if a.transpose_b else y)


@oracle("nn.batch_matmul")
def _(a, x, y):
    return (x.swapaxes(1, 2) if a.transpose_a else x) @ (y.swapaxes(1, 2) if a.transpose_b else y)


@oracle("nn.attention")
def _(a, q, k, v, mask):
    q, k, v = (
        x.transpose([layout.index(c) for c in "BHSD"])
        for x, layout in ((q, a.query_layout), (k, a.key_layout), (v, a.value_layout))
    )
    # Heads of queries that share one of keys follow one another.
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = a.scale * q @ k.swapaxes(2, 3) + (mask.swapaxes(-1, -2) if a.transpose_mask else mask)
    return (softmax(scores, -1) @ v).transpose(["BHSD".index(c) for c in a.out_layout])


# Windows. Data is brought to channels first.


def channels_first(x: np.ndarray, layout: str) -> np.ndarray:
    return np.moveaxis(x, layout.index("C"), 1) if layout[0] == "N" else x


def from_channels_first(x: np.ndarray, layout: str) -> np.ndarray:
    return np.moveaxis(x, 1, layout.index("C")) if layout[0] == "N" else x


def borders(padding: Sequence[int], dims: int) -> tuple[list[int], list[int]]:
    """Returns begins and ends of a list of one, `dims` or twice as many numbers."""
    full = list(padding) * (2 * dims // len(padding))
    return full[:dims], full[dims:]


def padded(x: np.ndarray, begins, ends, value: float = 0.0) -> np.ndarray:
    widths = [(0, 0), (0, 0), *zip(begins, ends, strict=True)]
    return np.pad(x.astype(np.float64), widths, constant_values=value)


def convolution(x, w, strides, dilation, groups) -> np.ndarray:
    """Returns the convolution of data that has its border already."""
    kernel = w.shape[2:]
    sizes = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(x.shape[2:], kernel, dilation, strides, strict=True)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    per_in, per_out = x.shape[1] // groups, w.shape[0] // groups
    for at in itertools.product(*map(range, sizes)):
        window = x[(slice(None), slice(None), *(
            slice(a * s, a * s + (k - 1) * d + 1, d)
            for a, s, k, d in zip(at, strides, kernel, dilation, strict=True)
        ))]  # fmt: skip
        for g in range(groups):
            part = window[:, g * per_in : (g + 1) * per_in]
            weight = w[g * per_out : (g + 1) * per_out].astype(np.float64)
            axes = list(range(1, part.ndim))
            out[(slice(None), slice(g * per_out, (g + 1) * per_out), *at)] = np.tensordot(
                part, weight, (axes, axes)
            )
    return out


@oracle("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _(a, x, w):
    x = channels_first(x, a.data_layout)
    y = convolution(padded(x, *borders(a.padding, x.ndim - 2)), w, a.strides, a.dilation, a.groups)
    return from_channels_first(y, a.data_layout)


def transposed_convolution(x, w, strides, dilation, groups, extra) -> np.ndarray:
    """Returns all of the result, before its border is cut off."""
    kernel = w.shape[2:]
    whole = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(x.shape[2:], strides, kernel, dilation, extra, strict=True)
    ]
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    out = np.zeros((x.shape[0], groups * per_out, *whole))
    for at in itertools.product(*map(range, x.shape[2:])):
        for k in itertools.product(*map(range, kernel)):
            place = tuple(
                i * s + b * d for i, s, b, d in zip(at, strides, k, dilation, strict=True)
            )
            for g in range(groups):
                inputs = x[(slice(None), slice(g * per_in, (g + 1) * per_in), *at)]
                weight = w[(slice(g * per_in, (g + 1) * per_in), slice(None), *k)]
                out[(slice(None), slice(g * per_out, (g + 1) * per_out), *place)] += (
                    inputs.astype(np.float64) @ weight
                )
    return out


@oracle("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _(a, x, w):
    begins, ends = borders(a.padding, x.ndim - 2)
    out = transposed_convolution(x, w, a.strides, a.dilation, a.groups, a.output_padding)
    cut = (slice(b, n - e) for b, e, n in zip(begins, ends, out.shape[2:], strict=True))
    return out[(slice(None), slice(None), *cut)]


# G of F(4x4, 3x3) in Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
WINOGRAD = np.array(
    [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]
) / 24  # fmt: skip


@oracle("nn.contrib_conv2d_winograd_weight_transform")
def winograd_weight(a, w: np.ndarray) -> np.ndarray:
    """Returns G w G^T of each 3x3 kernel: (6, 6, O, I)."""
    return np.einsum("ar,oirs,bs->aboi", WINOGRAD, w.astype(np.float64), WINOGRAD)


@oracle("nn.contrib_conv2d_winograd_without_weight_transform")
def _(a, x, transformed):
    """The paper's formula, tile by tile: A^T [(G w G^T) (B^T d B)] A. Not every (6, 6) is the
    transform of a kernel, so that no convolution says the same."""
    b = np.array([
        [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
    ])  # fmt: skip
    s = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0],
                  [0, 1, -1, 8, -8, 1]])  # fmt: skip
    x = padded(x, *borders(a.padding, 2))
    height, width = (n - 2 for n in x.shape[2:])
    x = np.pad(x, [(0, 0), (0, 0), (0, 6), (0, 6)])
    out = np.zeros((x.shape[0], transformed.shape[2], height + 4, width + 4))
    for i, j in itertools.product(range(0, height, 4), range(0, width, 4)):
        d = np.einsum("ap,ncpq,bq->abnc", b, x[:, :, i : i + 6, j : j + 6], b)
        m = np.einsum("aboc,abnc->abno", transformed, d)
        out[:, :, i : i + 4, j : j + 4] = np.einsum("pa,abno,qb->nopq", s, m, s)
    return out[:, :, :height, :width]


def pooled(a: SimpleNamespace, x: np.ndarray, best: bool) -> np.ndarray:
    x = channels_first(x, a.layout)
    dims = x.ndim - 2
    begins, ends = borders(a.padding, dims)
    sizes = []
    for n, k, s, d, b, e in zip(
        x.shape[2:], a.pool_size, a.strides, a.dilation, begins, ends, strict=True
    ):
        room = n + b + e - (k - 1) * d - 1
        sizes.append((-(-room // s) if a.ceil_mode else room // s) + 1)
    out = np.zeros((*x.shape[:2], *sizes))
    for at in itertools.product(*map(range, sizes)):
        inside, counted = [], 1
        for i, n, k, s, d, b, e in zip(
            at, x.shape[2:], a.pool_size, a.strides, a.dilation, begins, ends, strict=True
        ):
            places = [i * s + t * d - b for t in range(k)]
            inside.append([p for p in places if 0 <= p < n])
            counted *= sum(-b <= p < n + e for p in places)
        part = x[(slice(None), slice(None), *np.ix_(*inside))]
        axes = tuple(range(2, x.ndim))
        if best:
            out[(slice(None), slice(None), *at)] = part.max(axes)
        else:
            count = counted if a.count_include_pad else math.prod(map(len, inside))
            out[(slice(None), slice(None), *at)] = part.sum(axes) / max(count, 1)
    return from_channels_first(out, a.layout)


oracle("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")(lambda a, x: pooled(a, x, True))
oracle("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")(lambda a, x: pooled(a, x, False))


def adaptive(a: SimpleNamespace, x: np.ndarray, over: Callable) -> np.ndarray:
    x = channels_first(x, a.layout)
    target = list(a.output_size) or x.shape[2:]
    target = target * (x.ndim - 2) if len(target) == 1 else target
    out = np.zeros((*x.shape[:2], *target))
    for at in itertools.product(*map(range, target)):
        part = x[(slice(None), slice(None), *(
            slice(i * n // m, -(-(i + 1) * n // m))
            for i, n, m in zip(at, x.shape[2:], target, strict=True)
        ))]  # fmt: skip
        out[(slice(None), slice(None), *at)] = over(part, tuple(range(2, x.ndim)))
    return from_channels_first(out, a.layout)


_DIMS = ("1d", "2d", "3d")
oracle(*(f"nn.adaptive_max_pool{d}" for d in _DIMS))(lambda a, x: adaptive(a, x, np.max))
oracle(*(f"nn.adaptive_avg_pool{d}" for d in _DIMS))(lambda a, x: adaptive(a, x, np.mean))
oracle("nn.global_max_pool2d")(lambda a, x: x.max((2, 3), keepdims=True))
oracle("nn.global_avg_pool2d")(lambda a, x: x.mean((2, 3), keepdims=True))


@oracle("nn.dilate")
def _(a, x):
    sides = [(d - 1) * s + 1 if d > 0 else 0 for d, s in zip(x.shape, a.strides, strict=True)]
    out = np.full(sides, a.dilation_value, x.dtype)
    out[tuple(slice(None, None, s) for s in a.strides)] = x
    return out


def depth_to_space(x: np.ndarray, block: int, inside: bool) -> np.ndarray:
    n, c, h, w = x.shape
    c //= block * block
    if inside:
        parts = x.reshape(n, c, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        parts = x.reshape(n, block, block, c, h, w).transpose(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, c, h * block, w * block)


def space_to_depth(x: np.ndarray, block: int, inside: bool) -> np.ndarray:
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block)
    order = (0, 1, 3, 5, 2, 4) if inside else (0, 3, 5, 1, 2, 4)
    return parts.transpose(order).reshape(n, -1, h // block, w // block)


@oracle("nn.depth_to_space")
def _(a, x):
    y = depth_to_space(channels_first(x, a.layout), a.block_size, a.mode == "CDR")
    return from_channels_first(y, a.layout)


@oracle("nn.space_to_depth")
def _(a, x):
    y = space_to_depth(channels_first(x, a.layout), a.block_size, a.mode == "CDR")
    return from_channels_first(y, a.layout)


# Normalisations and losses.


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-math.inf))
    return e / e.sum(axis, keepdims=True)


oracle("nn.softmax", "nn.fast_softmax")(lambda a, x: softmax(x, a.axis))
oracle("nn.log_softmax")(lambda a, x: np.log(softmax(x, a.axis)))


def moments(x: np.ndarray, axes, epsilon: float = 1e-5) -> np.ndarray:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def scaled(a: SimpleNamespace, x: np.ndarray, gamma, beta) -> np.ndarray:
    x = x * along(gamma, a.axis, x.ndim) if a.scale else x
    return x + along(beta, a.axis, x.ndim) if a.center else x


@oracle("nn.layer_norm")
def _(a, x, gamma, beta):
    return scaled(a, moments(x, a.axis, a.epsilon), gamma, beta)


@oracle("nn.instance_norm")
def _(a, x, gamma, beta):
    axes = tuple(d for d in range(1, x.ndim) if d != a.axis % x.ndim)
    return scaled(a, moments(x, axes, a.epsilon), gamma, beta)


@oracle("nn.group_norm")
def _(a, x, gamma, beta):
    split = x.reshape(x.shape[0], a.num_groups, -1)
    return scaled(a, moments(split, 2, a.epsilon).reshape(x.shape), gamma, beta)


@oracle("nn.batch_norm")
def _(a, x, gamma, beta, mean, variance):
    y = (x - along(mean, a.axis, x.ndim)) / np.sqrt(along(variance, a.axis, x.ndim) + a.epsilon)
    return [scaled(a, y, gamma, beta), mean, variance]


oracle("nn.dropout")(lambda a, x: [x, np.ones_like(x)])


@oracle("nn.l2_normalize")
def _(a, x):
    squares = (x * x).sum(axis=tuple(a.axis) if a.axis else None, keepdims=True)
    return x / np.sqrt(np.maximum(squares, a.eps))


@oracle("nn.lrn")
def _(a, x):
    x = np.moveaxis(x, a.axis, 0)
    squares = np.zeros_like(x)
    for c in range(len(x)):
        low = c - (a.size - 1) // 2
        squares[c] = (x[max(low, 0) : low + a.size] ** 2).sum(0)
    return np.moveaxis(x / (a.bias + a.alpha / a.size * squares) ** a.beta, 0, a.axis)


oracle("nn.cross_entropy")(lambda a, x, y: -(np.log(x) * y).sum() / len(x))
oracle("nn.cross_entropy_with_logits")(lambda a, x, y: -(x * y).sum() / len(x))


@oracle("nn.nll_loss")
def _(a, x, target, weights):
    # A target that is no class counts as the nearest one.
    at = np.clip(target, 0, x.shape[1] - 1)
    weight = np.where(target == a.ignore_index, 0, weights[at])
    loss = -np.take_along_axis(x, at[:, None], 1)[:, 0] * weight
    means = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / weight.sum()}
    return means[a.reduction]


# Images between their elements. Weights are exact, so that the border between two numbers is.

HALF = fractions.Fraction(1, 2)


def cubic(distance: fractions.Fraction, a: fractions.Fraction) -> fractions.Fraction:
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else d * 0


def position(mode: str, i: int, n: int, m: int) -> fractions.Fraction:
    """Returns the place among n elements that element i of m is taken from."""
    if mode == "align_corners":
        return fractions.Fraction(i * (n - 1), m - 1) if m > 1 else fractions.Fraction(0)
    if mode == "asymmetric":
        return fractions.Fraction(i * n, m)
    middle = (i + HALF) * fractions.Fraction(n, m)
    if mode == "tf_half_pixel_for_nn":
        return middle
    return fractions.Fraction(0) if mode == "pytorch_half_pixel" and m == 1 else middle - HALF


ROUNDINGS: dict[str, Callable] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda p: math.floor(p + HALF),
    "round_prefer_floor": lambda p: math.ceil(p - HALF),
    "round_prefer_ceil": lambda p: math.floor(p + HALF),
}


def taps(method: str, place, alpha, rounding: Callable) -> dict[int, object]:
    """Returns the weight of each element that a place reads."""
    low = math.floor(place)
    if method == "nearest_neighbor":
        return {rounding(place): 1}
    if method == "linear":
        return {low: 1 - (place - low), low + 1: place - low}
    return {k: cubic(place - k, alpha) for k in range(low - 1, low + 3)}


def resize_matrix(method: str, places, n: int, alpha, exclude: bool, rounding=None) -> np.ndarray:
    """Returns resizing along an axis of n elements as a matrix of exact weights."""
    weights = np.full((len(places), n), fractions.Fraction(0))
    for i, place in enumerate(places):
        for k, w in taps(method, place, alpha, rounding).items():
            if 0 <= k < n or not exclude:
                weights[i, min(max(k, 0), n - 1)] += w
    return weights / weights.sum(1, keepdims=True) if exclude else weights


@oracle("image.resize1d", "image.resize2d", "image.resize3d")
def _(a, x):
    """Whole numbers are rounded to the nearest."""
    dtype, x = x.dtype, channels_first(x, a.layout)
    dims, mode, outside = x.ndim - 2, a.coordinate_transformation_mode, []
    for axis, m in enumerate(a.size, 2):
        n = x.shape[axis]
        if mode == "tf_crop_and_resize":
            begin, end = (fractions.Fraction(a.roi[k]) for k in (axis - 2, axis - 2 + dims))
            step = (end - begin) * (n - 1) / (m - 1) if m > 1 else 0
            first = begin * (n - 1) if m > 1 else (begin + end) * (n - 1) / 2
            places = [first + i * step for i in range(m)]
        else:
            places = [position(mode, i, n, m) for i in range(m)]
        outside.append([not 0 <= p <= n - 1 for p in places])
        name = a.rounding_method or ("round" if mode == "align_corners" else "floor")
        exclude = a.method == "cubic" and a.cubic_exclude != 0
        alpha = fractions.Fraction(a.cubic_alpha)
        matrix = resize_matrix(a.method, places, n, alpha, exclude, ROUNDINGS[name])
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ matrix.T.astype(np.float64), -1, axis)
    if mode == "tf_crop_and_resize":
        for axis, rows in enumerate(outside, 2):
            x[(slice(None),) * axis + (np.array(rows),)] = a.extrapolation_value
    x = x if dtype.kind == "f" else np.rint(x).astype(dtype)
    return from_channels_first(x, a.layout)


@oracle("nn.upsampling")
def _(a, x):
    resize = attributes("image.resize2d", "")
    x = channels_first(x, a.layout)
    resize.layout = "NCHW"
    resize.size = [round(x.shape[2] * a.scale_h), round(x.shape[3] * a.scale_w)]
    resize.method = "linear" if a.method == "bilinear" else a.method
    resize.coordinate_transformation_mode = "align_corners" if a.align_corners else "asymmetric"
    resize.rounding_method = ""
    return from_channels_first(ORACLES["image.resize2d"](resize, x), a.layout)


def sampled(image: np.ndarray, place, method: str, fetch: Callable) -> np.ndarray:
    """Returns the channels of an image at a place, one number for each spatial axis; `fetch` gives
    those of an index, which may lie outside."""
    axes = [taps(method, p, -0.75, lambda v: round(v)) for p in place]
    total = np.zeros(image.shape[0])
    for choice in itertools.product(*(t.items() for t in axes)):
        total += math.prod(w for _, w in choice) * fetch([k for k, _ in choice])
    return total


@oracle("image.affine_grid")
def _(a, theta):
    ys, xs = (np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in a.target_shape)
    places = np.stack([*np.meshgrid(xs, ys), np.ones(a.target_shape)])
    return np.einsum("nck,khw->nchw", theta, places)


def reflected(p: float, low: float, high: float) -> float:
    """Returns a place mirrored at both ends until it lies between them."""
    span = high - low
    if span <= 0:
        return 0.0
    p = (p - low) % (2 * span)
    return low + (2 * span - p if p > span else p)


@oracle("image.grid_sample")
def _(a, x, grid):
    sizes = x.shape[2:]
    method = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}[a.method]

    def inside(k: float, n: int) -> float:
        if a.padding_mode == "reflection":
            ends = (0, n - 1) if a.align_corners else (-0.5, n - 0.5)
            k = reflected(k, *ends)
        return min(max(k, 0), n - 1)

    out = np.zeros((x.shape[0], x.shape[1], *grid.shape[2:]))
    for n, *at in np.ndindex(x.shape[0], *grid.shape[2:]):
        # The grid names x before y before z.
        places = grid[(n, slice(None), *at)][::-1]
        places = [
            (p + 1) / 2 * (s - 1) if a.align_corners else ((p + 1) * s - 1) / 2
            for p, s in zip(places, sizes, strict=True)
        ]
        if a.padding_mode != "zeros" and method != "cubic":
            places = [inside(p, s) for p, s in zip(places, sizes, strict=True)]

        def fetch(index, image=x[n]):
            if a.padding_mode == "zeros":
                known = all(0 <= k < s for k, s in zip(index, sizes, strict=True))
                return image[(slice(None), *index)] if known else np.zeros(len(image))
            index = [int(inside(k, s)) for k, s in zip(index, sizes, strict=True)]
            return image[(slice(None), *index)]

        out[(n, slice(None), *at)] = sampled(x[n], places, method, fetch)
    return out


@oracle("image.crop_and_resize")
def _(a, images, boxes, which):
    x = channels_first(images, a.layout)
    out = np.full((len(boxes), x.shape[1], *a.crop_size), a.extrapolation_value, np.float64)
    for b, *at in np.ndindex(len(boxes), *a.crop_size):
        place = []
        for d, (i, m) in enumerate(zip(at, a.crop_size, strict=True)):
            begin, end, n = boxes[b][d], boxes[b][d + 2], x.shape[2 + d]
            step = (end - begin) * (n - 1) / (m - 1) if m > 1 else 0
            place.append((begin * (n - 1) if m > 1 else (begin + end) / 2 * (n - 1)) + i * step)
        if all(0 <= p <= n - 1 for p, n in zip(place, x.shape[2:], strict=True)):
            method = "linear" if a.method == "bilinear" else a.method
            image = x[which[b]]

            def fetch(index, image=image):
                index = [min(k, n - 1) for k, n in zip(index, image.shape[1:], strict=True)]
                return image[(slice(None), *index)]

            out[(b, slice(None), *at)] = sampled(image, place, method, fetch)
    return from_channels_first(out, a.layout)


@oracle("vision.roi_align")
def _(a, x, rois):
    """He et al., Mask R-CNN, 2017: the average (or greatest) of regular samples of each bin; with max_corner
    the greatest of the four elements around each sample, times their weights, as ONNX has it."""
    out = np.zeros((len(rois), x.shape[1], *a.pooled_size))
    for r, roi in enumerate(rois):
        image, begin = x[int(roi[0])], roi[[2, 1]] * a.spatial_scale
        size = np.maximum(roi[[4, 3]] * a.spatial_scale - begin, 1.0)
        bins = size / a.pooled_size
        counts = [a.sample_ratio if a.sample_ratio > 0 else math.ceil(b) for b in bins]
        for at in np.ndindex(*a.pooled_size):
            samples = []
            for k in np.ndindex(*counts):
                place = [begin[d] + (at[d] + (k[d] + 0.5) / counts[d]) * bins[d] for d in range(2)]
                if a.mode == "max_corner":
                    samples += weighted_corners(image, place)
                else:
                    samples.append(clamped_bilinear(image, place))
            over = np.mean if a.mode == "avg" else np.max
            out[(r, slice(None), *at)] = over(samples, 0)
    return out


def weighted_corners(image: np.ndarray, place) -> list[np.ndarray]:
    """Returns what `clamped_bilinear` adds up."""
    sizes = image.shape[1:]
    if any(p < -1 or p > n for p, n in zip(place, sizes, strict=True)):
        return [np.zeros(len(image))]
    place = [min(max(p, 0), n - 1) for p, n in zip(place, sizes, strict=True)]
    low = [math.floor(p) for p in place]
    found = []
    for corner in np.ndindex(2, 2):
        weight = math.prod(
            p - i if c else 1 - (p - i) for p, i, c in zip(place, low, corner, strict=True)
        )
        at = [min(i + c, n - 1) for i, c, n in zip(low, corner, sizes, strict=True)]
        found.append(image[(slice(None), *at)] * weight)
    return found


def clamped_bilinear(image: np.ndarray, place) -> np.ndarray:
    """Returns an image at a place: zero more than one element outside, else the nearest inside."""
    sizes = image.shape[1:]
    if any(p < -1 or p > n for p, n in zip(place, sizes, strict=True)):
        return np.zeros(len(image))
    place = [min(max(p, 0), n - 1) for p, n in zip(place, sizes, strict=True)]

    def fetch(index):
        index = [min(k, n - 1) for k, n in zip(index, sizes, strict=True)]
        return image[(slice(None), *index)]

    return sampled(image, place, "linear", fetch)


@oracle("vision.roi_pool")
def _(a, x, rois):
    """Girshick, Fast R-CNN, 2015: the greatest element of each bin, 0 of an empty one."""
    out = np.zeros((len(rois), x.shape[1], *a.pooled_size))
    for r, roi in enumerate(rois):
        # C's round: halves away from zero.
        corner = [
            math.floor(abs(v) * a.spatial_scale + 0.5) * (-1 if v < 0 else 1) for v in roi[1:]
        ]
        begin, end = corner[1::-1], corner[:1:-1]
        size = [max(e - b + 1, 1) for b, e in zip(begin, end, strict=True)]
        for at in np.ndindex(*a.pooled_size):
            part = x[int(roi[0])]
            for d in range(2):
                low = begin[d] + at[d] * size[d] // a.pooled_size[d]
                high = begin[d] + -(-(at[d] + 1) * size[d] // a.pooled_size[d])
                part = part.take(
                    range(max(low, 0), max(min(high, x.shape[2 + d]), max(low, 0))), 1 + d
                )
            if part.size:
                out[(r, slice(None), *at)] = part.max((1, 2))
    return out


# Random numbers.

MASK = 2**64 - 1
ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))


def threefry(key, counter):
    """Threefry-4x64 with 20 rounds (Salmon et al., Parallel Random Numbers, 2011) in integers."""
    schedule = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ 0x1BD11BDAA9FC1A22]
    x = [(c + k) & MASK for c, k in zip(counter, key, strict=True)]
    for turn in range(20):
        partners = (1, 3) if turn % 2 == 0 else (3, 1)
        for a, b, by in zip((0, 2), partners, ROTATIONS[turn % 8], strict=True):
            x[a] = (x[a] + x[b]) & MASK
            x[b] = ((x[b] << by | x[b] >> (64 - by)) & MASK) ^ x[a]
        if turn % 4 == 3:
            n = turn // 4 + 1
            x = [(x[i] + schedule[(n + i) % 5] + (n if i == 3 else 0)) & MASK for i in range(4)]
    return x


def words(key, count):
    """What a key of ten words gives: blocks of the path with its end, and a counter."""
    key = [int(k) for k in key]
    first = key[6] << 64 | key[7]
    out = []
    for block in range(first, first + -(-count // 4)):
        counter = [key[4] | key[8], key[5] | key[9], block >> 64, block & MASK]
        out += threefry(key[:4], counter)
    return np.array(out[:count], dtype="uint64")


def next_key(key: list[int], count: int) -> list[int]:
    """Returns the key behind the blocks of `count` words."""
    number = (key[6] << 64 | key[7]) + -(-count // 4)
    return [*key[:6], number >> 64 & MASK, number & MASK, *key[8:]]


def drawn(key: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the next key, and words in a shape."""
    key, count = [int(k) for k in key], math.prod(shape)
    return np.array(next_key(key, count), "uint64"), words(key, count).reshape(shape)


def fraction(bits: np.ndarray, digits: int) -> np.ndarray:
    return (bits >> np.uint64(64 - digits)).astype(np.float64) * 2.0**-digits


@oracle("random.threefry_generate")
def _(a, key):
    return [*drawn(key, a.out_shape)]


@oracle("random.threefry_split")
def _(a, key):
    """The path of splits is four words, and its end one bit that moves down; a full path is hashed
    into a fresh cipher key."""
    key = [int(k) for k in key]
    end, path, cipher = key[8] << 64 | key[9], key[4:6], key[:4]
    if end <= 1:
        cipher = threefry(cipher, [key[4] | key[8], key[5] | key[9], MASK, MASK])
        end, path = 1 << 127, [0, 0]
    bit, below = [end >> 64, end & MASK], [end >> 65, end >> 1 & MASK]
    right = [p | b for p, b in zip(path, bit, strict=True)]
    return [np.array([*cipher, *p, 0, 0, *below], "uint64") for p in (path, right)]


@oracle("random.uniform")
def _(a, key, low, high):
    key, bits = drawn(key, a.out_shape)
    return [key, low + fraction(bits, 53 if a.out_dtype == "float64" else 24) * (high - low)]


@oracle("random.normal")
def _(a, key, mean, scale):
    """Box and Muller, 1958: a pair of words gives the radius and the angle of two numbers."""
    count, digits = math.prod(a.out_shape), 53 if a.out_dtype == "float64" else 24
    bits = fraction(words(key, count + count % 2), digits).reshape(-1, 2)
    radius = np.sqrt(-2 * np.log(bits[:, 0] + 2.0**-digits))
    turns = np.stack([bits[:, 1], bits[:, 1] - 0.25], 1)
    numbers = (radius[:, None] * np.cos(2 * np.pi * turns)).reshape(-1)[:count]
    return [drawn(key, a.out_shape)[0], mean + scale * numbers.reshape(a.out_shape)]


@oracle("random.multinomial")
def _(a, key, probs):
    """The class at which the running sum of the weights passes a uniform number."""
    key, bits = drawn(key, (*probs.shape[:-1], a.num_samples))
    sums = np.cumsum(probs, -1)
    level = fraction(bits, 53) * sums[..., -1:]
    passed = (sums[..., None, :] <= level[..., None]).sum(-1)
    return [key, np.minimum(passed, probs.shape[-1] - 1).astype("int32")]
