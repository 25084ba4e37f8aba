"""Oracles of products, windows, normalisations and losses; see oracle_registry."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
from oracle_registry import along, oracle

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
    """Returns G w G^T of each 3x3 kernel: (6, 6, O, I), of panels OHWIbo (6, 6, O/b, I, b)."""
    if w.ndim == 5:
        return np.einsum("ar,orsib,cs->acoib", WINOGRAD, w.astype(np.float64), WINOGRAD)
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


def places(a: SimpleNamespace, x: np.ndarray, best: np.ndarray):
    """Yields for each window its index and the indices of the elements that are its greatest."""
    axes = [a.layout.index(axis) for axis in "DHW"[3 - len(a.pool_size) :]]
    begins = borders(a.padding, len(axes))[0]
    for window in np.ndindex(*best.shape):
        for k in np.ndindex(*a.pool_size):
            at = list(window)
            for d, axis in enumerate(axes):
                at[axis] = at[axis] * a.strides[d] + k[d] * a.dilation[d] - begins[d]
            inside = all(0 <= i < n for i, n in zip(at, x.shape, strict=True))
            if inside and x[tuple(at)] == best[window]:
                yield window, tuple(at)


@oracle("nn.max_pool_places")
def _(a, x, best):
    out = np.full(best.shape, -1, np.int64)
    axes = [a.layout.index(axis) for axis in "DHW"[3 - len(a.pool_size) :]]
    for window, element in places(a, x, best):
        place = 0
        for axis in axes:
            place = place * x.shape[axis] + element[axis]
        out[window] = place if out[window] < 0 else min(out[window], place)
    return out


@oracle("nn.max_pool_gather")
def _(a, x, best, values):
    out = np.zeros(best.shape)
    for window, element in places(a, x, best):
        out[window] += values[element] if np.ndim(values) else values
    return out


@oracle("nn.max_pool_spread")
def _(a, x, best, values):
    out = np.zeros(x.shape)
    for window, element in places(a, x, best):
        out[element] += values[window]
    return out


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
    # A target that is ignored may be no class.
    ignored = target == a.ignore_index
    at = np.where(ignored, 0, target)
    weight = np.where(ignored, 0, weights[at])
    loss = -np.take_along_axis(x, at[:, None], 1)[:, 0] * weight
    means = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / weight.sum()}
    return means[a.reduction]
