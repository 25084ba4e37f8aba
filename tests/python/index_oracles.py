"""Oracles of tensors by index or from nothing, sorting, scans, scattering, strings; see oracle_registry."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from oracle_registry import oracle

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


@oracle("text.hash")
def _(a, x):
    """By integers of any size, which are cut to 64 bits."""
    multiplier, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def hashed(s: str) -> int:
        data = s.encode()
        value = len(data) * multiplier & mask
        for begin in range(0, len(data) // 8 * 8 + 1, 8):
            word = int.from_bytes(data[begin : begin + 8], "little")
            value = (value ^ word) * multiplier & mask
            value ^= value >> 32
        return value * multiplier & mask

    return of_strings(hashed, x, dtype="uint64")


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


@oracle("text.tokens")
def _(a, x, patterns, frame):
    """By Python's expressions, which take the first alternative; the examples have none."""

    def tokens(s: str) -> list[str]:
        if not a.between:
            return [t for t in re.findall(str(patterns), s) if len(t) >= a.least]
        pieces = [s]
        for pattern in str(patterns).split("\n"):
            pieces = [t for p in pieces for t in re.split(pattern, p) if len(t) >= a.least]
        return pieces

    found = of_strings(tokens, x)
    pad, *marks = frame
    most = max((len(t) for t in found.ravel()), default=0)
    out = np.full((*x.shape, most + len(marks) if most else 0), pad, dtype=object)
    for at in np.ndindex(*x.shape):
        line = [*marks[:1], *found[at], *marks[1:]] if most else []
        out[at][: len(line)] = line
    return out


def scan(a: SimpleNamespace, x: np.ndarray, run: Callable, first: int) -> np.ndarray:
    x, axis = (x.reshape(-1), 0) if a.axis is None else (x, a.axis)
    x = x.astype(a.dtype or x.dtype)
    x = np.flip(x, axis) if a.reverse else x
    if a.exclusive:
        x = np.concatenate(
            [np.full_like(np.take(x, [0], axis), first), np.delete(x, -1, axis)], axis
        )
    y = run(x, axis=axis, dtype=x.dtype)
    return np.flip(y, axis) if a.reverse else y


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
def _(a, x, update, *starts):
    out = x.copy()
    update = update.reshape((1,) * (x.ndim - update.ndim) + update.shape)
    places = []
    for axis, start in enumerate(starts):
        step = a.strides[axis] if axis < len(a.strides) else 1
        count = update.shape[axis]
        reach = (count - 1) * step + 1
        first = min(max(int(start), 0), x.shape[axis] - reach)
        places.append(slice(first, first + count * step, step))
    out[tuple(places)] = update
    return out


@oracle("reverse_sequence")
def _(a, x, lengths):
    out = np.moveaxis(x.copy(), (a.batch_axis, a.seq_axis), (0, 1))
    for line, n in zip(out, lengths, strict=True):
        line[: int(n)] = line[: int(n)][::-1].copy()
    return np.moveaxis(out, (0, 1), (a.batch_axis, a.seq_axis))


@oracle("sequence_mask")
def _(a, x, lengths):
    out = np.moveaxis(x.copy(), 1 - a.axis, 0)
    for line, n in zip(out, lengths, strict=True):
        line[np.arange(len(line)) >= n] = a.mask_value
    return np.moveaxis(out, 0, 1 - a.axis)


@oracle("checked_index")
def _(a, indices, sizes):
    size = sizes if sizes.ndim == 0 else sizes.reshape(-1, *[1] * (indices.ndim - 1))
    assert np.all((indices >= -size) & (indices < size))
    return np.where(indices < 0, indices + size, indices).astype(indices.dtype)
